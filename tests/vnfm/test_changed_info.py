# SPDX-License-Identifier: Apache-2.0
"""What an occurrence and its notifications tell of changed attributes and resources, over REST."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from container_update import Options
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.functional.upgrade_types import ROLLING
from tests.internals.service import (
    Service,
    Settings,
    VnfRecord,
    modifications,
    triggered_by_package,
)
from tests.vnfm import vnfs
from tests.vnfm.client import Client
from tests.vnfm.consumer import Consumer
from tests.vnfm.waiting import until

Json = dict[str, Any]

# --- the difference -------------------------------------------------------------------------------

PRODUCT = {
    "vnfProvider": "Company", "vnfProductName": "Sample", "vnfSoftwareVersion": "1.0",
    "vnfdVersion": "1.0",
}  # fmt: skip
OTHER_PRODUCT = {
    "vnfProvider": "Successor", "vnfProductName": "Renamed", "vnfSoftwareVersion": "2.0",
    "vnfdVersion": "2.1",
}  # fmt: skip
VIM = {"vimId": "vim-1", "vimType": "kubernetes", "accessInfo": {"bearer_token": "hunter2"}}
RENEWED = {**VIM, "accessInfo": {"bearer_token": "hunter3"}}


def record(vnfd_id: str = "old", vims: Any = None, **body: Any) -> VnfRecord:
    return VnfRecord(vnfd_id, instantiated=True, body={**PRODUCT, **body}, vims=vims)


MODIFICATIONS: dict[str, tuple[VnfRecord, VnfRecord, Json | None]] = {
    "nothing": (record(metadata={"a": "b"}), record(metadata={"a": "b"}), None),
    "another package": (
        record(), record("new", **OTHER_PRODUCT), {"vnfdId": "new", **OTHER_PRODUCT},
    ),
    "a package of the same product": (
        record(vnfPkgId="1"), record("new", vnfSoftwareVersion="2.0", vnfPkgId="2"),
        {"vnfdId": "new", "vnfSoftwareVersion": "2.0", "vnfPkgId": "2"},
    ),
    "names": (
        record(vnfInstanceName="a", vnfInstanceDescription="x"),
        record(vnfInstanceName="b", vnfInstanceDescription="x"),
        {"vnfInstanceName": "b"},
    ),
    "keys that came, went, and changed": (
        record(metadata={"stays": 1, "goes": 2, "in": {"x": 1, "y": 2}}, extensions={"a": 1}),
        record(metadata={"stays": 1, "comes": 3, "in": {"x": 1, "y": 4}}, extensions={"a": 1}),
        {"metadata": {"goes": None, "comes": 3, "in": {"y": 4}}},
    ),
    "a credential in the metadata": (
        record(), record(metadata={"password": "hunter2"}), {"metadata": {"password": "***"}},
    ),
    "VIMs of v2": (
        record(vims={"one": VIM, "gone": VIM}), record(vims={"one": RENEWED}),
        {"vimConnectionInfo": {"one": {"accessInfo": {"bearer_token": "***"}}, "gone": None}},
    ),
    "VIMs of v1": (
        record(vims=[{"id": "1", **VIM}, {"id": "2", **VIM}, {"id": "3", **VIM}]),
        record(vims=[{"id": "1", **VIM}, {"id": "2", **RENEWED}]),
        {
            "vimConnectionInfo": [{"id": "2", **VIM, "accessInfo": {"bearer_token": "***"}}],
            "vimConnectionInfoDeleteIds": ["3"],
        },
    ),
    "properties of a VNFC": (
        record(instantiatedVnfInfo={"vnfcInfo": [{"id": "1"}, {"id": "2"}, {"id": "gone"}]}),
        record(instantiatedVnfInfo={"vnfcInfo": [
            {"id": "1", "vnfcConfigurableProperties": {"a": 1}}, {"id": "2"}, {"id": "new"},
        ]}),
        {"vnfcInfoModifications": [{"id": "1", "vnfcConfigurableProperties": {"a": 1}}]},
    ),
}  # fmt: skip
"""The record before and after, and changedInfo."""


@pytest.mark.parametrize("case", MODIFICATIONS)
def test_changed_info_is_what_differs(case: str) -> None:
    before, after, expected = MODIFICATIONS[case]
    assert modifications(before, after) == expected


def test_a_change_of_the_package_tells_of_the_attributes_that_sol003_lists() -> None:
    after = record("new", {"one": VIM}, **OTHER_PRODUCT, extensions={"a": 1}, vnfInstanceName="x")
    changed = triggered_by_package(record(), after)
    assert changed == {"vnfdId": "new", **OTHER_PRODUCT, "extensions": {"a": 1}}
    assert triggered_by_package(after, after) is None


# --- over REST ------------------------------------------------------------------------------------


@pytest.fixture
def http(tmp_path: Path) -> Iterator[TestClient]:
    settings = Settings(
        state_dir=str(tmp_path / "state"), auth="none", callback_hosts=("127.0.0.1",)
    )
    service = Service(settings, Options(timeout=30, grace_period=1))
    with TestClient(service.app, base_url="http://127.0.0.1:9890") as http:
        yield http


def results(consumer: Consumer, path: str, operation: str) -> list[Json]:
    """Return the notifications of an operation's result, once there is one."""

    def received() -> list[Json]:
        bodies = [request.body for request in consumer.posted(path)]
        of_operation = [body for body in bodies if body.get("operation") == operation]
        return [body for body in of_operation if body["notificationStatus"] == "RESULT"]

    until(lambda: bool(received()), f"the result of {operation} at {path}")
    return received()


