# SPDX-License-Identifier: Apache-2.0
"""Whatever a VIM answers, no request about it is answered with a failure of the service."""

from __future__ import annotations

import copy
import json
import random
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from fastapi.testclient import TestClient

from container_update import Options
from container_update.emulator.http_server import Handler
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.vnfm import vnfs
from tests.vnfm.client import Client

Json = dict[str, Any]
Path_ = tuple[str | int, ...]
WRONG: tuple[Any, ...] = (None, 7, "x", [], [7], [None], {}, {"x": 7})
"""What stands in the place of a value of another type."""
MUTATIONS = 100
"""Answers with one wrong value, drawn with a fixed seed."""
NAMED = {"metadata": {"name": "x", "namespace": "default", "uid": "1", "resourceVersion": "1"}}
WHOLE: dict[str, Any] = {
    "a list": [],
    "a text": "x",
    "null": None,
    "nothing": {},
    "a list of nothing": {"kind": "List", "items": []},
    "items that are numbers": {"metadata": {"resourceVersion": "1"}, "items": [7]},
    "items that are an object": {"metadata": {"resourceVersion": "1"}, "items": {"a": 1}},
    "items of no kind": {"metadata": {"resourceVersion": "1"}, "items": [NAMED]},
    "resources of numbers": {"resources": [7], "groups": [7], "versions": 7},
    "an error": {"kind": "Status", "status": "Failure", "code": "x", "details": 7},
}


class Hostile:
    """A middleware that answers with something else."""

    def __init__(self) -> None:
        self.change: Callable[[Any], Any] = lambda true: true
        """Returns the answer in place of the true one."""
        self.seen: list[Any] = []
        """The true answers."""

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        answer = await handler(request)
        is_json = isinstance(answer, web.Response) and answer.content_type == "application/json"
        if not is_json or request.method != "GET" or answer.status != 200:
            return answer
        true = json.loads(answer.text)
        self.seen.append(true)
        return web.json_response(self.change(true))


def paths_in(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Yield where the values are; of a list only where those of its first item are."""
    yield path
    if isinstance(value, dict):
        for name, below in value.items():
            yield from paths_in(below, (*path, name))
    elif isinstance(value, list) and value:
        yield from paths_in(value[0], (*path, 0))


def with_wrong(answer: Any, path: Path_, wrong: Any) -> Any:
    """Return an answer with a wrong value at a path, if it has that path."""
    if not path:
        return wrong
    changed = below = copy.deepcopy(answer)
    try:
        for step in path[:-1]:
            below = below[step]
        below[path[-1]]
    except (KeyError, IndexError, TypeError):
        return answer
    below[path[-1]] = wrong
    return changed


@pytest.fixture
def options() -> Options:
    return Options(timeout=30, retry_seconds=0, request_timeout=5)


@pytest.mark.parametrize("api", ["v1", "v2"])
def test_an_answer_of_another_shape_is_the_vims_fault(
    http: TestClient, api: str, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    client, hostile = Client(http, api), Hostile()
    packages = [vnfs.package(tmp_path, version, vnfs.ours(api))[0] for version in ("1.0", "2.0")]
    old, new = map(client.onboard, packages)
    path = client.create(old)
    client.do("POST", f"{path}/instantiate", vnfs.instantiation(client.vims(cluster)))
    access = {"bearer_token": cluster.token, "ssl_ca_cert": cluster.ca_text}
    vim = {"type": "kubernetes", "name": "one", "auth_url": cluster.url, "auth_cred": access}
    client.call("POST", "/v1.0/vims", {"vim": vim}, 201)
    plan = {"operation": "MODIFY_INFO", "request": vnfs.modification(new)}
    wrong: list[str] = []

    def ask(what: str) -> None:
        for method, asked, body in (
            ("GET", "/v1.0/vims", None),
            ("GET", f"{path}/resources", None),
            ("POST", f"{path}/plan", plan),
        ):
            answer = client.send(method, asked, body)
            if answer.status_code not in (200, 409, 422, 502):
                wrong.append(f"{what}: {method} {asked}: {answer.status_code}")

    cluster.middlewares.append(hostile)
    ask("nothing")
    seen, hostile.seen = hostile.seen, []
    for what, document in WHOLE.items():
        hostile.change = lambda _, document=document: document
        ask(what)
    places = sorted({path for each in seen for path in paths_in(each)}, key=str)
    rng = random.Random(1)
    for _ in range(MUTATIONS):
        place, value = rng.choice(places), rng.choice(WRONG)
        hostile.change = lambda true, place=place, value=value: with_wrong(true, place, value)
        ask(f"{place} is {value!r}")
    assert wrong == []


class Stranger(BaseHTTPRequestHandler):
    """A server that has one answer to everything."""

    answer = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("X-Subject-Token", "t")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self.answer)))
        self.end_headers()
        self.wfile.write(self.answer)

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


TOKEN = {"token": {"expires_at": 7, "catalog": [7], "user": [], "roles": "x"}}


@pytest.mark.parametrize("kind", ["kubernetes", "openstack"])
def test_a_vim_that_is_none_is_listed_as_an_error(http: TestClient, kind: str) -> None:
    client, handler = Client(http), type("Handler", (Stranger,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        access = {"username": "u", "password": "p"}
        vim = {"type": kind, "name": "one", "auth_url": f"http://127.0.0.1:{server.server_port}/v3"}
        client.call("POST", "/v1.0/vims", {"vim": {**vim, "auth_cred": access}}, 201)
        for document in (*WHOLE.values(), TOKEN):
            handler.answer = json.dumps(document).encode()
            (shown,) = client.call("GET", "/v1.0/vims")["vims"]
            # an API server whose answer is any JSON object cannot be told from a true one
            assert shown["status"] == "ERROR" or kind == "kubernetes"
        server.shutdown()
