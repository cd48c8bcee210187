# SPDX-License-Identifier: Apache-2.0
"""The client of Heat, without a Heat."""

from __future__ import annotations

import json
import socket
import threading
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import requests

from container_update.model.errors import ClusterError
from container_update.model.options import Options
from container_update.openstack.answers import MOST_BYTES, MOST_VALUES
from container_update.openstack.client import Heat, connect


class Adapter:
    """Stands for keystoneauth's adapter."""

    def __init__(
        self,
        endpoint: str | None,
        endpoint_override: str | None = None,
        body: bytes = b'{"stacks": []}',
    ) -> None:
        self.endpoint, self.endpoint_override, self.body = endpoint, endpoint_override, body
        self.questions = 0
        self.addresses: list[str | None] = []

    def get_endpoint(self) -> str | None:
        """Look the address up."""
        self.questions += 1
        return self.endpoint

    def request(self, *_: Any, **__: Any) -> requests.Response:
        """Answer, as a rule that there are no stacks."""
        self.addresses.append(self.endpoint_override)
        answer = requests.Response()
        answer.status_code, answer._content = 200, self.body
        answer.request = requests.PreparedRequest()
        answer.request.method, answer.url = "GET", "http://h/v1/p/stacks"
        return answer

    get = request


@pytest.mark.parametrize(
    ("adapter", "questions", "address"),
    [
        pytest.param(Adapter("http://h/v1/p"), 1, "http://h/v1/p", id="of the catalogue"),
        pytest.param(Adapter("http://h/v1/a%20b"), 1, "http://h/v1/a%%20b", id="with an escape"),
        pytest.param(Adapter("http://h", "http://own"), 0, "http://own", id="of clouds.yaml"),
        pytest.param(Adapter(None), 2, None, id="none: the adapter says so"),
    ],
)
def test_the_address_of_heat_is_looked_up_once(
    adapter: Any, questions: int, address: str | None
) -> None:
    heat = Heat(adapter, adapter, adapter, retry_seconds=0, journal_key=str)
    assert [heat.stacks(), heat.stacks()] == [[], []]
    assert (adapter.questions, adapter.addresses) == (questions, [address] * 2)


def answering(text: str) -> Heat:
    """Return the client of services that answer everything with this."""
    adapter: Any = Adapter("http://h", body=text.encode("utf-8", "surrogatepass"))
    return Heat(adapter, adapter, adapter, retry_seconds=0, journal_key=str)


@pytest.mark.parametrize(
    ("ask", "text", "found"),
    [
        (lambda heat: heat.stacks(), "<html>", r"something else \(no Content-Type\)"),
        (lambda heat: heat.stacks(), "[" * 10**6, r"something else \(no Content-Type\)"),
        (lambda heat: heat.stacks(), '{"stacks": {}}', "stacks: expected a list, found a mapping"),
        (lambda heat: heat.stacks(), '{"stacks": [7]}', r"stacks\[0\]: .* found a number"),
        (lambda heat: heat.stack("s"), '{"stack": {"id": "1"}}', r"stack.stack_\w+: .* nothing"),
        (lambda heat: heat.create({"stack_name": "s"}), '{"stack": {}}', "stack.id: expected text"),
        (lambda heat: heat.resources("s"), '{"resources": [{}]}', r"resources\[0\]\.\w+: "),
        (lambda heat: heat.template("s"), "{}", "resources: expected a mapping, found nothing"),
        (lambda heat: heat.environment("s"), '{"parameters": [7]}', "parameters: "),
        (lambda heat: heat.files("s"), '{"a": {}}', "a: expected text, found a mapping"),
    ],
)
def test_an_answer_of_another_form_is_an_error_that_names_request_and_field(
    ask: Callable[[Heat], object], text: str, found: str
) -> None:
    with pytest.raises(ClusterError, match=rf"^GET /v1/p/stacks: expected .*{found}.*: check"):
        ask(answering(text))


@pytest.mark.parametrize(
    "text", ["[7]", '{"flavors": {}}', '{"flavors": [{"id": 7}]}', "[" * 10**6]
)
def test_a_flavour_that_nova_does_not_describe_is_not_known(text: str) -> None:
    assert answering(text).flavour_disk("small") is None