def subscribe(client: Client, uri: str, **body: Any) -> Json:
    path = f"/vnflcm/{client.api}/subscriptions"
    created: Json = client.call("POST", path, {"callbackUri": uri, **body}, 201)
    assert client.call("GET", f"{path}/{created['id']}") == created
    return created


@pytest.mark.parametrize("api", ["v1", "v2"])
def test_a_modification_tells_what_changed(
    api: str, http: TestClient, consumer: Consumer, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    client = Client(http, api)
    path, new = vnfs.launched(client, cluster, tmp_path)
    client.do("PATCH", path, {"vnfInstanceName": "same", "metadata": {"stays": "1"}})
    subscribe(client, f"{consumer.url}/all")
    body = {"vnfdId": new, "vnfInstanceName": "same", "metadata": {"stays": "1", "new": "2"}}
    occurrence = client.do("PATCH", path, body)
    changed = occurrence["changedInfo"]
    if api == "v1":
        assert changed.pop("vnfPkgId") == client.call("GET", path)["vnfPkgId"]
    assert changed == {"vnfdId": new, "vnfSoftwareVersion": "2.0", "metadata": {"new": "2"}}
    (result,) = results(consumer, "/all", "MODIFY_INFO")
    assert (
        result["changedInfo"]
        == client.call("GET", occurrence["_links"]["self"]["href"])["changedInfo"]
    )
    assert result["affectedVnfcs"] == occurrence["resourceChanges"]["affectedVnfcs"]
    assert ("verbosity" in result) is (api == "v2")
    assert "changedInfo" not in client.do("PATCH", path, {"vnfInstanceName": "same"})


def test_a_change_of_the_package_tells_it_as_verbosely_as_was_subscribed(
    http: TestClient, consumer: Consumer, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    client = Client(http, "v2")
    path, new = vnfs.launched(client, cluster, tmp_path)
    levels = {"default": {}, "full": {"verbosity": "FULL"}, "short": {"verbosity": "SHORT"}}
    shown = [
        subscribe(client, f"{consumer.url}/{name}", **body)["verbosity"]
        for name, body in levels.items()
    ]
    assert shown == ["FULL", "FULL", "SHORT"]
    params = {"upgrade_type": ROLLING}
    occurrence = client.do(
        "POST", f"{path}/change_vnfpkg",
        {"vnfdId": new, "additionalParams": params, "extensions": {"a": "b"}},
    )  # fmt: skip
    triggered = {"vnfdId": new, "vnfSoftwareVersion": "2.0", "extensions": {"a": "b"}}
    assert occurrence["modificationsTriggeredByVnfPkgChange"] == triggered
    assert "changedInfo" not in occurrence, "SOL003 allows one of the two only"
    default, full, short = (results(consumer, f"/{name}", "CHANGE_VNFPKG")[0] for name in levels)
    for result in (default, full):
        assert result["verbosity"] == "FULL"
        assert result["modificationsTriggeredByVnfPkgChange"] == triggered
        assert {change["changeType"] for change in result["affectedVnfcs"]} == {"ADDED", "REMOVED"}
    assert short["verbosity"] == "SHORT"
    details = {"affectedVnfcs", "modificationsTriggeredByVnfPkgChange"}
    assert full.keys() - short.keys() == details
    assert short.keys() <= full.keys()


def test_the_states_with_an_error_are_failed_and_rolled_back(
    http: TestClient, consumer: Consumer, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    client = Client(http, "v2")
    path, new = vnfs.launched(client, cluster, tmp_path)
    subscribe(client, f"{consumer.url}/all")
    cluster.behaviour.bad_images = ["*/web:2.0"]
    failed = client.do("PATCH", path, {"vnfdId": new}, "FAILED_TEMP")
    client.do("POST", f"{failed['_links']['self']['href']}/rollback", state="ROLLED_BACK")
    cluster.behaviour.bad_images = []
    client.do("PATCH", path, {"vnfInstanceName": "other"})
    until(lambda: len(consumer.posted("/all")) == 8, "all notifications")
    told = [(each.body["operationState"], "error" in each.body) for each in consumer.posted("/all")]
    assert told == [
        ("STARTING", False),
        ("PROCESSING", False),
        ("FAILED_TEMP", True),
        ("ROLLING_BACK", False),
        ("ROLLED_BACK", True),
        ("STARTING", False),
        ("PROCESSING", False),
        ("COMPLETED", False),
    ]


def test_verbosity_is_refused_where_it_is_unknown(http: TestClient, consumer: Consumer) -> None:
    body = {"callbackUri": consumer.url, "verbosity": "SHORT"}
    refused = Client(http, "v1").call("POST", "/vnflcm/v1/subscriptions", body, 422)
    assert "verbosity" in refused["detail"]
    assert "verbosity" not in subscribe(Client(http, "v1"), consumer.url)
    body["verbosity"] = "LOUD"
    refused = Client(http, "v2").call("POST", "/vnflcm/v2/subscriptions", body, 422)
    assert "FULL" in refused["detail"]
    schemas = http.get("/openapi.json").json()["components"]["schemas"]
    assert schemas["NewSubscriptionV2"]["properties"]["verbosity"]["enum"] == ["FULL", "SHORT"]
    assert "verbosity" not in schemas["NewSubscription"]["properties"]
