# SPDX-License-Identifier: Apache-2.0
"""HTTPS by configuration, with a token of the file that the first start creates."""

from __future__ import annotations

import http.client
import re
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from container_update import ContainerUpdateError
from tests.internals.service import Settings, connections
from tests.vnfm.served import Served

SETTINGS = "auth = token_file\ntls_cert = {folder}/cert.pem\ntls_key = {folder}/key.pem"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def service(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service that serves HTTPS."""
    folder = tmp_path_factory.mktemp("tls")
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    for blob in issued.cert_chain_pems:
        blob.write_to_path(folder / "cert.pem", append=True)
    service = Served(folder, "", SETTINGS.format(folder=folder))
    service.start()
    yield service
    service.kill()


def status(service: Served, context: ssl.SSLContext | None, token: str = "") -> int:
    """Return the status of a list of packages; without a context over HTTP."""
    address = service.url.partition("://")[2]
    kind = http.client.HTTPSConnection if context else http.client.HTTPConnection
    more = {"context": context} if context else {}
    connection = kind(address, timeout=20, **more)
    headers = {"X-Auth-Token": token} if token else {}
    try:
        connection.request("GET", "/vnfpkgm/v1/vnf_packages", headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.fixture
def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def test_https_requests_with_a_token_are_answered(
    service: Served, trusting: ssl.SSLContext
) -> None:
    assert service.url.startswith("https://127.0.0.1:")
    tokens = (service.folder / "state" / "tokens").read_text().split("\n")
    (token,) = (line.split()[-1] for line in tokens if line.strip() and not line.startswith("#"))
    assert status(service, trusting) == 401
    assert status(service, trusting, "wrong") == 401
    assert status(service, trusting, token) == 200


def test_a_client_without_the_certificate_authority_does_not_connect(service: Served) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        status(service, ssl.create_default_context())


def test_plain_http_is_not_answered(service: Served) -> None:
    with pytest.raises((http.client.HTTPException, OSError)):
        status(service, None)


def test_a_certificate_without_its_key_is_refused() -> None:
    with pytest.raises(ValueError, match="expected both or neither"):
        Settings(tls_cert="cert.pem")


@pytest.mark.parametrize(
    ("cert", "key"),
    [("none", "key.pem"), ("cert.pem", "none"), ("key.pem", "key.pem"), ("cert.pem", "other.pem")],
    ids=["no certificate", "no key", "no certificate in the file", "another certificate's key"],
)
def test_a_certificate_that_cannot_be_used_is_named_with_its_key(
    cert: str, key: str, authority: trustme.CA, tmp_path: Path
) -> None:
    issued, other = (authority.issue_cert("127.0.0.1") for _ in range(2))
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    other.private_key_pem.write_to_path(tmp_path / "other.pem")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    settings = Settings(tls_cert=str(tmp_path / cert), tls_key=str(tmp_path / key))
    names = rf"tls_cert {re.escape(settings.tls_cert)}, tls_key {re.escape(settings.tls_key)}: "
    with pytest.raises(ContainerUpdateError, match=names + r"expected .*: (?!None)\S"):
        connections.server_config(None, settings)
