# SPDX-License-Identifier: Apache-2.0
"""What a client reads of a package, and packages that the service fetches (SOL005, clause 9.4)."""

from __future__ import annotations

import base64
import io
import shutil
import socket
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from container_update import Options
from tests.internals.core import build
from tests.internals.service import Service, Settings
from tests.tacker.operator import Operator
from tests.vnfm import vnfs
from tests.vnfm.client import Client, Json
from tests.vnfm.conftest import SAMPLES
from tests.vnfm.served import served
from tests.vnfm.waiting import until

LOGIN = {"userName": "nfvo", "password": "a-password"}


class Store(ThreadingHTTPServer):
    """A server with one package, for who knows the password."""

    daemon_threads = True

    def __init__(self, content: bytes) -> None:
        self.content = content
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        """The package's URL."""
        return f"http://127.0.0.1:{self.server_port}/vnf.zip"


class _Handler(BaseHTTPRequestHandler):
    server: Store

    def do_GET(self) -> None:
        pair = base64.b64encode(f"{LOGIN['userName']}:{LOGIN['password']}".encode()).decode()
        is_known = self.headers.get("Authorization") == f"Basic {pair}"
        self.send_response(200 if is_known else 401)
        self.send_header("Content-Length", str(len(self.server.content)))
        self.end_headers()
        self.wfile.write(self.server.content)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def content(tmp_path: Path) -> bytes:
    """A package."""
    return vnfs.package(tmp_path, "1.0", vnfs.ours("v2"))[0].read_bytes()


@pytest.fixture
def store(content: bytes) -> Iterator[Store]:
    """A server with it."""
    with Store(content) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def client_of(tmp_path: Path) -> Iterator[Callable[..., Client]]:
    """Starts a service with other options and settings and returns a client of it."""
    running: list[TestClient] = []

    def start(options: Mapping[str, object] | None = None, **settings: object) -> Client:
        given = {"state_dir": str(tmp_path / "state"), "auth": "none", **settings}
        service = Service(Settings(**given), Options(**dict(options or {})))  # type: ignore[arg-type]
        http = TestClient(service.app, base_url="http://127.0.0.1:9890")
        running.append(http.__enter__())
        return Client(http, "v2")

    yield start
    for http in running:
        http.__exit__(None, None, None)


ALLOWED = {"url_schemes": ("http",), "url_hosts": ("127.0.0.1",)}


def fetched(client: Client, uri: str, **login: str) -> Json:
    """Have a package fetched and return it when the service is done with it."""
    package = client.call("POST", "/vnfpkgm/v1/vnf_packages", {}, 201)
    path = f"{package['_links']['packageContent']['href']}/upload_from_uri"
    client.call("POST", path, {"addressInformation": uri, **login}, 202)
    return client.read_in(package["id"])


# --- upload from a URI --------------------------------------------------------------------------


def test_a_package_is_fetched_from_a_uri(
    client_of: Callable[..., Client], store: Store, content: bytes
) -> None:
    client = client_of(ALLOWED)
    package = fetched(client, store.url, **LOGIN)
    assert package["onboardingState"] == "ONBOARDED", package
    read = client.send("GET", package["_links"]["packageContent"]["href"])
    assert read.content == content
    path = f"{package['_links']['packageContent']['href']}/upload_from_uri"
    client.call("POST", path, {"addressInformation": store.url}, 409)


def test_packages_that_are_fetched_slowly_keep_no_worker_from_others(
    client_of: Callable[..., Client], content: bytes, tmp_path: Path
) -> None:
    client = client_of(ALLOWED, workers=1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}/vnf.zip"
        for _ in range(2):
            package = client.call("POST", "/vnfpkgm/v1/vnf_packages", {}, 201)
            path = f"{package['_links']['packageContent']['href']}/upload_from_uri"
            client.call("POST", path, {"addressInformation": uri}, 202)
        (tmp_path / "uploaded.zip").write_bytes(content)
        client.onboard(tmp_path / "uploaded.zip")


