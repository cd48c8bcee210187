# SPDX-License-Identifier: Apache-2.0
"""A login that the server does not accept any more is got again, once."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from container_update.cluster import kubeconfig
from container_update.cluster.client import KubernetesCluster, connect, connect_vim
from container_update.cluster.login.client_configuration import Login, Logins
from container_update.model.errors import ClusterError
from container_update.model.objects import Collection, ObjectKey
from container_update.model.options import Options
from tests.unit.cluster.login.door import Door
from tests.unit.cluster.test_oidc import Provider, token

POD = ObjectKey("", "Pod", "ns", "p")
PODS = Collection("", "Pod", "ns")
BODY = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ns"}}
OPTIONS = Options(request_timeout=10)
VERSION = "client.authentication.k8s.io/v1"

REQUESTS: dict[str, Callable[[KubernetesCluster], object]] = {
    "list": lambda cluster: cluster.list(PODS),
    "get": lambda cluster: cluster.get(POD),
    "watch": lambda cluster: list(cluster.watch(PODS, "7", 5)),
    "log": lambda cluster: cluster.log(POD, "main", previous=False, lines=1, limit=9),
    "create": lambda cluster: cluster.create(BODY),
    "replace": lambda cluster: cluster.replace(BODY),
    "delete": lambda cluster: cluster.delete(POD),
    "evict": lambda cluster: cluster.evict(POD),
}


class Plugin:
    """A program that prints one login after the other, the last one again and again."""

    def __init__(self, folder: Path, *logins: dict[str, str]) -> None:
        self._calls = folder / "calls"
        answers = folder / "answers"
        answers.write_text(json.dumps(logins))
        self._file = folder / "plugin.py"
        self._file.write_text(
            "import json, pathlib\n"
            f"calls = pathlib.Path({str(self._calls)!r})\n"
            "n = len(calls.read_text()) if calls.exists() else 0\n"
            "calls.write_text('x' * (n + 1))\n"
            f"logins = json.loads(pathlib.Path({str(answers)!r}).read_text())\n"
            "status = logins[min(n, len(logins) - 1)]\n"
            f"print(json.dumps(dict(apiVersion={VERSION!r}, kind='ExecCredential', "
            "status=status)) if status else 'no login')\n"
        )

    @property
    def user(self) -> dict[str, Any]:
        args = [str(self._file)]
        return {"exec": {"apiVersion": VERSION, "command": sys.executable, "args": args}}

    @property
    def runs(self) -> int:
        return len(self._calls.read_text())


Connected = Iterator[tuple[KubernetesCluster, Callable[[], object]]]
"""A connection with the login 'first', and what brings the login 'second' about."""


@contextmanager
def by_a_token(door: Door, folder: Path, _: pytest.MonkeyPatch) -> Connected:
    with connect(door.kubeconfig(folder, token="first"), options=OPTIONS) as cluster:
        yield cluster, lambda: door.kubeconfig(folder, token="second")


@contextmanager
def by_a_token_file(door: Door, folder: Path, _: pytest.MonkeyPatch) -> Connected:
    file = folder / "token"
    file.write_text("first\n")
    with connect(door.kubeconfig(folder, tokenFile="token"), options=OPTIONS) as cluster:
        yield cluster, lambda: file.write_text("second\n")


@contextmanager
def by_a_plugin(door: Door, folder: Path, _: pytest.MonkeyPatch) -> Connected:
    plugin = Plugin(folder, {"token": "first"}, {"token": "second"})
    with connect(door.kubeconfig(folder, **plugin.user), options=OPTIONS) as cluster:
        yield cluster, lambda: None


@contextmanager
def by_a_plugins_certificate(door: Door, folder: Path, _: pytest.MonkeyPatch) -> Connected:
    names = ("clientCertificateData", "clientKeyData")
    first, second = (door.certificate(name) for name in ("first", "second"))
    plugin = Plugin(
        folder, dict(zip(names, first, strict=True)), dict(zip(names, second, strict=True))
    )
    with connect(door.kubeconfig(folder, **plugin.user), options=OPTIONS) as cluster:
        yield cluster, lambda: None


@contextmanager
def by_certificate_files(door: Door, folder: Path, _: pytest.MonkeyPatch) -> Connected:
    def write(name: str) -> None:
        for file, text in zip(("tls.crt", "tls.key"), door.certificate(name), strict=True):
            (folder / file).write_text(text)

    write("first")
    user = {"client-certificate": "tls.crt", "client-key": "tls.key"}
    with connect(door.kubeconfig(folder, **user), options=OPTIONS) as cluster:
        yield cluster, lambda: write("second")


@contextmanager
def by_a_service_account(door: Door, folder: Path, patch: pytest.MonkeyPatch) -> Connected:
    file, ca = folder / "token", folder / "ca.crt"
    file.write_text("first")
    ca.write_text(door.ca_text)
    patch.setattr(kubeconfig, "SERVICE_ACCOUNT", folder)
    patch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    patch.setenv("KUBERNETES_SERVICE_PORT", str(door.port))
    patch.setenv("KUBECONFIG", str(folder / "none"))
    with connect(options=OPTIONS) as cluster:
        yield cluster, lambda: file.write_text("second")


@contextmanager
def by_openid_connect(door: Door, _: Path, __: pytest.MonkeyPatch) -> Connected:
    with Provider(token("first"), token("second")) as provider:
        oidc = {"token_url": provider.url, "username": "u"}
        # the CA is the API server's; the provider has no TLS here
        vim = connect_vim(door.url, oidc=oidc, ca_text=door.ca_text, options=OPTIONS)
        with vim as cluster:
            yield cluster, lambda: None


WAYS = {
    "a token in the kubeconfig": by_a_token,
    "a token in a file": by_a_token_file,
    "a plugin's token": by_a_plugin,
    "a plugin's client certificate": by_a_plugins_certificate,
    "a client certificate in files": by_certificate_files,
    "the service account of a pod": by_a_service_account,
    "OpenID Connect": by_openid_connect,
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_each_request_goes_on_with_another_login_where_the_first_is_refused(
    way: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Door("first") as door, way(door, tmp_path, monkeypatch) as (cluster, replace_login):
        cluster.list(PODS)
        replace_login()
        door.known = {"second"}
        cluster.list(PODS)
        cluster.list(PODS)
        assert door.asked == ["first", "first", "second", "second"]


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_every_kind_of_request_goes_on(
    request_: Callable[[KubernetesCluster], object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Door("second") as door, by_a_plugin(door, tmp_path, monkeypatch) as (cluster, _):
        request_(cluster)
        assert door.asked == ["first", "second"]


def test_of_many_requests_that_are_refused_one_gets_the_login_for_all(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path, {"token": "first"}, {"token": "second"}, {"token": "third"})
    with (
        Door("first", "second") as door,
        connect(door.kubeconfig(tmp_path, **plugin.user), options=OPTIONS) as cluster,
        ThreadPoolExecutor(16) as pool,
    ):
        cluster.list(PODS)
        door.known = {"second"}
        all_ask = threading.Barrier(16)

        def ask(_: int) -> object:
            all_ask.wait(20)
            return cluster.list(PODS)

        list(pool.map(ask, range(16)))
        assert plugin.runs == 2


def test_a_plugin_is_not_started_again_for_a_login_that_ends_soon(tmp_path: Path) -> None:
    soon = datetime.now(timezone.utc) + timedelta(seconds=2)
    plugin = Plugin(tmp_path, {"token": "first", "expirationTimestamp": soon.isoformat()})
    with (
        Door("first") as door,
        connect(door.kubeconfig(tmp_path, **plugin.user), options=OPTIONS) as cluster,
    ):
        for _ in range(20):
            cluster.list(PODS)
        assert plugin.runs == 1


def test_a_login_that_is_refused_again_is_an_error_and_no_plugin_runs_for_each(
    tmp_path: Path,
) -> None:
    plugin = Plugin(tmp_path, {"token": "first"})
    with (
        Door("first") as door,
        connect(door.kubeconfig(tmp_path, **plugin.user), options=OPTIONS) as cluster,
    ):
        cluster.list(PODS)
        door.known = set()
        for _ in range(5):
            told = f"does not accept the credentials of user {cluster.context.user}: check"
            with pytest.raises(ClusterError, match=told) as raised:
                cluster.list(PODS)
            assert raised.value.status == 401
        assert plugin.runs == 2


def test_a_plugin_that_has_no_login_any_more_is_named_and_its_output_is_not(
    tmp_path: Path,
) -> None:
    plugin = Plugin(tmp_path, {"token": "first"}, {})
    with (
        Door("first") as door,
        connect(door.kubeconfig(tmp_path, **plugin.user), options=OPTIONS) as cluster,
    ):
        cluster.list(PODS)
        door.known = set()
        with pytest.raises(ClusterError, match=r"list .*: the API server answered 401, and") as no:
            cluster.list(PODS)
        assert "users[u].user.exec: expected a login from" in str(no.value)
        assert "no login" not in str(no.value)
        assert no.value.status == 401


def test_another_server_in_the_kubeconfig_gets_no_request_of_this_operation(
    tmp_path: Path,
) -> None:
    with Door("first") as door, Door("first") as other:
        with connect(door.kubeconfig(tmp_path, token="first"), options=OPTIONS) as cluster:
            other.kubeconfig(tmp_path, token="first")
            door.known = set()
            with pytest.raises(ClusterError, match=f"expected the server {door.url} as before"):
                cluster.delete(POD)
        assert other.asked == []


def test_a_login_without_a_source_is_refused_at_once() -> None:
    with (
        Door() as door,
        connect_vim(door.url, bearer_token="t", ca_text=door.ca_text, options=OPTIONS) as vim,
    ):
        with pytest.raises(ClusterError, match="does not accept the credentials"):
            vim.list(PODS)
        assert door.asked == ["t"]


class Answered:
    def __init__(self, status: int) -> None:
        self.status = status

    def close(self) -> None:
        pass


def test_after_a_while_a_login_that_was_of_no_use_is_got_again() -> None:
    now, got = [100.0], [0]

    def renew() -> Login:
        got[0] += 1
        return Login(None, got[0])

    logins = Logins(Login(None, 0), renew, clock=lambda: now[0])
    statuses = [logins.send("w", lambda _: Answered(401)).status for _ in range(3)]
    assert (statuses, got) == ([401] * 3, [1])
    now[0] += 10.0
    logins.send("w", lambda _: Answered(401))
    assert got == [2]
    logins.send("w", lambda login: Answered(200 if login.pool == 2 else 401))
    logins.send("w", lambda _: Answered(401))
    assert got == [3], "one that was accepted is got again at once"


def test_a_late_refusal_of_an_old_login_gets_the_one_that_is_in_use() -> None:
    now, got = [0.0], [0]

    def renew() -> Login:
        got[0] += 1
        return Login(None, got[0])

    def late(login: Login) -> Answered:
        if login.pool == 0:
            logins.send("another", lambda its: Answered(200 if its.pool else 401))
            now[0] += 60.0
        return Answered(200 if login.pool else 401)

    logins = Logins(Login(None, 0), renew, clock=lambda: now[0])
    assert logins.send("w", late).status == 200
    assert got == [1]
