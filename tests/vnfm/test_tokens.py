# SPDX-License-Identifier: Apache-2.0
"""Authentication: by token files, by Keystone, and none."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from fastapi import Depends, FastAPI
from fastapi.testclient import TestClient
from keystoneauth1.identity.v3 import Password
from keystoneauth1.session import Session

from container_update import ContainerUpdateError
from container_update.emulator.heat import EmbeddedOpenStack
from tests.internals.service import (
    READING,
    Settings,
    User,
    authenticator,
    error_responses,
    read_tokens,
)
from tests.internals.stacks import MOST_BYTES

ONE, OTHER = "one-" + "1" * 20, "other-" + "2" * 20


def service(settings: Settings) -> TestClient:
    """Return a client of a service with one resource: the user's name."""
    app = FastAPI()
    error_responses.install(app)
    authenticate = authenticator(settings)

    @app.get("/name")
    def name(user: User = Depends(authenticate)) -> str:  # noqa: B008
        return user.name

    @app.post("/name")
    def rename(user: User = Depends(authenticate)) -> str:  # noqa: B008
        return user.name

    @app.post("/plan", openapi_extra={READING: True})
    def plan(user: User = Depends(authenticate)) -> str:  # noqa: B008
        return user.name

    return TestClient(app, raise_server_exceptions=False)


def token_file(folder: Path, text: str) -> Settings:
    path = folder / "tokens"
    path.write_text(text)
    path.chmod(0o600)
    return Settings(token_file=str(path))


@pytest.fixture
def named(tmp_path: Path) -> TestClient:
    return service(token_file(tmp_path, f"# who\nann {ONE}\n\n{OTHER}  # a script\n"))


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        ({"X-Auth-Token": ONE}, "ann"),
        ({"X-Auth-Token": OTHER}, "line 4"),
        ({"Authorization": f"Bearer {ONE}"}, "ann"),
        ({"X-Auth-Token": ONE, "Authorization": "Bearer x"}, "ann"),
    ],
    ids=["X-Auth-Token", "without a name", "Bearer", "both"],
)
def test_a_valid_token_is_accepted(named: TestClient, headers: dict[str, str], name: str) -> None:
    answer = named.get("/name", headers=headers)
    assert (answer.status_code, answer.json()) == (200, name)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Auth-Token": ""},
        {"X-Auth-Token": ONE[:-1]},
        {"X-Auth-Token": ONE + "1"},
        {"X-Auth-Token": "ann"},
        {"X-Auth-Token": "x" * 9000},
        {"X-Auth-Token": b"\xff\xfe"},
        {"Authorization": f"Basic {ONE}"},
        {"Authorization": "Bearer x"},
    ],
    ids=lambda headers: str(headers)[:40],
)
def test_any_other_request_is_refused(named: TestClient, headers: dict[str, str]) -> None:
    answer = named.get("/name", headers=headers)
    assert answer.status_code == 401
    assert answer.headers["content-type"] == error_responses.MEDIA_TYPE
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "expected a valid token" in answer.json()["detail"]
    assert ONE[:-1] not in answer.text


def test_the_first_start_creates_a_token(tmp_path: Path) -> None:
    settings = Settings(state_dir=str(tmp_path / "state"))
    client = service(settings)
    tokens = read_tokens(settings.token_path)
    assert list(tokens) == ["admin"]
    headers = {"X-Auth-Token": tokens["admin"].value}
    assert len(tokens["admin"].value) > 40
    assert tokens["admin"].value not in repr(tokens)
    assert settings.token_path.stat().st_mode & 0o777 == 0o600
    assert client.get("/name", headers=headers).json() == "admin"
    assert service(settings).get("/name", headers=headers).is_success


