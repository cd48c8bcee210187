# SPDX-License-Identifier: Apache-2.0
"""One user, or a VIM that does not answer, keeps no thread or connection from the others."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from tests.internals.service import vims
from tests.vnfm import site
from tests.vnfm.site import Site
from tests.vnfm.waiting import until

USERS = ("rita", "ann", "bob", "eve")
EACH, TOGETHER = 8, 24


@pytest.fixture(scope="module")
def vnfm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    path = tmp_path_factory.mktemp("tokens") / "tokens"
    path.touch(0o600)
    writers = (f"{user} {token_of(user)} write" for user in ("admin", "will"))
    lines = [*writers, *(f"{u} {token_of(u)} read" for u in USERS)]
    path.write_text("\n".join(lines))
    with site.running(token_file=str(path)) as running:
        yield running


def token_of(user: str) -> str:
    return f"{user}-token-0123456789"


class Waiting:
    """Requests that wait for the status of a VIM until it answers."""

    def __init__(self, vnfm: Site, monkeypatch: pytest.MonkeyPatch) -> None:
        self.vnfm, self.answers, self.waiting = vnfm, threading.Event(), 0
        ask = vims.statuses

        def ask_late(*arguments: Any) -> Any:
            self.waiting += 1
            self.answers.wait(60)
            return ask(*arguments)

        monkeypatch.setattr(vims, "statuses", ask_late)

    def send(self, user: str, method: str = "GET", path: str = "/v1.0/vims") -> requests.Response:
        headers = {"X-Auth-Token": token_of(user), "Version": "2.0.0"}
        return requests.request(
            method, self.vnfm.url + path, headers=headers, json={} if method != "GET" else None,
            timeout=90, proxies={"http": ""},
        )  # fmt: skip

    def hold(self, pool: ThreadPoolExecutor, *users: str) -> list[Any]:
        """Send as many requests of each user as one may have, and wait until all of them wait."""
        before = self.waiting
        sent = [pool.submit(self.send, user) for user in users for _ in range(EACH)]
        until(lambda: self.waiting == before + len(sent), "the requests wait for the VIM")
        return sent


@pytest.fixture
def asked(vnfm: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Waiting]:
    waiting = Waiting(vnfm, monkeypatch)
    yield waiting
    waiting.answers.set()


def test_a_user_whose_requests_wait_for_a_vim_leaves_the_others_their_answers(
    asked: Waiting,
) -> None:
    with ThreadPoolExecutor(EACH * len(USERS)) as pool:
        sent = asked.hold(pool, "rita")
        refused = asked.send("rita")
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, "5")
        assert refused.json()["detail"].startswith("rita has 8 requests that wait for a VIM")
        assert asked.send("rita", path="/vnflcm/v2/vnf_instances").status_code == 200
        sent += asked.hold(pool, "ann")
        asked.answers.set()
        assert {each.result().status_code for each in sent} == {200}
    assert asked.send("rita").status_code == 200


def test_all_users_together_leave_threads_for_what_asks_no_vim(asked: Waiting) -> None:
    with ThreadPoolExecutor(EACH * len(USERS)) as pool:
        sent = asked.hold(pool, "rita", "ann", "bob")
        assert len(sent) == TOGETHER
        refused = asked.send("eve")
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
        assert asked.send("eve", path="/vnflcm/v2/vnf_instances").status_code == 200
        asked.answers.set()
        assert {each.result().status_code for each in sent} == {200}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1.0/vims.json"),
        ("GET", "/v1.0/vims/{id}"),
        ("GET", "/vnflcm/v2/vnf_instances/{id}/resources"),
        ("POST", "/vnflcm/v2/vnf_instances/{id}/plan"),
        ("GET", "/vnflcm/v1/vnf_instances/{id}/resources"),
        ("POST", "/vnflcm/v1/vnf_instances/{id}/plan"),
        ("GET", "/view/pods/v2/{id}/a-pod"),
        ("POST", "/vnflcm/v1/vnf_lcm_op_occs/{id}/fail"),
        ("POST", "/vnflcm/v2/vnf_lcm_op_occs/{id}/fail"),
    ],
)
def test_each_request_that_asks_a_vim_counts(asked: Waiting, method: str, path: str) -> None:
    with ThreadPoolExecutor(EACH) as pool:
        asked.hold(pool, "admin")
        assert asked.send("admin", method, path.format(id="an-id")).status_code == 429
        asked.answers.set()


def test_a_user_whose_callbacks_do_not_answer_leaves_others_their_subscriptions(vnfm: Site) -> None:
    def subscribe(user: str, port: int) -> requests.Response:
        headers = {"X-Auth-Token": token_of(user), "Version": "2.0.0"}
        return requests.post(
            f"{vnfm.url}/vnflcm/v2/subscriptions", headers=headers, timeout=60,
            json={"callbackUri": f"http://127.0.0.1:{port}/"}, proxies={"http": ""},
        )  # fmt: skip

    with ThreadPoolExecutor(4) as pool, socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        sent = [pool.submit(subscribe, "admin", port) for _ in range(4)]
        connected = [silent.accept()[0] for _ in sent]
        refused = subscribe("admin", port)
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, "5")
        assert "has 4 subscriptions whose callback is being tested" in refused.json()["detail"]
        assert "not reached" in subscribe("will", 1).json()["detail"]
        for connection in connected:
            connection.close()
        assert {each.result().status_code for each in sent} == {422}


def test_a_user_who_uploads_slowly_leaves_others_their_uploads(vnfm: Site) -> None:
    def create(user: str) -> str:
        headers = {"X-Auth-Token": token_of(user), "Version": "2.0.0"}
        url = f"{vnfm.url}/vnfpkgm/v1/vnf_packages"
        return f"{url}/{requests.post(url, headers=headers, json={}, timeout=60).json()['id']}"

    def state(package: str) -> str:
        shown = requests.get(package, headers={"X-Auth-Token": token_of("rita")}, timeout=60)
        return str(shown.json()["onboardingState"])

    def upload(user: str, package: str) -> requests.Response:
        headers = {"X-Auth-Token": token_of(user), "Content-Type": "application/zip"}
        url = f"{package}/package_content"
        return requests.put(url, headers=headers, data=b"no zip", timeout=60)

    def begin(package: str) -> HTTPConnection:
        address = urlsplit(f"{package}/package_content")
        connection = HTTPConnection(address.netloc)
        headers = {"X-Auth-Token": token_of("admin"), "Content-Type": "application/zip"}
        connection.request("PUT", address.path, headers={**headers, "Content-Length": "100"})
        until(lambda: state(package) == "UPLOADING", "it has begun")
        return connection

    with ExitStack() as slow:
        for _ in range(4):
            slow.enter_context(closing(begin(create("admin"))))
        one = create("admin")
        refused = upload("admin", one)
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, "30")
        assert "admin has 4 packages that are being uploaded" in refused.json()["detail"]
        assert state(one) == "CREATED"
        assert upload("will", create("will")).status_code == 202
    until(lambda: upload("admin", one).status_code == 202, "the share is given back")


def test_a_user_who_watches_as_often_as_one_may_leaves_the_events_to_others(vnfm: Site) -> None:
    def watch(user: str) -> requests.Response:
        answer = requests.get(
            vnfm.url + "/view/events", headers={"X-Auth-Token": token_of(user)},
            stream=True, timeout=60, proxies={"http": ""},
        )  # fmt: skip
        begun.append(answer.iter_content(1))  # which ends the connection as it is dropped
        next(begun[-1])
        return streams.enter_context(answer)

    begun: list[Iterator[bytes]] = []
    with ExitStack() as streams:
        assert [watch("rita").status_code for _ in range(16)] == 16 * [200]
        refused = watch("rita")
        assert refused.status_code == 429, refused.text
        assert refused.headers["Retry-After"] == "10"
        for user in ("ann", "bob", "eve"):
            assert [watch(user).status_code for _ in range(16)] == 16 * [200]
        assert watch("admin").status_code == 503
    until(lambda: watch("rita").status_code == 200, "the streams are given back")