def test_a_user_who_has_packages_fetched_from_slow_hosts_leaves_others_their_share(
    client_of: Callable[..., Client], tmp_path: Path
) -> None:
    tokens = tmp_path / "tokens"
    tokens.touch(0o600)
    tokens.write_text("".join(f"{user} {user}-0123456789abcdef write\n" for user in ("ann", "bob")))
    client = client_of(ALLOWED, auth="token_file", token_file=str(tokens))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}/vnf.zip"

        def fetch(user: str) -> Any:
            headers = {"X-Auth-Token": f"{user}-0123456789abcdef"}
            package = client.send("POST", "/vnfpkgm/v1/vnf_packages", {}, headers=headers).json()
            path = f"{package['_links']['packageContent']['href']}/upload_from_uri"
            body = {"addressInformation": uri}
            answer = client.send("POST", path, body, headers=headers)
            path = package["_links"]["self"]["href"]
            return answer, client.send("GET", path, headers=headers).json()["onboardingState"]

        assert [fetch("ann")[0].status_code for _ in range(4)] == [202] * 4
        refused, state = fetch("ann")
        assert (refused.status_code, state) == (429, "CREATED")
        assert "ann has 4 packages that are being uploaded or fetched" in refused.json()["detail"]
        assert fetch("bob")[0].status_code == 202
        connected = [silent.accept()[0] for _ in range(5)]
        assert len(connected) == 5, "each has a thread of its own"
        for connection in connected:
            connection.close()
        until(lambda: fetch("ann")[0].status_code == 202, "the share is given back")


@pytest.mark.parametrize(
    ("options", "settings", "login", "words"),
    [
        ({}, {}, LOGIN, ["addressInformation", "not a public address", "url_hosts"]),
        (ALLOWED, {}, {}, ["401"]),
        (ALLOWED, {"upload_bytes": 10}, LOGIN, ["more than 10 bytes"]),
        ({"url_schemes": ("https",)}, {}, LOGIN, ["schemes https"]),
    ],
    ids=["a loopback address", "without the password", "too big", "a scheme that is not allowed"],
)
def test_a_package_that_cannot_be_fetched_is_in_error_with_the_cause(
    client_of: Callable[..., Client],
    store: Store,
    options: dict[str, object],
    settings: dict[str, object],
    login: dict[str, str],
    words: list[str],
) -> None:
    client = client_of({"url_schemes": ("http",), **options}, **settings)
    package = fetched(client, f"{store.url}?signature=a-signature", **login)
    detail = package["onboardingFailureDetails"]["detail"]
    assert package["onboardingState"] == "ERROR"
    assert all(word in detail for word in words), detail
    assert LOGIN["password"] not in str(package)
    assert "a-signature" not in str(package)


# --- parts of a package -------------------------------------------------------------------------


def vnfd(client: Client, package: Json, accept: str) -> Any:
    """The answer for the VNFD of a package."""
    path = f"{package['_links']['self']['href']}/vnfd"
    return client.send("GET", path, headers={"Accept": accept})


def test_a_vnfd_of_several_files_is_a_zip(
    client_of: Callable[..., Client], zipped: Callable[[str], Mapping[str, Path]]
) -> None:
    client = client_of()
    package = client.read_in(client.upload(zipped("06-openstack-blue-green")["before"]))
    answer = vnfd(client, package, "text/plain,application/zip")
    names = zipfile.ZipFile(io.BytesIO(answer.content)).namelist()
    assert answer.headers["content-type"] == "application/zip"
    assert {"TOSCA-Metadata/TOSCA.meta", "Definitions/df_simple.yaml"} <= set(names)
    assert not [name for name in names if name.startswith(("BaseHOT/", "Scripts/"))]
    assert vnfd(client, package, "text/plain").status_code == 406


