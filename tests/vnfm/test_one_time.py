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
from tests.internals.service import LINK_SECONDS, OneTimeLink, Service, Settings, read_tokens

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
def link(clock: Clock) -> OneTimeLink:
    return OneTimeLink(clock)


def issued(link: OneTimeLink, token: str = "a token") -> str:
    """Issue a link and return its secret."""
    return link.issue(URL, token).removeprefix(f"{URL}/#once=")


def test_a_link_is_exchanged_once_for_the_token(link: OneTimeLink) -> None:
    assert link.exchange("") is None, "none was issued"
    once = issued(link)
    assert link.exchange("another one") is None
    assert link.exchange(once) == "a token"
    assert link.exchange(once) is None
    assert link.exchange("") is None


def test_a_new_link_takes_the_place_of_the_one_before(link: OneTimeLink) -> None:
    before, now = issued(link, "the old one"), issued(link, "the new one")
    assert (link.exchange(before), link.exchange(now)) == (None, "the new one")


@pytest.mark.parametrize(("passed", "works"), [(LINK_SECONDS - 1, True), (LINK_SECONDS, False)])
def test_a_link_expires_unused(link: OneTimeLink, clock: Clock, passed: float, works: bool) -> None:
    once = issued(link)
    clock.now += passed
    assert bool(link.exchange(once)) is works


def test_of_many_requests_with_one_link_one_gets_the_token(link: OneTimeLink) -> None:
    once = issued(link)
    with ThreadPoolExecutor(16) as pool:
        tokens = list(pool.map(link.exchange, [once] * 200))
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
    token = read_tokens(service.context.settings.token_path)["admin"].value
    once = issued(service.link, token)
    with caplog.at_level(logging.DEBUG):
        assert exchange(http, once).json() == {"token": token}
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
    once = issued(service.link)
    assert exchange(http, once, Origin="http://evil.example").status_code == 403
    assert exchange(http, once).status_code == 200


def test_another_process_does_not_know_the_link(service: Service) -> None:
    assert OneTimeLink().exchange(issued(service.link)) is None
