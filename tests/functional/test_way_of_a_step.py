# SPDX-License-Identifier: Apache-2.0
"""How many functions a newcomer reads on the way from a command to its first request."""

from __future__ import annotations

import io
import traceback
from pathlib import Path
from typing import Any

import pytest
import urllib3

from tests.internals.core import main

GUIDE = Path(__file__).parents[2] / "samples/01-user-guide/v1"
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: lab
clusters: [{name: lab, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: ann, user: {token: t}}]
contexts: [{name: lab, context: {cluster: lab, user: ann, namespace: cnf}}]
"""


MOST = 14
"""One more has to be worth it."""


@pytest.mark.parametrize(
    "command",
    [
        "status",
        "history",
        "list",
        "plan {v1} {v2}",
        "apply {v1} {v2} --yes",
        "apply {v1} {v2} --yes --instance-id upf",
        "change {v1} {v2} --upgrade-type RollingUpdate --yes",
        "install {v1} --yes",
        "uninstall --yes",
        "undo --yes",
        "resume",
        "rollback",
    ],
)
def test_a_command_is_near_its_first_request(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways: list[list[str]] = []

    def request(*_: Any, **__: Any) -> None:
        frames = [f for f in traceback.extract_stack() if "/container_update/" in f.filename]
        ways.append(list(dict.fromkeys(frame.name for frame in frames)))
        raise urllib3.exceptions.ProtocolError

    monkeypatch.setattr(urllib3.PoolManager, "request", request)
    (tmp_path / "config").write_text(KUBECONFIG)
    words = command.format(v1=GUIDE / "before", v2=GUIDE / "after").split()
    main([*words, "--kubeconfig", str(tmp_path / "config")], io.StringIO())
    assert len(ways[0]) <= MOST, ways[0]
