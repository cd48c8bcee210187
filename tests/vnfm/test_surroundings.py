"""The whole service: what is told about an update, to whom, and what is kept secret."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.vnfm import site
from tests.vnfm.consumer import Consumer
from tests.vnfm.site import SCENES, Site
from tests.vnfm.waiting import until

ROLLING = SCENES["rolling"]
PASSWORD = "hunter2-and-more"
BASIC = {"authType": ["BASIC"], "paramsBasic": {"userName": "nfvo", "password": PASSWORD}}
STATES = ["STARTING", "PROCESSING", "COMPLETED"]


@pytest.fixture(scope="module")
def here() -> Iterator[Site]:
    with site.running() as running:
        yield running


@pytest.fixture
def consumer() -> Iterator[Consumer]:
    with Consumer() as listening:
        yield listening


def subscribe(here: Site, uri: str, **body: object) -> str:
    return str(
        here.call("POST", "/vnflcm/v2/subscriptions", {"callbackUri": uri, **body}).json()["id"]
    )


def test_subscribers_are_told_what_they_want_to_know(here: Site, consumer: Consumer) -> None:
    all_of_it = subscribe(here, f"{consumer.url}/all", authentication=BASIC)
    wanted = {
        "operationTypes": ["CHANGE_VNFPKG"],
        "operationStates": ["COMPLETED"],
        "notificationTypes": ["VnfLcmOperationOccurrenceNotification"],
        "vnfInstanceSubscriptionFilter": {"vnfInstanceNames": ["told"]},
    }
    subscribe(here, f"{consumer.url}/some", filter=wanted)
    subscribe(
        here,
        f"{consumer.url}/none",
        filter={"vnfInstanceSubscriptionFilter": {"vnfInstanceNames": ["other"]}},
    )
    path = here.instantiated(ROLLING, "told")
    request = here.request(ROLLING, ROLLING.verb)
    changed = here.settled(here.call("POST", f"{path}/change_vnfpkg", request))
    assert changed["operationState"] == "COMPLETED", changed
    here.remove(path)

    none_waits = "container_update_notifications_waiting 0.0"
    until(lambda: none_waits in here.call("GET", "/metrics").text, "every notification")
    told = [asked.body for asked in consumer.posted("/all")]
    assert [each["notificationType"] for each in (told[0], told[-1])] == [
        "VnfIdentifierCreationNotification",
        "VnfIdentifierDeletionNotification",
    ]
    assert [(each["operation"], each["operationState"]) for each in told[1:-1]] == [
        (operation, state)
        for operation in ("INSTANTIATE", "CHANGE_VNFPKG", "TERMINATE")
        for state in STATES
    ]
    assert {each["subscriptionId"] for each in told} == {all_of_it}
    assert len({each["id"] for each in told}) == 11
    assert all("Basic " in a.headers["Authorization"] for a in consumer.posted("/all"))
    (once,) = consumer.posted("/some")
    assert once.body["vnfLcmOpOccId"] == changed["id"]
    assert consumer.posted("/none") == []
    for subscription in here.call("GET", "/vnflcm/v2/subscriptions").json():
        here.call("DELETE", f"/vnflcm/v2/subscriptions/{subscription['id']}")


def test_credentials_are_nowhere_in_the_database_nor_in_an_answer(
    here: Site, consumer: Consumer
) -> None:
    subscription = subscribe(here, consumer.url, authentication=BASIC)
    path = here.instantiated(ROLLING, "kept")
    secrets = [PASSWORD, here.stage.cluster.token, here.token]
    files = list(here.service.context.settings.folder.glob("vnfm.sqlite*"))
    assert files
    kept = b"".join(file.read_bytes() for file in files)
    assert b"rolling" in kept, "the file is read as it is"
    shown = [
        here.call("GET", "/v1.0/vims"),
        here.call("GET", path),
        here.call("GET", f"/vnflcm/v2/subscriptions/{subscription}"),
        here.call("GET", "/vnflcm/v2/vnf_lcm_op_occs?all_fields"),
        here.call("GET", "/metrics"),
    ]
    for secret in secrets:
        assert secret.encode() not in kept
        assert all(secret not in answer.text for answer in shown)
    here.remove(path)
    here.call("DELETE", f"/vnflcm/v2/subscriptions/{subscription}")


def test_a_callback_that_does_not_answer_as_it_should_is_refused(
    here: Site, consumer: Consumer
) -> None:
    consumer.statuses.append(404)
    body = {"callbackUri": consumer.url}
    url = f"{here.url}/vnflcm/v2/subscriptions"
    answer = here.client.post(url, json=body, timeout=30)
    assert answer.status_code == 422
    assert "found 404" in answer.json()["detail"]
    assert here.call("GET", "/vnflcm/v2/subscriptions").json() == []


@pytest.mark.parametrize("path", ["/", "/page/page.js", "/page/page.css", "/healthz", "/readyz"])
def test_what_holds_no_data_is_answered_without_a_token(here: Site, path: str) -> None:
    answer = here.client.get(here.url + path, headers={"X-Auth-Token": None}, timeout=30)
    assert answer.status_code == 200, answer.text
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "path",
    ["/metrics", "/vnfpkgm/v1/vnf_packages", "/vnflcm/v1/vnf_instances", "/v1.0/vims"],
)
def test_all_else_wants_a_token(here: Site, path: str) -> None:
    answer = here.client.get(here.url + path, headers={"X-Auth-Token": None}, timeout=30)
    assert answer.status_code == 401


@pytest.mark.parametrize("path", ["/page/", "/page/__init__.py", "/page/../tokens", "/page/..%2f"])
def test_only_the_pages_own_files_are_answered(here: Site, path: str) -> None:
    assert here.client.get(here.url + path, timeout=30).status_code in (401, 404)