@pytest.mark.parametrize(
    ("role", "method", "path", "status"),
    [
        ("read", "GET", "/name", 200),
        ("read", "POST", "/name", 403),
        ("read", "POST", "/plan", 200),
        ("write", "POST", "/name", 200),
        ("", "POST", "/name", 200),
    ],
)
def test_a_token_may_do_what_its_role_says(
    tmp_path: Path, role: str, method: str, path: str, status: int
) -> None:
    client = service(token_file(tmp_path, f"ann {ONE} {role}\n"))
    answer = client.request(method, path, headers={"X-Auth-Token": ONE})
    assert answer.status_code == status
    if status == 403:
        assert answer.json()["detail"].startswith("the token of ann may only read")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "found none"),
        ("# nothing\n", "found none"),
        ("ann short\n", "tokens:1: expected NAME TOKEN"),
        (f"a b {ONE}\n", "tokens:1: expected NAME TOKEN"),
        (f"ann {ONE} admin\n", "and the role read or write"),
        (f"ann {ONE} read write\n", "expected NAME TOKEN or NAME TOKEN ROLE"),
        (f"ann {ONE}\nann {OTHER}\n", "tokens:2: the name ann is there twice"),
    ],
)
def test_a_wrong_token_file_is_refused_without_showing_its_content(
    tmp_path: Path, text: str, why: str
) -> None:
    with pytest.raises(ContainerUpdateError, match=re.escape(why)) as caught:
        service(token_file(tmp_path, text))
    assert ONE not in str(caught.value)


def test_a_token_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    settings = token_file(tmp_path, ONE)
    settings.token_path.chmod(0o644)
    with pytest.raises(ContainerUpdateError, match="chmod 600"):
        service(settings)


def test_without_authentication_the_service_listens_only_on_loopback() -> None:
    assert service(Settings(auth="none")).get("/name").json() == "anonymous"
    with pytest.raises(ValueError, match="none is only for a loopback address"):
        Settings(auth="none", host="192.0.2.1")


# --- Keystone -----------------------------------------------------------------------------------


@pytest.fixture
def cloud() -> Iterator[EmbeddedOpenStack]:
    with EmbeddedOpenStack() as embedded:
        yield embedded


def by_keystone(cloud: EmbeddedOpenStack, **changed: object) -> TestClient:
    auth = cloud.auth()
    service_settings = {
        "keystone_url": auth["auth_url"] + "/v3",
        "keystone_username": auth["username"],
        "keystone_password": auth["password"],
        "keystone_project": auth["project_name"],
        "keystone_roles": ("member", "admin"),
        **changed,
    }
    return service(Settings(auth="keystone", **service_settings))


def user_token(cloud: EmbeddedOpenStack) -> dict[str, str]:
    token = Session(Password(**cloud.auth())).get_token()
    assert token
    return {"X-Auth-Token": token}


def validations(cloud: EmbeddedOpenStack) -> int:
    """Return how often the service had Keystone validate a token."""
    path = "/identity/v3/auth/tokens"
    return sum(r.method == "GET" and r.path == path for r in cloud.requests)


def test_a_keystone_token_is_accepted_and_validated_once(cloud: EmbeddedOpenStack) -> None:
    client, headers = by_keystone(cloud), user_token(cloud)
    assert [client.get("/name", headers=headers).json() for _ in range(3)] == ["operator"] * 3
    assert validations(cloud) == 1


def test_an_unknown_keystone_token_is_refused_and_validated_once(
    cloud: EmbeddedOpenStack,
) -> None:
    client, headers = by_keystone(cloud), {"X-Auth-Token": "nobody-has-this-one"}
    assert [client.get("/name", headers=headers).status_code for _ in range(3)] == [401] * 3
    assert validations(cloud) == 1


