# SPDX-License-Identifier: Apache-2.0
"""Every client of a host: where it is redirected to, and whoever asks it there for a login, learns
nothing of what it sends with its requests.

A module that begins to ask hosts needs a row.
"""

from __future__ import annotations

import asyncio
import base64
import io
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from container_update.cluster import prometheus
from container_update.cluster.client import connect_vim
from container_update.model.errors import ContainerUpdateError
from container_update.model.objects import Collection
from container_update.model.options import Options
from container_update.package import fetch
from container_update.vnfm.http.keystone import KeystoneTokens
from container_update.vnfm.notify import callbacks
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.settings import Settings

ROOT = Path(__file__).parents[2] / "container_update"
ASKS = re.compile(
    r"^\s*(import|from) (aiohttp|asyncio\.streams|ftplib|http\.client|httpx|keystoneauth1|openstack"
    r"|paramiko|requests|smtplib|urllib3|urllib\.request|websockets)\b"
    r"|create_connection\(|open_connection\(|urlopen\(",
    re.MULTILINE,
)
"""What a module has that asks a host."""
REFUSALS = (ContainerUpdateError, ProblemError, prometheus.MetricError)
SECRET = "pl4nted-s3cret"
OPTIONS = Options(
    request_timeout=2, retry_seconds=0, url_hosts=("127.0.0.1", "localhost"), url_seconds=2
)
LOGIN, OWN_LOGIN = (
    base64.b64encode(f"{user}:{SECRET}".encode()).decode() for user in ("user", "c")
)


def api_server(url: str) -> None:
    with connect_vim(url, bearer_token=SECRET, options=OPTIONS) as cluster:
        cluster.list(Collection("", "Secret", "cnf"))


def oidc_provider(url: str) -> None:
    names = {"client_id": "c", "client_secret": SECRET, "username": "u", "password": SECRET}
    oidc = {"token_url": f"{url}/token", **names}
    with connect_vim("https://127.0.0.1:1", oidc=oidc, options=OPTIONS) as cluster:
        cluster.list(Collection("", "Secret", "cnf"))


def keystone_of_the_service(url: str) -> None:
    settings = Settings(
        auth="keystone",
        keystone_url=f"{url}/v3",
        keystone_username="u",
        keystone_password=SECRET,
        keystone_roles=("member",),
    )
    KeystoneTokens(settings).log_in()


def upload_from_uri(url: str) -> None:
    fetch.fetch_into(io.BytesIO(), url, OPTIONS, {"Authorization": f"Basic {LOGIN}"})


def callback(url: str, endpoint: str = "") -> None:
    params: dict[str, Any] = {"paramsBasic": {"userName": "user", "password": SECRET}}
    kind = "BASIC"
    if endpoint:
        kind = "OAUTH2_CLIENT_CREDENTIALS"
        token = {"clientId": "c", "clientPassword": SECRET, "tokenEndpoint": endpoint}
        params = {"paramsOauth2ClientCredentials": token}
    settings = Settings(callback_hosts=("127.0.0.1", "localhost"), callback_seconds=2.0)
    asyncio.run(callbacks.check_callback(settings, url, {"authType": [kind], **params}))


CLIENTS: dict[str, tuple[Callable[[str], object], set[str]]] = {
    "the API server": (
        api_server,
        {"cluster/client.py", "cluster/login/client_configuration.py", "cluster/responses.py"},
    ),
    "an OpenID Connect provider": (oidc_provider, {"cluster/oidc.py"}),
    "Prometheus": (
        lambda url: prometheus.measured(url, SECRET),
        {"cluster/prometheus.py"},
    ),
    "a package or a def-file at a URL, with a login": (upload_from_uri, {"package/fetch.py"}),
    "Keystone, for the service's users": (keystone_of_the_service, {"vnfm/http/keystone.py"}),
    "a consumer of notifications": (callback, {"vnfm/notify/callbacks.py"}),
    "the token server of a consumer": (
        lambda url: callback(url, f"{url}/token"),
        {"vnfm/notify/callbacks.py"},
    ),
}
"""Whom it asks: what sends SECRET to a URL, and the modules that do. A registry, which may send to
another host what is compared with a digest, is in ``package/test_oci.py``."""
OF_STACKS = {"openstack/answers.py", "openstack/client.py"}
"""Keystone and Heat, which have to say first where they are: in ``openstack/test_client.py``."""


def test_every_module_that_asks_a_host_is_one_of_these() -> None:
    paths = (path for path in ROOT.rglob("*.py") if ROOT / "emulator" not in path.parents)
    ask = {
        path.relative_to(ROOT).as_posix()
        for path in paths
        if ASKS.search(path.read_text(encoding="utf-8"))
    }
    assert ask == OF_STACKS.union(*(modules for _, modules in CLIENTS.values()))


@dataclass
class Host:
    """Answers each request in one way, and keeps what it is told."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)

    @contextmanager
    def listens(self) -> Iterator[int]:
        """Yield its port."""
        host = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                host.told.append(f"{self.path}\n{self.headers}\n{body.decode()}")
                self.send_response(host.status)
                for name, value in {**host.headers, "Content-Length": "0"}.items():
                    self.send_header(name, value)
                self.end_headers()

            do_POST = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            server.daemon_threads = True
            thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
            thread.start()
            yield server.server_port
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("status", [302, 308])
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"], ids=["another host", "another port"])
def test_a_redirect_takes_no_login_elsewhere(client: str, status: int, host: str) -> None:
    thief = Host(401, {"WWW-Authenticate": 'Basic realm="here"'})
    with thief.listens() as there:
        first = Host(status, {"Location": f"http://{host}:{there}/x"})
        with first.listens() as here, suppress(*REFUSALS):
            CLIENTS[client][0](f"http://127.0.0.1:{here}")
    assert any(each in told for told in first.told for each in (SECRET, LOGIN, OWN_LOGIN))
    assert not any(each in told for told in thief.told for each in (SECRET, LOGIN, OWN_LOGIN))
