# SPDX-License-Identifier: Apache-2.0
"""The whole service: its notifications, its secrets, and the paths that need a token."""

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
def vnfm() -> Iterator[Site]:
    with site.running() as running:
        yield running


def subscribe(vnfm: Site, uri: str, **body: object) -> str:
    return str(
        vnfm.call("POST", "/vnflcm/v2/subscriptions", {"callbackUri": uri, **body}).json()["id"]
    )


def test_subscribers_get_the_notifications_that_their_filter_selects(
    vnfm: Site, consumer: Consumer
) -> None:
    subscription_id = subscribe(vnfm, f"{consumer.url}/all", authentication=BASIC)
    filter_body = {
        "operationTypes": ["CHANGE_VNFPKG"],
        "operationStates": ["COMPLETED"],
        "notificationTypes": ["VnfLcmOperationOccurrenceNotification"],
        "vnfInstanceSubscriptionFilter": {"vnfInstanceNames": ["subscribed"]},
    }
    subscribe(vnfm, f"{consumer.url}/some", filter=filter_body)
    subscribe(
        vnfm,
        f"{consumer.url}/none",
        filter={"vnfInstanceSubscriptionFilter": {"vnfInstanceNames": ["other"]}},
    )
    path = vnfm.instantiated(ROLLING, "subscribed")
    request = vnfm.request(ROLLING, ROLLING.verb)
    changed = vnfm.settled(vnfm.call("POST", f"{path}/change_vnfpkg", request))
    assert changed["operationState"] == "COMPLETED", changed
    vnfm.remove(path)

    none_waits = "container_update_notifications_waiting 0.0"
    until(lambda: none_waits in vnfm.call("GET", "/metrics").text, "every notification")
    notifications = [request.body for request in consumer.posted("/all")]
    assert [each["notificationType"] for each in (notifications[0], notifications[-1])] == [
        "VnfIdentifierCreationNotification",
        "VnfIdentifierDeletionNotification",
    ]
    assert [(each["operation"], each["operationState"]) for each in notifications[1:-1]] == [
        (operation, state)
        for operation in ("INSTANTIATE", "CHANGE_VNFPKG", "TERMINATE")
        for state in STATES
    ]
    assert {each["subscriptionId"] for each in notifications} == {subscription_id}
    assert len({each["id"] for each in notifications}) == 11
    assert all("Basic " in a.headers["Authorization"] for a in consumer.posted("/all"))
    (once,) = consumer.posted("/some")
    assert once.body["vnfLcmOpOccId"] == changed["id"]
    assert once.body["id"] in {each["id"] for each in notifications}, "one id for all subscribers"
    assert consumer.posted("/none") == []
    for subscription in vnfm.call("GET", "/vnflcm/v2/subscriptions").json():
        vnfm.call("DELETE", f"/vnflcm/v2/subscriptions/{subscription['id']}")


def test_credentials_are_in_no_database_file_and_no_response(
    vnfm: Site, consumer: Consumer
) -> None:
    subscription = subscribe(vnfm, consumer.url, authentication=BASIC)
    path = vnfm.instantiated(ROLLING, "kept")
    secrets = [PASSWORD, vnfm.stage.cluster.token, vnfm.token]
    files = list(vnfm.service.context.settings.folder.glob("vnfm.sqlite*"))
    assert files
    kept = b"".join(file.read_bytes() for file in files)
    assert b"rolling" in kept, "the database stores plain text"
    shown = [
        vnfm.call("GET", "/v1.0/vims"),
        vnfm.call("GET", path),
        vnfm.call("GET", f"/vnflcm/v2/subscriptions/{subscription}"),
        vnfm.call("GET", "/vnflcm/v2/vnf_lcm_op_occs?all_fields"),
        vnfm.call("GET", "/metrics"),
    ]
    for secret in secrets:
        assert secret.encode() not in kept
        assert all(secret not in answer.text for answer in shown)
    vnfm.remove(path)
    vnfm.call("DELETE", f"/vnflcm/v2/subscriptions/{subscription}")


def test_a_callback_that_does_not_answer_204_is_refused(vnfm: Site, consumer: Consumer) -> None:
    consumer.statuses.append(404)
    body = {"callbackUri": consumer.url}
    url = f"{vnfm.url}/vnflcm/v2/subscriptions"
    answer = vnfm.client.post(url, json=body, timeout=30)
    assert answer.status_code == 422
    assert "found 404" in answer.json()["detail"]
    assert vnfm.call("GET", "/vnflcm/v2/subscriptions").json() == []


@pytest.mark.parametrize("path", ["/", "/page/page.js", "/page/page.css", "/healthz", "/readyz"])
def test_paths_without_data_need_no_token(vnfm: Site, path: str) -> None:
    answer = vnfm.client.get(vnfm.url + path, headers={"X-Auth-Token": None}, timeout=30)
    assert answer.status_code == 200, answer.text
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "path",
    ["/metrics", "/vnfpkgm/v1/vnf_packages", "/vnflcm/v1/vnf_instances", "/v1.0/vims"],
)
def test_all_other_paths_need_a_token(vnfm: Site, path: str) -> None:
    answer = vnfm.client.get(vnfm.url + path, headers={"X-Auth-Token": None}, timeout=30)
    assert answer.status_code == 401


@pytest.mark.parametrize("path", ["/page/", "/page/__init__.py", "/page/../tokens", "/page/..%2f"])
def test_only_the_pages_own_files_are_served(vnfm: Site, path: str) -> None:
    assert vnfm.client.get(vnfm.url + path, timeout=30).status_code in (401, 404)
