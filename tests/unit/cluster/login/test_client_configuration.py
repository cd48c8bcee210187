# SPDX-License-Identifier: Apache-2.0
"""How an API server is reached: by which way, and under which name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from container_update.cluster.client import connect
from container_update.model.errors import ClusterError

PROXY = "http://proxy:3128"


def kubeconfig(folder: Path, user: dict[str, Any] | None = None, **cluster: Any) -> str:
    file = folder / "config"
    content = {
        "clusters": [{"name": "c", "cluster": {"server": "https://10.1.2.3:6443", **cluster}}],
        "users": [{"name": "u", "user": user or {"token": "pl4nted"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file.write_text(json.dumps(content))
    return str(file)


@pytest.mark.parametrize(
    ("excepted", "direct"),
    [
        ("", False),
        ("*", True),
        ("10.0.0.0/8", True),
        ("192.168.0.0/16", False),
        ("10.1.2.3", True),
        (".example.com, 10.1.2.3:6443", True),
    ],
)
def test_the_proxy_of_the_environment_is_used_but_for_what_it_excepts(
    excepted: str, direct: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", PROXY)
    monkeypatch.setenv("no_proxy", excepted)
    with connect(kubeconfig(tmp_path)) as cluster:
        assert (cluster._logins.current.pool.proxy is None) is direct


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3", "[::1]"])
def test_a_server_of_this_host_is_reached_directly_as_by_kubectl(
    host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", PROXY)
    with connect(kubeconfig(tmp_path, server=f"https://{host}:6443")) as cluster:
        assert cluster._logins.current.pool.proxy is None


def test_the_proxy_and_the_name_of_a_kubeconfig_are_used(tmp_path: Path) -> None:
    its = {"proxy-url": PROXY, "tls-server-name": "kubernetes.example"}
    with connect(kubeconfig(tmp_path, **its)) as cluster:
        pool = cluster._logins.current.pool
    assert str(pool.proxy) == PROXY
    assert pool.connection_pool_kw["server_hostname"] == "kubernetes.example"


@pytest.mark.parametrize(
    ("user", "told"),
    [
        ({"client-key-data": "pl4nted!"}, "client-key-data: expected PEM in base64"),
        ({"client-certificate": "pl4nted.crt"}, "client-certificate: there is no such file"),
        ({"tokenFile": "none"}, "tokenFile: it cannot be read"),
        ({"username": "u"}, "password: a username has a password"),
        ({"auth-provider": {"name": "oidc", "config": {}}}, "no token can be got"),
    ],
)
def test_what_is_wrong_with_a_login_is_told_with_its_place(
    user: dict[str, Any], told: str, tmp_path: Path
) -> None:
    with pytest.raises(ClusterError, match=rf"users\[u\].user.{told}|{told}") as raised:
        connect(kubeconfig(tmp_path, user))
    assert "pl4nted!" not in str(raised.value)


def test_the_token_of_an_auth_provider_is_used(tmp_path: Path) -> None:
    user = {"auth-provider": {"name": "oidc", "config": {"id-token": "e30.e30.e30"}}}
    with connect(kubeconfig(tmp_path, user)) as cluster:
        headers = cluster._logins.current.headers(has_body=False)
    assert headers["authorization"] == "Bearer e30.e30.e30"
