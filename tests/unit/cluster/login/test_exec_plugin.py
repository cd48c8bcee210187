# SPDX-License-Identifier: Apache-2.0
"""Plugins of a kubeconfig: what they are told, what they may print, and how long they may take."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from container_update.cluster.client import connect
from container_update.cluster.login import exec_plugin
from container_update.model.errors import ClusterError
from container_update.model.options import Options
from tests.unit.cluster.login.door import Door

VERSION = "client.authentication.k8s.io/v1"
LOGIN = {"apiVersion": VERSION, "kind": "ExecCredential", "status": {"token": "pl4nted"}}


def user(code: str, **more: Any) -> dict[str, Any]:
    return {
        "exec": {
            "apiVersion": VERSION,
            "command": sys.executable,
            "args": ["-c", code],
            **more,
        }
    }


def failure(folder: Path, user: dict[str, Any]) -> str:
    """Return why connecting fails."""
    with Door() as door, pytest.raises(ClusterError) as raised:
        connect(door.kubeconfig(folder, **user), options=Options(request_timeout=1))
    assert "pl4nted" not in str(raised.value)
    return str(raised.value)


def printing(answer: Any) -> str:
    return f"print({json.dumps(answer)!r})"


BAD_PROGRAMS = {
    "it never ends": ("import time; time.sleep(1000)", "did not end within 1 seconds"),
    "what it has started never ends": (
        "import subprocess, sys;"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'])",
        "did not end within 1 seconds",
    ),
    "it is silent, and never ends": (
        "import os, time; os.close(1); os.close(2); time.sleep(1000)",
        "did not end within 1 seconds",
    ),
    "it prints for ever": ("while True: print('pl4nted' * 999)", "at most 262144 bytes"),
    "it complains for ever": (
        "import sys\nwhile True: print('x' * 999, file=sys.stderr)",
        "at most 262144 bytes",
    ),
    "it fails": (
        "import sys; print('pl4nted'); sys.exit('old\\nlog in\\x1b[2J again')",
        "status 1: log in\ufffd[2J again: run it by hand",
    ),
    "it fails without a word": ("raise SystemExit(3)", "it ended with status 3: run it"),
    "it prints nothing": ("", "it prints no JSON"),
    "it prints a token": ("print('pl4nted')", "it prints no JSON"),
    "it prints depth": ("print('[' * 100000)", "it prints no JSON"),
    "it prints a list": (printing([LOGIN]), f"no ExecCredential of {VERSION}"),
    "another version": (printing({**LOGIN, "apiVersion": "v2"}), "no ExecCredential"),
    "no status": (printing({**LOGIN, "status": None}), "neither a token nor a client certificate"),
    "a number as token": (printing({**LOGIN, "status": {"token": 5}}), "neither a token nor"),
    "a certificate without key": (
        printing({**LOGIN, "status": {"token": "pl4nted", "clientCertificateData": "pl4nted"}}),
        "nor a client certificate with its key",
    ),
}


@pytest.mark.parametrize(("code", "told"), BAD_PROGRAMS.values(), ids=BAD_PROGRAMS)
def test_a_plugin_without_a_login_is_an_error_that_quotes_nothing(
    code: str, told: str, tmp_path: Path
) -> None:
    message = failure(tmp_path, user(code))
    assert told in message
    assert f"kubeconfig {tmp_path}/config: users[u].user.exec: expected a login from" in message


ENDLESS = {
    "it never ends": ("import time; time.sleep(1000)", "it did not end within 1 seconds: run it"),
    "it prints for ever": ("while True: print('pl4nted' * 999)", "at most 262144 bytes"),
}


@pytest.mark.parametrize(("code", "told"), ENDLESS.values(), ids=ENDLESS)
def test_a_plugin_that_may_ask_on_a_terminal_has_limits_too(
    code: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "isatty", lambda _: True)
    monkeypatch.setattr(exec_plugin, "ASKING_SECONDS", 1.0)
    message = failure(tmp_path, user(code, interactiveMode="IfAvailable"))
    assert f"expected a login from {sys.executable}" in message
    assert told in message


BAD_CONFIGURATIONS = {
    "no version": ({"apiVersion": None}, ".apiVersion: expected client.authentication"),
    "no command": ({"command": ""}, ".command: expected a program"),
    "a text as args": ({"args": "pl4nted"}, ".args: expected a list, found text"),
    "numbers as args": ({"args": [5]}, ".args[0]: expected text"),
    "env without values": ({"env": [{"name": "x"}]}, ".env[0].value: expected text"),
    "a text as env": ({"env": "pl4nted"}, ".env: expected a list, found text"),
    "texts as env": ({"env": ["pl4nted"]}, ".env[0]: expected a mapping"),
    "not there": (
        {"command": "not-there-4711", "installHint": "fetch it there"},
        "not-there-4711 cannot be started: No such file or directory: fetch it there",
    ),
    "a terminal is needed": ({"interactiveMode": "Always"}, "asks on a terminal, and there is"),
}


@pytest.mark.parametrize(("more", "told"), BAD_CONFIGURATIONS.values(), ids=BAD_CONFIGURATIONS)
def test_what_is_wrong_with_the_plugins_entry_is_told_with_its_place(
    more: dict[str, Any], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "isatty", lambda _: False)
    message = failure(tmp_path, user("", **more))
    assert told in message
    assert f"{tmp_path}/config: users[u].user.exec" in message


def test_a_plugin_is_told_what_it_is_for_as_kubectl_does(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "plugin"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport json, os, pathlib\n"
        f"told = dict(info=json.loads(os.environ['KUBERNETES_EXEC_INFO']), x=os.environ['X'])\n"
        f"pathlib.Path({str(tmp_path / 'told')!r}).write_text(json.dumps(told))\n"
        + printing({**LOGIN, "status": {"token": "first"}})
    )
    program.chmod(0o700)
    wanted = {"apiVersion": VERSION, "command": "bin/plugin", "interactiveMode": "Never"}
    env = [{"name": "X", "value": "y"}]
    with Door("first") as door:
        file = door.kubeconfig(tmp_path, exec={**wanted, "env": env, "provideClusterInfo": True})
        with connect(file) as cluster:
            cluster.version()
        told = json.loads((tmp_path / "told").read_text())
        assert told["x"] == "y"
        assert told["info"]["kind"] == "ExecCredential"
        assert told["info"]["spec"]["interactive"] is False
        assert told["info"]["spec"]["cluster"]["server"] == door.url
        assert told["info"]["spec"]["cluster"]["certificate-authority-data"]


@pytest.mark.parametrize("own", [{"token": "first"}, {"tokenFile": "t"}])
def test_a_user_with_a_token_needs_no_plugin(own: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "t").write_text("first")
    with Door("first") as door:
        file = door.kubeconfig(tmp_path, **user("raise SystemExit(1)"), **own)
        with connect(file) as cluster:
            cluster.version()