def test_an_expired_token_is_refused_though_it_is_cached(
    cloud: EmbeddedOpenStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, headers = by_keystone(cloud), user_token(cloud)
    assert client.get("/name", headers=headers).is_success
    end = cloud.keystone.lifetime.total_seconds()
    from tests.internals.service import keystone  # noqa: PLC0415

    began = keystone.time.time()
    monkeypatch.setattr(keystone, "time", type("later", (), {"time": lambda: began + end}))
    assert client.get("/name", headers=headers).status_code == 401
    assert validations(cloud) == 1


def test_a_token_without_a_required_role_is_forbidden(cloud: EmbeddedOpenStack) -> None:
    answer = by_keystone(cloud, keystone_roles=("admin", "nfv")).get(
        "/name", headers=user_token(cloud)
    )
    assert answer.status_code == 403
    assert answer.json()["detail"] == "expected one of the roles admin, nfv"


def test_a_reader_role_of_keystone_may_only_read(cloud: EmbeddedOpenStack) -> None:
    client, headers = (
        by_keystone(cloud, keystone_roles=("nfv",), keystone_reader_roles=("member",)),
        user_token(cloud),
    )
    assert client.get("/name", headers=headers).status_code == 200
    assert client.post("/name", headers=headers).status_code == 403


def test_the_services_own_token_is_renewed_once_keystone_rejects_it(
    cloud: EmbeddedOpenStack,
) -> None:
    client = by_keystone(cloud)
    assert client.get("/name", headers=user_token(cloud)).is_success
    cloud.keystone.expire_tokens()
    assert client.get("/name", headers=user_token(cloud)).is_success


def test_keystone_that_does_not_answer_is_not_the_callers_fault(cloud: EmbeddedOpenStack) -> None:
    client, headers = by_keystone(cloud), user_token(cloud)
    wrong = by_keystone(cloud, keystone_password="wrong")
    assert wrong.get("/name", headers=headers).status_code == 503
    cloud.stop()
    answer = client.get("/name", headers=headers)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "5"


@pytest.mark.parametrize("missing", ["keystone_url", "keystone_username", "keystone_password"])
def test_incomplete_keystone_settings_are_refused(cloud: EmbeddedOpenStack, missing: str) -> None:
    with pytest.raises(ContainerUpdateError, match=rf"\[vnfm\] {missing}"):
        by_keystone(cloud, **{missing: ""})


GOOD = {
    "methods": ["password"],
    "expires_at": "2999-01-01T00:00:00.000000Z",
    "issued_at": "2026-01-01T00:00:00.000000Z",
    "user": {"id": "u", "name": "operator", "domain": {"id": "d", "name": "d"}},
    "roles": [{"id": "r", "name": "member"}],
}
WRONG_ANSWERS: dict[str, bytes] = {
    "no JSON": b"<html>",
    "a list": b"[]",
    "a text": b'"token"',
    "a number as token": b'{"token": 5}',
    "a list as token": b'{"token": []}',
    "nothing in it": b'{"token": {}}',
    "no end": json.dumps({"token": {**GOOD, "expires_at": None}}).encode(),
    "an end that is none": json.dumps({"token": {**GOOD, "expires_at": "soon"}}).encode(),
    "roles that are a text": json.dumps({"token": {**GOOD, "roles": "member"}}).encode(),
    "roles of numbers": json.dumps({"token": {**GOOD, "roles": [5]}}).encode(),
    "no user": json.dumps({"token": {**GOOD, "user": 7}}).encode(),
    "very deep": b"[" * 200_000,
}


class Strange(BaseHTTPRequestHandler):
    """A Keystone that knows its user, and has a strange answer to what a token is."""

    answer: Callable[[], Iterable[bytes]]
    sent = 0

    def do_POST(self) -> None:
        self._begin({"X-Subject-Token": "own"})
        self.wfile.write(json.dumps({"token": GOOD}).encode())

    def do_GET(self) -> None:
        self._begin({})
        for part in type(self).answer():
            try:
                self.wfile.write(part)
            except OSError:  # the service has gone
                return
            type(self).sent += len(part)

    def _begin(self, headers: dict[str, str]) -> None:
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def strange_keystone(answer: Callable[[], Iterable[bytes]]) -> Iterator[tuple[TestClient, Any]]:
    """Yield a client of a service whose Keystone answers so, and the handler of its requests."""
    handler = type("Handler", (Strange,), {"answer": staticmethod(answer)})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/v3"
        settings = Settings(
            auth="keystone", keystone_url=url, keystone_username="u", keystone_password="p",
            keystone_roles=("member",),
        )  # fmt: skip
        yield service(settings), handler
        server.shutdown()


def test_an_answer_as_keystone_gives_it_is_understood() -> None:
    with strange_keystone(lambda: [json.dumps({"token": GOOD}).encode()]) as (client, _):
        assert client.get("/name", headers={"X-Auth-Token": ONE}).json() == "operator"


@pytest.mark.parametrize("what", WRONG_ANSWERS)
def test_an_answer_that_is_not_keystones_is_not_the_callers_fault(what: str) -> None:
    with strange_keystone(lambda: [WRONG_ANSWERS[what]]) as (client, _):
        answer = client.get("/name", headers={"X-Auth-Token": ONE})
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "5"


def test_an_answer_of_keystone_without_an_end_is_not_kept() -> None:
    with strange_keystone(lambda: repeat(b" " * 65536)) as (client, handler):
        answer = client.get("/name", headers={"X-Auth-Token": ONE})
        assert answer.status_code == 503
        assert handler.sent < 2 * MOST_BYTES