def answer(
    handler: BaseHTTPRequestHandler, status: int, content: object, headers: Mapping[str, str]
) -> None:
    """Send a whole answer."""
    body = json.dumps(content).encode()
    handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
    handler.send_response(status)
    length = {"Content-Length": str(len(body)), "Content-Type": "application/json"}
    for name, value in {**length, **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


@contextmanager
def cloud(
    behaviour: Callable[[BaseHTTPRequestHandler], None], *, begins: bool = True
) -> Iterator[Heat]:
    """Yield the client of a cloud whose Keystone behaves so.

    :param begins: each of its answers has begun before.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if begins:
                self.send_response(200)
                self.end_headers()
            with suppress(OSError):  # the client has gone
                behaviour(self)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    threading.Thread(target=listening.serve_forever, args=[0.01], daemon=True).start()
    names = {"username": "u", "password": "p", "project_name": "p", "user_domain_name": "d"}
    auth = {"auth_url": f"http://127.0.0.1:{listening.server_port}/v3", **names}
    auth |= {"project_domain_name": "d"}
    try:
        with connect(auth=auth, options=Options(request_timeout=1, retry_seconds=0)) as heat:
            yield heat
    finally:
        listening.shutdown()
        listening.server_close()


@pytest.mark.parametrize("status", [301, 302, 303, 305, 307, 308])
@pytest.mark.parametrize("asked", ["Keystone for a token", "Heat with it"])
def test_no_redirect_takes_credentials_to_another_port(status: int, asked: str) -> None:
    """Keystone would be told the password, Heat the token."""
    with socket.create_server(("127.0.0.1", 0)) as thief:
        thief.setblocking(False)

        def redirect(handler: BaseHTTPRequestHandler) -> None:
            own = f"http://{handler.headers['Host']}"
            url = f"http://127.0.0.1:{thief.getsockname()[1]}/x"
            if handler.command == "POST" and asked.startswith("Heat"):
                answer(handler, 201, _token(own), {"X-Subject-Token": "t"})
            elif handler.path.startswith("/v3") and handler.command == "GET":
                links = [{"rel": "self", "href": f"{own}/v3/"}]
                version = {"id": "v3.14", "status": "stable", "links": links}
                answer(handler, 200, {"version": version}, {})
            else:
                answer(handler, status, {}, {"Location": url})

        with cloud(redirect, begins=False) as heat, pytest.raises(ClusterError, match="redirects"):
            heat.stacks()
        with pytest.raises(BlockingIOError):
            thief.accept()


def _token(url: str) -> dict[str, Any]:
    """Return what Keystone says of a token."""
    named = {"id": "x", "name": "x"}
    endpoint = {"interface": "public", "region": "r", "region_id": "r", "url": url, "id": "x"}
    services = [
        {**named, "type": kind, "endpoints": [{**endpoint, "url": f"{url}/{kind}"}]}
        for kind in ("orchestration", "compute", "image")
    ]
    scoped = {**named, "domain": named}
    times = {"expires_at": "2999-01-01T00:00:00Z", "issued_at": "2026-01-01T00:00:00Z"}
    return {"token": {**times, "user": scoped, "project": scoped, "catalog": services}}


@pytest.mark.parametrize("part", [b" ", b"[],"])
def test_an_answer_of_keystone_without_an_end_is_not_kept(part: bytes) -> None:
    def flood(handler: BaseHTTPRequestHandler) -> None:
        while True:
            handler.wfile.write(part * 65536)

    with cloud(flood) as heat:
        tracemalloc.start()
        try:
            # a busy machine may not get the first bytes within the second that a read may take
            told = r"expected an answer of|no complete answer|Read timed out"
            with pytest.raises(ClusterError, match=told):
                heat.stacks()
            most = 3 * MOST_BYTES if part == b" " else 10 * MOST_VALUES
            assert tracemalloc.get_traced_memory()[1] < most
        finally:
            tracemalloc.stop()


def test_an_answer_of_keystone_that_never_comes_to_its_end_is_not_waited_for() -> None:
    done = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        while not done.wait(0.05):
            handler.wfile.write(b" ")

    with cloud(drip) as heat:
        # on a busy machine a pause of it may be as long as the whole time
        with pytest.raises(ClusterError, match=r"no complete answer within 1 s|Read timed out"):
            heat.stacks()
        done.set()