def test_a_vnfd_of_one_file_is_text_or_a_zip(
    client_of: Callable[..., Client], tmp_path: Path
) -> None:
    client = client_of()
    package = client.read_in(client.upload(vnfs.package(tmp_path, "1.0", vnfs.ours("v2"))[0]))
    assert "tosca_definitions_version" in vnfd(client, package, "text/plain").text
    content = vnfd(client, package, "application/zip").content
    assert len(zipfile.ZipFile(io.BytesIO(content)).namelist()) == 2


def test_an_artifact_is_read_by_its_path_and_nothing_outside_the_package(
    client_of: Callable[..., Client], tmp_path: Path
) -> None:
    client = client_of()
    package = client.read_in(client.upload(vnfs.package(tmp_path, "1.0", vnfs.ours("v2"))[0]))
    artifacts = f"{package['_links']['self']['href']}/artifacts"
    (path,) = [
        each["artifactPath"]
        for each in package["additionalArtifacts"]
        if each["artifactPath"].endswith("front.yaml")
    ]
    answer = client.send("GET", f"{artifacts}/{path}")
    assert answer.status_code == 200
    assert "kind: Deployment" in answer.text
    for wrong in (
        "Files/none.yaml",
        "../content.zip",
        "%2e%2e/content.zip",
        "/etc/passwd",
        "Files",
    ):
        assert client.send("GET", f"{artifacts}/{wrong}").status_code == 404, wrong
    empty = client.call("POST", "/vnfpkgm/v1/vnf_packages", {}, 201)
    client.call("GET", f"{empty['_links']['self']['href']}/artifacts/{path}", status=409)
    client.call("GET", f"{empty['_links']['self']['href']}/vnfd", status=409)


def test_the_software_images_are_those_of_the_vnfd(
    client_of: Callable[..., Client], zipped: Callable[[str], Mapping[str, Path]]
) -> None:
    client = client_of()
    package = client.read_in(client.upload(zipped("06-openstack-blue-green")["before"]))
    images = {image["id"]: image for image in package["softwareImages"]}
    assert images
    assert all(image["name"] for image in images.values())
    for image in images.values():  # what SOL005, 9.5.3.2 demands and a VNFD may leave out
        assert image.get("provider", "") == package["vnfProvider"]
        assert image["createdAt"]
        assert {type(image["minDisk"]), type(image["minRam"])} == {int}


def test_a_size_that_no_number_is_is_left_out(
    client_of: Callable[..., Client], tmp_path: Path
) -> None:
    folder = shutil.copytree(SAMPLES / "06-openstack-blue-green/before", tmp_path / "package")
    vnfd, image = folder / "Definitions/df_simple.yaml", "name: front-1.0\n"
    size = f"{image}          size: {'9' * 400} GB\n"
    vnfd.write_text(vnfd.read_text().replace(image, size))
    build.write_metadata(folder)
    client = client_of()
    content = Path(shutil.make_archive(str(tmp_path / "package"), "zip", folder))
    package = client.read_in(client.upload(content))
    assert [image["name"] for image in package["softwareImages"]] == ["front-1.0"]
    assert "size" not in package["softwareImages"][0]


# --- the client ---------------------------------------------------------------------------------


def test_the_clients_commands_for_parts_of_a_package_work(tmp_path: Path, content: bytes) -> None:
    zip_file = tmp_path / "vnf.zip"
    zip_file.write_bytes(content)
    with served(tmp_path / "service", "") as service:
        operator = Operator(service, "v1")
        created = operator.openstack("vnf", "package", "create", "-f", "value", "-c", "ID").strip()
        operator.openstack("vnf", "package", "upload", "--path", str(zip_file), created)
        operator.onboarded(created)
        out = tmp_path / "vnfd.zip"
        operator.openstack(
            "vnf",
            "package",
            "download",
            "--vnfd",
            "--type",
            "application/zip",
            "--file",
            str(out),
            created,
        )
        assert zipfile.ZipFile(out).namelist()
        artifact = tmp_path / "artifact"
        operator.openstack(
            "vnf",
            "package",
            "artifact",
            "download",
            "--file",
            str(artifact),
            created,
            "Files/kubernetes/front.yaml",
        )
        assert "kind: Deployment" in artifact.read_text()
