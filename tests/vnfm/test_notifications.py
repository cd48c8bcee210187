# SPDX-License-Identifier: Apache-2.0
"""The delivery of the notifications in the outbox."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import delete, select

from container_update import Options
from tests.internals.service import (
    Database,
    Notification,
    Notifier,
    Service,
    Settings,
    Subscription,
    Vault,
    delivery,
    now,
)
from tests.vnfm import vnfs
from tests.vnfm.client import Client
from tests.vnfm.consumer import Consumer
from tests.vnfm.waiting import until

SECRET = "hunter2"
BASIC = {"authType": ["BASIC"], "paramsBasic": {"userName": "nfvo", "password": SECRET}}


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "pause", lambda _: 0.02)


class Post:
    """An outbox and its notifier."""

    def __init__(self, folder: Path, database: str) -> None:
        self.settings = Settings(
            state_dir=str(folder),
            database_url=database,
            callback_hosts=("127.0.0.1",),
            callback_seconds=5.0,
            callback_attempts=3,
        )
        self.vault = Vault(self.settings.key_path)
        self.database = Database(self.settings.database)
        self.database.upgrade()
        self.counted: list[str] = []
        self.running: list[Notifier] = []

    def subscribe(self, name: str, uri: str, authentication: Any = None) -> None:
        sealed = self.vault.seal(authentication) if authentication else None
        with self.database.writing() as session:
            session.add(
                Subscription(
                    id=name,
                    created=now(),
                    api="v2",
                    callback_uri=uri,
                    filter=None,
                    sealed=sealed,
                )
            )

    def post(self, name: str, *numbers: int, age: float = 0.0) -> None:
        moment = now() - timedelta(seconds=age)
        with self.database.writing() as session:
            for number in numbers:
                body = {"id": str(number), "operationState": "COMPLETED"}
                session.add(
                    Notification(
                        subscription_id=name,
                        body=body,
                        created=moment,
                        attempts=0,
                        next_attempt=moment,
                    )
                )

    def begin(self) -> Notifier:
        notifier = Notifier(self.settings, self.database, self.vault, self.counted.append)
        self.running.append(notifier)
        notifier.start()
        return notifier

    def rows(self) -> list[Notification]:
        with self.database.reading() as session:
            return list(session.scalars(select(Notification).order_by(Notification.id)))

    def settled(self) -> bool:
        """Return whether nothing waits and the last result is counted, which happens afterwards."""
        rows = self.rows()
        ends = [result for result in self.counted if result != "failed"]
        return all(row.delivered or row.given_up for row in rows) and len(ends) == len(rows)

    def close(self) -> None:
        for notifier in self.running:
            notifier.stop()
        with self.database.writing() as session:
            session.execute(delete(Subscription))
        self.database.close()


@pytest.fixture
def post(tmp_path: Path, database: str) -> Iterator[Post]:
    office = Post(tmp_path, database)
    yield office
    office.close()


def got(consumer: Consumer, path: str = "/") -> list[str]:
    return [requests.body["id"] for requests in consumer.posted(path)]


def test_waiting_notifications_are_delivered_in_order_with_credentials(
    post: Post, consumer: Consumer
) -> None:
    post.subscribe("one", f"{consumer.url}/", BASIC)
    post.post("one", *range(20))
    post.begin()
    until(post.settled, "all to be delivered")
    assert got(consumer) == [str(number) for number in range(20)]
    assert {requests.headers["Authorization"] for requests in consumer.requests} == {
        "Basic bmZ2bzpodW50ZXIy"
    }
    assert {requests.headers["Content-Type"] for requests in consumer.requests} == {
        "application/json"
    }
    assert post.counted == ["delivered"] * 20


def test_a_later_notification_is_delivered_on_a_wake_up(
    post: Post, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "LOOK_SECONDS", 3600.0)
    post.subscribe("one", f"{consumer.url}/")
    notifier = post.begin()
    for number in range(3):
        post.post("one", number)
        notifier.wake()
        until(post.settled, f"number {number}")
    assert got(consumer) == ["0", "1", "2"]


def test_a_failed_delivery_is_retried_in_order(post: Post, consumer: Consumer) -> None:
    consumer.statuses.extend([503, 500, 204])
    post.subscribe("one", f"{consumer.url}/")
    post.post("one", 1, 2)
    post.begin()
    until(post.settled, "both to be delivered")
    assert got(consumer) == ["1", "1", "1", "2"]
    assert post.counted == ["failed", "failed", "delivered", "delivered"]
    assert [row.attempts for row in post.rows()] == [3, 1]


def test_a_delivery_is_given_up_and_logged_after_the_last_attempt(
    post: Post, consumer: Consumer, caplog: pytest.LogCaptureFixture
) -> None:
    consumer.statuses.extend([400] * 3)
    post.subscribe("one", f"{consumer.url}/?key={SECRET}", BASIC)
    post.post("one", 1, 2)
    with caplog.at_level(logging.WARNING):
        post.begin()
        until(post.settled, "the first to be given up, the second delivered")
    first, second = post.rows()
    assert (first.attempts, bool(first.given_up), bool(first.delivered)) == (3, True, False)
    assert second.delivered
    assert post.counted == ["failed", "failed", "given_up", "delivered"]
    messages = [r.message for r in caplog.records if r.levelno == logging.ERROR]
    assert messages == [
        f"notification 1 (COMPLETED) to {consumer.url}, attempt 3: answered 400; it is given up"
    ]
    assert SECRET not in caplog.text


def test_a_delivery_to_no_possible_name_is_given_up(post: Post) -> None:
    post.settings = replace(post.settings, callback_hosts=())
    post.subscribe("one", "http://nfvo..example/")
    post.post("one", 1)
    post.begin()
    until(post.settled, "it to be given up")
    assert post.counted == ["failed", "failed", "given_up"]


def test_a_notification_that_waited_too_long_gets_one_attempt(
    post: Post, consumer: Consumer
) -> None:
    consumer.statuses.extend([500] * 2)
    post.subscribe("one", f"{consumer.url}/")
    post.post("one", 1, 2, age=3600)
    post.begin()
    until(post.settled, "both to be given up")
    assert got(consumer) == ["1", "2"]
    assert post.counted == ["given_up"] * 2


def test_a_consumer_that_does_not_answer_does_not_delay_others(
    post: Post, consumer: Consumer
) -> None:
    with Consumer() as unresponsive:
        unresponsive.unresponsive.set()
        post.subscribe("silent", f"{unresponsive.url}/")
        post.subscribe("one", f"{consumer.url}/")
        post.post("silent", *range(5))
        post.post("one", *range(5))
        post.begin()
        until(lambda: post.counted == ["delivered"] * 5, "the other consumer's")
        assert len(got(consumer)) == 5
        assert len(unresponsive.requests) == 1


def test_what_waited_longest_is_delivered_first(
    post: Post, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "AT_ONCE", 1)
    for name, age in {"b": 10, "a": 30, "d": 20, "c": 40}.items():
        post.subscribe(name, f"{consumer.url}/{name}")
        post.post(name, 1, age=age)
    post.begin()
    until(post.settled, "all to be delivered")
    assert [request.path for request in consumer.requests] == ["/c", "/a", "/d", "/b"]


def test_callbacks_that_are_dead_do_not_starve_a_living_one(
    post: Post, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "AT_ONCE", 4)
    post.settings = replace(post.settings, callback_seconds=0.2, callback_attempts=1_000_000)
    with Consumer() as unresponsive:
        unresponsive.unresponsive.set()
        for number in range(8):  # each of them is always due again
            post.subscribe(f"dead-{number}", f"{unresponsive.url}/")
            post.post(f"dead-{number}", 1)
        post.subscribe("one", f"{consumer.url}/")
        notifier = post.begin()
        for number in range(5):
            post.post("one", number)
            notifier.wake()
            until(lambda number=number: len(got(consumer)) > number, f"number {number}")
        asked = len(unresponsive.requests)
        until(lambda: len(unresponsive.requests) > asked, "the dead ones to be tried further")


def test_notifications_left_by_a_process_are_delivered_by_the_next(
    post: Post, consumer: Consumer
) -> None:
    post.subscribe("one", f"{consumer.url}/")
    post.post("one", 1, 2)
    with post.database.writing() as session:  # it died while it delivered the first
        first = session.scalars(select(Notification).order_by(Notification.id)).first()
        assert first
        first.attempts, first.next_attempt = 1, now() + timedelta(seconds=0.3)
    post.begin()
    until(post.settled, "both to be delivered")
    assert got(consumer) == ["1", "2"]


def test_two_services_deliver_each_notification_once(post: Post, consumer: Consumer) -> None:
    for name in ("one", "two", "three"):
        post.subscribe(name, f"{consumer.url}/{name}")
        post.post(name, *range(10))
    post.begin()
    post.begin()
    until(post.settled, "all to be delivered")
    for name in ("one", "two", "three"):
        assert got(consumer, f"/{name}") == [str(number) for number in range(10)]


def test_an_expired_token_is_renewed(post: Post, consumer: Consumer) -> None:
    params = {
        "clientId": "vnfm",
        "clientPassword": SECRET,
        "tokenEndpoint": f"{consumer.url}/token",
    }
    authentication = {
        "authType": ["OAUTH2_CLIENT_CREDENTIALS"],
        "paramsOauth2ClientCredentials": params,
    }
    consumer.tokens.extend(["first", "second"])
    consumer.statuses.extend([204, 401, 204])
    post.subscribe("one", f"{consumer.url}/", authentication)
    post.post("one", 1, 2)
    post.begin()
    until(post.settled, "both to be delivered")
    assert [requests.headers["Authorization"] for requests in consumer.posted()] == [
        "Bearer first",
        "Bearer first",
        "Bearer second",
    ]


def test_credentials_that_cannot_be_opened_are_a_failure(post: Post, consumer: Consumer) -> None:
    post.subscribe("one", f"{consumer.url}/", BASIC)
    post.post("one", 1)
    post.settings.key_path.unlink()
    post.vault = Vault(post.settings.key_path)
    post.begin()
    until(post.settled, "it to be given up")
    assert post.counted == ["failed", "failed", "given_up"]
    assert consumer.requests == []


def test_the_result_of_a_notification_is_deleted_after_a_day(post: Post) -> None:
    post.subscribe("one", "http://127.0.0.1:9/")
    post.post("one", 1, 2, 3)
    with post.database.writing() as session:
        rows = session.scalars(select(Notification).order_by(Notification.id)).all()
        rows[0].delivered = rows[1].given_up = now() - timedelta(days=2)
        rows[2].delivered = now()
    post.begin()
    until(lambda: len(post.rows()) == 1, "the old ones to go")
    assert post.rows()[0].body["id"] == "3"


def test_delivery_continues_after_a_database_outage(
    post: Post,
    consumer: Consumer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(delivery, "LOOK_SECONDS", 0.02)
    post.subscribe("one", f"{consumer.url}/")
    notifier = post.begin()
    monkeypatch.setattr(notifier, "_database", Database("sqlite:////nonexistent/vnfm.sqlite"))
    until(lambda: "the outbox cannot be read" in caplog.text, "it to notice")
    post.post("one", 1)
    monkeypatch.setattr(notifier, "_database", post.database)
    until(post.settled, "it to be delivered")
    assert got(consumer) == ["1"]


def test_the_number_of_subscriptions_is_limited(tmp_path: Path, consumer: Consumer) -> None:
    settings = Settings(
        state_dir=str(tmp_path), auth="none", subscriptions=2, callback_hosts=("127.0.0.1",)
    )
    body = {"callbackUri": consumer.url}
    with TestClient(Service(settings, Options()).app, base_url="http://127.0.0.1:9890") as http:
        v1, v2 = Client(http, "v1"), Client(http, "v2")
        first = v1.call("POST", "/vnflcm/v1/subscriptions", body, 201)
        v2.call("POST", "/vnflcm/v2/subscriptions", body, 201)
        tests = len(consumer.requests)
        refused = v2.call("POST", "/vnflcm/v2/subscriptions", body, 409)
        assert refused["detail"] == (
            "there are 2 subscriptions, as many as [vnfm] subscriptions allows: delete one that "
            "no subscriber needs"
        )
        assert len(consumer.requests) == tests, "its callback is not tested"
        v1.call("DELETE", f"/vnflcm/v1/subscriptions/{first['id']}", status=204)
        v2.call("POST", "/vnflcm/v2/subscriptions", body, 201)


PACKAGES = "/vnfpkgm/v1/vnf_packages"
ALL = ["onboarded", "DISABLED", "PKG_DELETE"]
PACKAGE_FILTERS: dict[str, tuple[Any, list[str]]] = {
    "none": (None, ALL),
    "onboardings": ({"notificationTypes": ["VnfPackageOnboardingNotification"]}, ["onboarded"]),
    "what is enabled": ({"operationalState": ["ENABLED"]}, ["onboarded"]),
    "what is not used": ({"usageState": ["NOT_IN_USE"]}, ALL),
    "what is used": ({"usageState": ["IN_USE"]}, []),
    "its VNFD": ({"vnfdId": ["VNFD"]}, ALL),
    "another VNFD": ({"vnfdId": ["other"]}, []),
    "another package": ({"vnfPkgId": ["other"]}, []),
    "its product": (
        {"vnfProductsFromProviders": [
            {"vnfProvider": "Company", "vnfProducts": [{"vnfProductName": "Small VNF"}]}
        ]},
        ALL,
    ),
    "another provider": ({"vnfProductsFromProviders": [{"vnfProvider": "other"}]}, []),
}  # fmt: skip


def test_changes_of_packages_are_notified(tmp_path: Path, consumer: Consumer) -> None:
    """SOL003, 10.4.7 and 10.5.2: one package, and a subscription with each filter."""
    settings = Settings(
        state_dir=str(tmp_path / "state"), auth="none", callback_hosts=("127.0.0.1",)
    )
    service = Service(settings, Options())
    package, vnfd_id = vnfs.package(tmp_path, "1.0", vnfs.ours("v1"))
    with TestClient(service.app, base_url="http://127.0.0.1:9890") as http:
        client = Client(http)
        subscriptions = {}
        for name, (wanted, _) in PACKAGE_FILTERS.items():
            text = json.dumps(wanted).replace("VNFD", vnfd_id)
            body = {"callbackUri": f"{consumer.url}/{len(subscriptions)}"}
            body |= {} if wanted is None else {"filter": json.loads(text)}
            created = client.call("POST", "/vnfpkgm/v1/subscriptions", body, 201)
            path = f"/vnfpkgm/v1/subscriptions/{created['id']}"
            assert client.call("GET", path) == created
            assert urlsplit(created["_links"]["self"]["href"]).path == path
            assert created.get("filter") == body.get("filter")
            subscriptions[name] = created["id"]
        assert len(client.call("GET", "/vnfpkgm/v1/subscriptions")) == len(subscriptions)
        assert client.call("GET", "/vnflcm/v1/subscriptions") == []

        package_id = client.upload(package)
        client.read_in(package_id)
        client.call("PATCH", f"{PACKAGES}/{package_id}", {"operationalState": "DISABLED"})
        client.call("DELETE", f"{PACKAGES}/{package_id}", status=204)
        count = sum(len(expected) for _, expected in PACKAGE_FILTERS.values())
        until(
            lambda: sum(each.method == "POST" for each in consumer.requests) == count,
            "all notifications are delivered",
        )
        for number, (name, (_, expected)) in enumerate(PACKAGE_FILTERS.items()):
            received = [each.body for each in consumer.posted(f"/{number}")]
            shown = [
                body.get("operationalState") or body.get("changeType", "onboarded")
                for body in received
            ]
            assert shown == expected, name
            for body in received:
                assert (body["vnfPkgId"], body["vnfdId"]) == (package_id, vnfd_id)
                assert body["subscriptionId"] == subscriptions[name]
                paths = {
                    each: urlsplit(body["_links"][each]["href"]).path for each in body["_links"]
                }
                assert paths == {
                    "vnfPackage": f"{PACKAGES}/{package_id}",
                    "subscription": f"/vnfpkgm/v1/subscriptions/{subscriptions[name]}",
                }
        client.call("DELETE", f"/vnfpkgm/v1/subscriptions/{subscriptions['none']}", status=204)


@pytest.mark.parametrize(
    "wrong", [{"vnfdIds": ["x"]}, {"operationalState": ["BROKEN"]}, {"operationTypes": ["HEAL"]}]
)
def test_a_filter_of_packages_that_would_say_nothing_is_refused(
    wrong: Any, tmp_path: Path, consumer: Consumer
) -> None:
    settings = Settings(state_dir=str(tmp_path), auth="none", callback_hosts=("127.0.0.1",))
    body = {"callbackUri": consumer.url, "filter": wrong}
    with TestClient(Service(settings, Options()).app, base_url="http://127.0.0.1:9890") as http:
        Client(http).call("POST", "/vnfpkgm/v1/subscriptions", body, 422)
    assert consumer.requests == []
