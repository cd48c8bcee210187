# SPDX-License-Identifier: Apache-2.0
"""Links that sign a browser in: once, for a while, in this process only."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from container_update import Options
from container_update.vnfm.http.one_time import LINK_SECONDS, SESSION_SECONDS, OneTimeLinks
from tests.internals.service import Service, Settings

URL = "http://127.0.0.1:9890"
PACKAGES = "/vnfpkgm/v1/vnf_packages"


class Clock:
    """A clock that a test turns."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def links(clock: Clock) -> OneTimeLinks:
    return OneTimeLinks(clock)


def issued(links: OneTimeLinks) -> str:
    """Issue a link and return its one-time token."""
    return links.issue(URL).removeprefix(f"{URL}/#once=")


def test_a_link_is_exchanged_once_for_a_session_with_all_rights(links: OneTimeLinks) -> None:
    once = issued(links)
    token = links.exchange(once)
    assert token not in (None, once)
    user = links.user_of(str(token))
    assert user is not None
    assert (user.name, user.may_change) == ("demo", True)
    assert links.exchange(once) is None
    assert links.user_of(once) is None, "the one-time token is no session token"
    assert links.exchange(str(token)) is None, "nor the other way round"


def test_each_link_has_its_own_session(links: OneTimeLinks) -> None:
    sessions = {links.exchange(issued(links)) for _ in range(3)}
    assert len(sessions) == 3
    assert all(session and links.user_of(session) for session in sessions)


@pytest.mark.parametrize(("passed", "works"), [(LINK_SECONDS - 1, True), (LINK_SECONDS, False)])
def test_a_link_expires_unused(
    links: OneTimeLinks, clock: Clock, passed: float, works: bool
) -> None:
    once = issued(links)
    clock.now += passed
    assert bool(links.exchange(once)) is works


@pytest.mark.parametrize(
    ("passed", "works"), [(SESSION_SECONDS - 1, True), (SESSION_SECONDS, False)]
)
def test_a_session_expires(links: OneTimeLinks, clock: Clock, passed: float, works: bool) -> None:
    token = str(links.exchange(issued(links)))
    clock.now += passed
    assert bool(links.user_of(token)) is works


def test_of_many_requests_with_one_link_one_gets_a_session(links: OneTimeLinks) -> None:
    once = issued(links)
    with ThreadPoolExecutor(16) as pool:
        tokens = list(pool.map(links.exchange, [once] * 200))
    assert sum(token is not None for token in tokens) == 1


# --- over HTTP ----------------------------------------------------------------------------------


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return Service(Settings(state_dir=str(tmp_path / "state")), Options())


@pytest.fixture
def http(service: Service) -> Iterator[TestClient]:
    with TestClient(service.app, base_url=URL) as http:
        yield http


def exchange(http: TestClient, once: Any, **headers: str) -> Any:
    return http.post("/page/session", json={"once": once}, headers=headers)


def test_the_pages_token_is_one_of_the_api(
    service: Service, http: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    once = issued(service.links)
    with caplog.at_level(logging.DEBUG):
        token = exchange(http, once).json()["token"]
        for headers in ({"X-Auth-Token": token}, {"Authorization": f"Bearer {token}"}):
            assert http.post(PACKAGES, json={}, headers=headers).status_code == 201
        refused = exchange(http, once)
    assert refused.status_code == 401
    assert refused.headers["content-type"] == "application/problem+json"
    detail = refused.json()["detail"]
    assert detail.startswith("this link was used already or has expired: enter a token")
    assert not [secret for secret in (once, token) if secret in caplog.text + refused.text]


@pytest.mark.parametrize(
    ("once", "status"),
    [("", 401), ("x" * 43, 401), ("\x00é", 401), ("x" * 1000, 422), (7, 422), (None, 422)],
)
def test_without_a_link_there_is_no_session(http: TestClient, once: Any, status: int) -> None:
    answer = exchange(http, once)
    assert answer.status_code == status
    assert "token" not in answer.json()
    assert "xxx" not in answer.text


def test_a_page_of_another_site_cannot_use_a_link(service: Service, http: TestClient) -> None:
    once = issued(service.links)
    assert exchange(http, once, Origin="http://evil.example").status_code == 403
    assert exchange(http, once).status_code == 200


def test_another_process_knows_neither_link_nor_session(
    service: Service, http: TestClient, tmp_path: Path
) -> None:
    once, other = issued(service.links), OneTimeLinks()
    token = exchange(http, once).json()["token"]
    assert other.exchange(issued(service.links)) is None
    assert other.user_of(token) is None
