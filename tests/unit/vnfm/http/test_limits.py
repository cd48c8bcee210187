# SPDX-License-Identifier: Apache-2.0
"""The limits of every request, and the form of refusals."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from container_update.vnfm.http import error_responses, limits
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.settings import Settings

PACKAGE = "/vnfpkgm/v1/vnf_packages/1/package_content"


class Shape(BaseModel):
    """A body."""

    name: str
    number: int = 0


class Service:
    """A service with limits and a handler of each kind."""

    def __init__(self, **changed: Any) -> None:
        settings = Settings(**{"request_bytes": 100, "upload_bytes": 1000, **changed})
        self.read = 0
        app = FastAPI(docs_url=None, redoc_url=None)
        error_responses.install(app)
        limits.install(app, settings)

        async def stream(request: Request) -> int:
            self.read = 0
            async for chunk in request.stream():
                self.read += len(chunk)
            return self.read

        def shaped(shape: Shape) -> str:
            return shape.name

        def refuse() -> None:
            raise ProblemError(409, "wait", title="Busy", headers={"Retry-After": "7"})

        def fail() -> None:
            raise RuntimeError("hunter2")

        app.add_api_route("/stream", stream, methods=["POST", "PUT"])
        app.add_api_route(PACKAGE, stream, methods=["PUT"])
        app.add_api_route("/shaped", shaped, methods=["POST", "GET"])
        app.add_api_route("/refuse", refuse)
        app.add_api_route("/fail", fail)
        self.client = TestClient(
            app, base_url="http://localhost:9890", raise_server_exceptions=False
        )


def chunks(size: int, count: int) -> Iterator[bytes]:
    """Yield a body without a Content-Length."""
    for _ in range(count):
        yield b"x" * size


@pytest.mark.parametrize(
    ("method", "path", "most"),
    [("POST", "/stream", 100), ("PUT", "/stream", 100), ("PUT", PACKAGE, 1000)],
)
def test_the_size_of_a_body_is_limited(method: str, path: str, most: int) -> None:
    service = Service()
    for content in (b"x" * most, chunks(10, most // 10)):
        assert service.client.request(method, path, content=content).json() == most
    for content in (b"x" * (most + 1), chunks(10, most // 10 + 1)):
        service.read = 0
        answer = service.client.request(method, path, content=content)
        assert answer.status_code == 413
        assert answer.headers["content-type"] == error_responses.MEDIA_TYPE
        assert f"more than {most} bytes" in answer.json()["detail"]
        assert service.read <= most


def test_the_size_of_a_json_body_is_limited_too() -> None:
    body = json.dumps({"name": "x" * 200}).encode()
    for content in (body, iter([body[:50], body[50:]])):
        answer = Service().client.post(
            "/shaped", content=content, headers={"Content-Type": "application/json"}
        )
        assert answer.status_code == 413


def test_a_content_length_that_is_no_number_is_refused() -> None:
    headers = {"Content-Length": "many"}
    assert Service().client.post("/stream", headers=headers).status_code in (400, 413)


def test_a_stalled_body_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHUNK_SECONDS", 0.05)
    caught: list[int] = []

    async def app(_: Any, receive: Any, __: Any) -> None:
        try:
            await receive()
        except HTTPException as error:
            caught.append(error.status_code)

    async def never() -> Any:
        await asyncio.Event().wait()

    scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
    asyncio.run(limits.body_limit(app, Settings())(scope, never, None))  # type: ignore[arg-type]
    assert caught == [408]


# --- hosts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "host", "status"),
    [
        ({}, "localhost:9890", 409),
        ({}, "127.0.0.1", 409),
        ({}, "[::1]:9890", 409),
        ({}, "LOCALHOST", 409),
        ({}, "evil.example:9890", 400),
        ({}, "localhost.evil.example", 400),
        ({}, "", 400),
        ({}, "[::1", 400),
        ({"endpoint": "https://vnfm.example/"}, "vnfm.example", 409),
        ({"endpoint": "https://vnfm.example/"}, "other.example", 400),
        ({"host": "192.0.2.1"}, "any.example", 409),
        ({"host": "192.0.2.1", "endpoint": "https://vnfm.example"}, "any.example", 400),
        ({"host": "192.0.2.1", "endpoint": "https://vnfm.example"}, "192.0.2.1:9890", 409),
    ],
)
def test_only_requests_for_this_host_are_answered(
    settings: dict[str, str], host: str, status: int
) -> None:
    answer = Service(**settings).client.get("/refuse", headers={"Host": host})
    assert answer.status_code == status
    assert answer.headers["content-type"] == error_responses.MEDIA_TYPE


@pytest.mark.parametrize(
    ("method", "origin", "status"),
    [
        ("POST", "http://localhost:9890", 200),
        ("POST", None, 200),
        ("POST", "http://localhost:3000", 403),
        ("POST", "http://localhost", 403),
        ("POST", "https://localhost:9890", 403),
        ("POST", "http://127.0.0.1:9890", 403),
        ("POST", "http://evil.example", 403),
        ("POST", "null", 403),
        ("POST", "http://[", 403),
        ("GET", "http://evil.example", 422),
    ],
)
def test_cross_origin_writes_are_refused(method: str, origin: str | None, status: int) -> None:
    headers = {} if origin is None else {"Origin": origin}
    body = None if method == "GET" else {"name": "x"}
    answer = Service().client.request(method, "/shaped", headers=headers, json=body)
    assert answer.status_code == status


def test_the_pages_of_the_endpoint_are_the_services_own() -> None:
    client = Service(endpoint="https://vnfm.example/").client
    for origin, status in (("https://vnfm.example", 200), ("http://vnfm.example", 403)):
        answer = client.post("/shaped", headers={"Origin": origin}, json={"name": "x"})
        assert answer.status_code == status


@pytest.mark.parametrize("path", ["/refuse", "/absent", "/fail", "/openapi.json"])
def test_every_response_has_the_security_headers(path: str) -> None:
    headers = Service().client.get(path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


# --- the form of refusals -----------------------------------------------------------------------

TOLD = {
    "what a handler refuses": ("GET", "/refuse", None, 409, "wait"),
    "what is not there": ("GET", "/absent", None, 404, "Not Found"),
    "a method that is not there": ("DELETE", "/refuse", None, 405, "found DELETE"),
    "what is no JSON": ("POST", "/shaped", b"{", 400, "JSON decode error"),
    "what has another shape": ("POST", "/shaped", b'{"number": "hunter2"}', 422, "body.name: "),
    "what failed": ("GET", "/fail", None, 500, "its log says why"),
}


@pytest.mark.parametrize(("method", "path", "body", "status", "why"), TOLD.values(), ids=TOLD)
def test_refusals_are_problem_details(
    method: str, path: str, body: bytes | None, status: int, why: str
) -> None:
    answer = Service().client.request(
        method, path, content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == status
    assert answer.headers["content-type"] == error_responses.MEDIA_TYPE
    problem = answer.json()
    assert set(problem) == {"type", "title", "status", "detail"}
    assert problem["status"] == status
    assert why in problem["detail"]
    assert "hunter2" not in answer.text


def test_a_refusal_has_its_own_title_and_headers() -> None:
    answer = Service().client.get("/refuse")
    assert answer.json()["title"] == "Busy"
    assert answer.headers["retry-after"] == "7"


def test_of_many_validation_errors_only_the_first_are_reported() -> None:
    faults = [{"loc": ("body", n), "msg": "wrong", "type": "x"} for n in range(9)]
    message = error_responses._text_of(faults)
    assert message.startswith("body.0: wrong; body.1: wrong")
    assert message.endswith("(and 4 more)")
