# SPDX-License-Identifier: Apache-2.0
"""The script that asks an external manager, with a small manager to ask."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from container_update.package.tools import samples

SCRIPT = samples.root() / "coordination/ask_manager.py"
LINKS = {name: {"href": f"http://vnfm/{name}"} for name in ("vnfLcmOpOcc", "vnfInstance")}
PLACE = "/lcmcoord/v1/coordinations"


class Manager(ThreadingHTTPServer):
    """A producer of SOL002's LCM Coordination interface that answers what it is told to."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.result = "CONTINUE"
        self.busy = 0
        """So many requests are answered with 503 first."""
        self.working = 0
        """So many requests for the result are answered with 202 first."""
        self.synchronous = False
        self.status = 0
        """Answered to everything, unless 0."""
        self.asked: list[tuple[str, str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Manager

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(("POST", self.path, body))
        if self.server.status:
            self._answer(self.server.status)
        elif self.server.busy:
            self.server.busy -= 1
            self._answer(503, {"Retry-After": "0"})
        elif self.server.synchronous:
            self._answer(201, {}, {"coordinationResult": self.server.result})
        else:
            self._answer(202, {"Location": f"{PLACE}/7", "Retry-After": "0"})

    def do_GET(self) -> None:
        self.server.asked.append(("GET", self.path, None))
        if self.server.working:
            self.server.working -= 1
            self._answer(202, {"Retry-After": "0"})
        else:
            self._answer(200, {}, {"coordinationResult": self.server.result})

    def _answer(self, status: int, headers: dict[str, str] | None = None, body: Any = None) -> None:
        data = json.dumps(body or {}).encode()
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def manager() -> Iterator[Manager]:
    """A running one."""
    server = Manager()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def ask(url: str) -> subprocess.CompletedProcess[bytes]:
    """Run the script as a change runs it."""
    coordination = {
        "vnf": "new",
        "instance_id": "instance",
        "vdu_id": "VDU1",
        "old_resource": "web",
        "new_resource": "web-2",
    }
    context = {
        "request": {"additionalParams": {"lcmcoord-url": url}},
        "LcmCoordRequest": {
            "vnfInstanceId": "instance",
            "vnfLcmOpOccId": "operation",
            "lcmOperationType": "CHANGE_VNFPKG",
            "coordinationActionName": "any",
            "_links": LINKS,
        },
        "coordination": coordination,
    }
    return subprocess.run(
        [sys.executable, str(SCRIPT)], input=pickle.dumps(context), capture_output=True, check=False
    )


@pytest.mark.parametrize("synchronous", [True, False])
def test_the_change_goes_on_when_the_manager_says_so(manager: Manager, synchronous: bool) -> None:
    manager.synchronous, manager.busy, manager.working = synchronous, 1, 2
    done = ask(manager.url)
    assert done.returncode == 0, done.stderr
    posts = [body for method, path, body in manager.asked if (method, path) == ("POST", PLACE)]
    assert len(posts) == 2
    assert posts[0] == {
        "vnfInstanceId": "instance",
        "vnfLcmOpOccId": "operation",
        "lcmOperationType": "CHANGE_VNFPKG",
        "coordinationActionName": "coordinate_new_vnf",
        "inputParams": {"vduId": "VDU1", "oldResource": "web", "newResource": "web-2"},
        "_links": LINKS,
    }
    gets = [path for method, path, _ in manager.asked if method == "GET"]
    assert gets == ([] if synchronous else [f"{PLACE}/7"] * 3)


@pytest.mark.parametrize("result", ["ABORT", "CANCELLED"])
def test_the_change_does_not_go_on_when_the_manager_says_no(manager: Manager, result: str) -> None:
    manager.result = result
    done = ask(manager.url)
    assert done.returncode == 1
    assert f"does not let the change go on: {result}".encode() in done.stderr


def test_a_manager_that_refuses_is_named_with_its_answer(manager: Manager) -> None:
    manager.status = 409
    done = ask(manager.url)
    assert done.returncode == 1
    assert b"the manager answered 409" in done.stderr


def test_a_manager_that_is_not_there_is_a_failure() -> None:
    assert ask("http://127.0.0.1:1").returncode == 1


@pytest.mark.parametrize("url", ["", "file:///etc/passwd"])
def test_only_the_web_is_asked(url: str) -> None:
    done = ask(url)
    assert done.returncode == 1
    assert b"lcmcoord-url" in done.stderr
