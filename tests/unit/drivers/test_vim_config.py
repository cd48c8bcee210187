# SPDX-License-Identifier: Apache-2.0
"""A kubeconfig's context as the configuration of a VIM, as the client of Tacker reads it."""

from __future__ import annotations

import base64
import io
import re
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml
from tackerclient.tacker.v1_0.nfvo import vim_utils

from container_update.cli.main import main
from container_update.drivers import vim
from container_update.emulator.kubernetes import EmbeddedCluster
from container_update.model.objects import ObjectKey
from container_update.model.options import Options

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\nAgIB\n-----END CERTIFICATE-----\n"
IN_ONE_LINE = CERTIFICATE.replace("\n", " ").strip()
DATA = base64.b64encode(CERTIFICATE.encode()).decode()


def kubeconfig(folder: Path, user: dict[str, Any] | None, **cluster: Any) -> str:
    """Write a kubeconfig whose context has the namespace cnf, and the files that it may name."""
    (folder / "ca.crt").write_text(CERTIFICATE)
    (folder / "token").write_text("from-file\n")
    content = {
        "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": "https://k8s:6443", **cluster}}],
        "users": [{"name": "u", "user": user}] if user is not None else [],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "cnf"}}],
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(content))
    return str(path)


def written(*words: str) -> dict[str, Any]:
    out = io.StringIO()
    assert main(["vnfm", "vim-config", *words], out) == 0
    body: dict[str, Any] = yaml.safe_load(out.getvalue())
    return body


LOGINS = {
    "token": ({"token": "t"}, {"bearer_token": "t"}),
    "token file": ({"tokenFile": "token", "token": "t"}, {"bearer_token": "from-file"}),
    "password": ({"username": "u", "password": "p"}, {"username": "u", "password": "p"}),
    "token and certificate": (
        {"token": "t", "client-certificate-data": DATA},
        {"bearer_token": "t"},
    ),
}
AUTHORITIES = {
    "data": ({"certificate-authority-data": DATA}, {"ssl_ca_cert": IN_ONE_LINE}),
    "file": ({"certificate-authority": "ca.crt"}, {"ssl_ca_cert": IN_ONE_LINE}),
    "none": ({}, {}),
}


@pytest.mark.parametrize(("cluster", "authority"), AUTHORITIES.values(), ids=AUTHORITIES)
@pytest.mark.parametrize(("user", "login"), LOGINS.values(), ids=LOGINS)
def test_the_client_of_tacker_reads_what_is_written(
    user: dict[str, str],
    login: dict[str, str],
    cluster: dict[str, str],
    authority: dict[str, str],
    tmp_path: Path,
) -> None:
    body = written("--kubeconfig", kubeconfig(tmp_path, user, **cluster))
    assert body.pop("auth_url") == "https://k8s:6443"
    read: dict[str, Any] = {}
    vim_utils.args2body_vim(body, read)
    assert read == {
        "type": "kubernetes",
        "vim_project": {"name": "cnf"},
        "auth_cred": {**login, **authority},
    }
    assert body == {}


def test_a_cluster_is_reached_with_what_is_written(tmp_path: Path) -> None:
    with EmbeddedCluster() as embedded:
        path = embedded.write_kubeconfig(tmp_path / "config")
        body = written("--kubeconfig", str(path), "-n", "other")
        assert body["project_name"] == "other"
        interface = {"endpoint": body["auth_url"], "ssl_ca_cert": body["ssl_ca_cert"]}
        connection = {"interfaceInfo": interface, "accessInfo": body}
        with vim.connect_to(connection, Options()) as cluster:  # type: ignore[attr-defined]
            assert cluster.get(ObjectKey("", "Namespace", "", "default"))


REFUSED: dict[str, tuple[dict[str, Any] | None, dict[str, Any], str]] = {
    "command": ({"exec": {"command": "login"}}, {}, "users[u].user: found a command that fetches"),
    "auth provider": ({"auth-provider": {"name": "gcp"}}, {}, "found an auth provider: expected a"),
    "certificate": ({"client-certificate": "ca.crt"}, {}, "found a client certificate: expected"),
    "certificate data": ({"client-certificate-data": DATA}, {}, "found a client certificate: exp"),
    "no password": ({"username": "pl4nted"}, {}, "users[u].user: found no login: expected a token"),
    "no user": (None, {}, "contexts[x].context.user: found no such user: expected a token"),
    "no token file": ({"tokenFile": "none"}, {}, "users[u].user.tokenFile: none cannot be read"),
    "token of two lines": ({"token": "pl4nted\nx"}, {}, "do not fit into an HTTP header"),
    "no authority file": (
        {"token": "pl4nted"},
        {"certificate-authority": "none"},
        "clusters[c].cluster.certificate-authority: none cannot be read",
    ),
    "broken authority": (
        {"token": "pl4nted"},
        {"certificate-authority-data": "!"},
        "clusters[c].cluster.certificate-authority-data: expected a certificate",
    ),
    "login in the URL": (
        {"token": "pl4nted"},
        {"server": "https://u:pl4nted@k8s"},
        "clusters[c].cluster.server: expected http://HOST",
    ),
}


@pytest.mark.parametrize(("user", "cluster", "told"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_into_a_vim_is_told_without_a_credential(
    user: dict[str, Any] | None,
    cluster: dict[str, Any],
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = io.StringIO()
    assert (
        main(["vnfm", "vim-config", "--kubeconfig", kubeconfig(tmp_path, user, **cluster)], out)
        == 6
    )
    error = capsys.readouterr().err
    assert told in error
    assert "pl4nted" not in error + out.getvalue()


def test_a_new_file_is_for_its_owner_only_and_an_existing_one_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, config = tmp_path / "vim.yaml", kubeconfig(tmp_path, {"token": "pl4nted"})
    words, out = ["vnfm", "vim-config", "--kubeconfig", config, "--to", str(file)], io.StringIO()
    assert main(words, out) == 0
    assert out.getvalue() == f"openstack vim register --config-file {file} NAME\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text()
    assert "bearer_token: pl4nted\n" in text
    told = capsys.readouterr().err
    assert re.search("holds a credential", told)
    assert "names no certificate authority" in told
    assert main(words, out) == 4
    assert f"{file} exists" in capsys.readouterr().err
    assert file.read_text() == text


def test_without_a_kubeconfig_there_is_nothing_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    assert main(["vnfm", "vim-config"]) == 6
    assert "found no kubeconfig" in capsys.readouterr().err
