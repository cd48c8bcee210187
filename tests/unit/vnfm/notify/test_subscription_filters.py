# SPDX-License-Identifier: Apache-2.0
"""Which notifications a subscription's filter lets through."""

from __future__ import annotations

from typing import Any

import pytest

from container_update.vnfm.api.models import NewSubscription
from container_update.vnfm.notify.outbox import matches

STATE = {
    "notificationType": "VnfLcmOperationOccurrenceNotification",
    "operation": "MODIFY_INFO",
    "operationState": "COMPLETED",
}
CREATED = {"notificationType": "VnfIdentifierCreationNotification"}
INSTANCE = {
    "id": "i",
    "vnfdId": "d",
    "vnfInstanceName": "n",
    "vnfProvider": "P",
    "vnfProductName": "N",
    "vnfSoftwareVersion": "1",
    "vnfdVersion": "1.0",
}


def of(**instance: Any) -> dict[str, Any]:
    return {"vnfInstanceSubscriptionFilter": instance}


def product(*products: Any, provider: str = "P") -> dict[str, Any]:
    below = {"vnfProducts": list(products)} if products else {}
    return of(vnfProductsFromProviders=[{"vnfProvider": provider, **below}])


def version(software: str, *vnfds: str) -> dict[str, Any]:
    below = {"vnfdVersions": list(vnfds)} if vnfds else {}
    return product({"vnfProductName": "N", "versions": [{"vnfSoftwareVersion": software, **below}]})


CASES: list[tuple[Any, bool, bool]] = [
    # filter, lets the state's notification through, the creation's
    (None, True, True),
    ({}, True, True),
    ({"notificationTypes": [STATE["notificationType"]]}, True, False),
    ({"notificationTypes": [CREATED["notificationType"], STATE["notificationType"]]}, True, True),
    ({"operationTypes": ["MODIFY_INFO", "TERMINATE"]}, True, True),
    ({"operationTypes": ["TERMINATE"]}, False, True),
    ({"operationTypes": ["CHANGE_EXT_CONN"]}, False, True),
    ({"operationStates": ["COMPLETED"]}, True, True),
    ({"operationStates": ["FAILED"]}, False, True),
    ({"operationTypes": ["MODIFY_INFO"], "operationStates": ["FAILED"]}, False, True),
    (of(), True, True),
    (of(vnfdIds=["x", "d"]), True, True),
    (of(vnfdIds=["x"]), False, False),
    (of(vnfInstanceIds=["i"], vnfInstanceNames=["n"]), True, True),
    (of(vnfInstanceIds=["i"], vnfInstanceNames=["x"]), False, False),
    (product(), True, True),
    (product(provider="x"), False, False),
    (product({"vnfProductName": "N"}), True, True),
    (product({"vnfProductName": "x"}), False, False),
    (product({"vnfProductName": "x"}, {"vnfProductName": "N"}), True, True),
    (version("1"), True, True),
    (version("2"), False, False),
    (version("1", "0.9", "1.0"), True, True),
    (version("1", "0.9"), False, False),
]

MISSHAPEN: list[Any] = [
    "x",
    [],
    {"unknown": []},
    {"operationTypes": "MODIFY_INFO"},
    {"operationStates": [1]},
    {"operationStates": ["DONE"]},
    {"operationTypes": ["UPDATE"]},
    {"notificationTypes": ["VnfLcmOperationOccurenceNotification"]},
    of(unknown=1),
    {"vnfInstanceSubscriptionFilter": []},
    {"vnfInstanceSubscriptionFilter": None},
    of(vnfdIds=[None]),
    of(vnfProductsFromProviders={}),
    of(vnfProductsFromProviders=["P"]),
    of(vnfProductsFromProviders=[{}]),
    product({"vnfProductName": 1}),
    product({"vnfProductName": "N", "versions": "1"}),
    product({"vnfProductName": "N", "versions": [{"vnfSoftwareVersion": "1", "vnfdVersions": 1}]}),
]


@pytest.mark.parametrize(("filter_body", "state", "created"), CASES, ids=str)
def test_a_filter_lets_through(filter_body: Any, state: bool, created: bool) -> None:
    NewSubscription(callbackUri="http://127.0.0.1", filter=filter_body)
    assert matches(filter_body, STATE, INSTANCE) is state
    assert matches(filter_body, CREATED, INSTANCE) is created


@pytest.mark.parametrize("filter_body", MISSHAPEN, ids=str)
def test_a_misshapen_filter_is_refused(filter_body: Any) -> None:
    with pytest.raises(ValueError, match=r"filter\W.* expected|dictionary"):
        NewSubscription(callbackUri="http://127.0.0.1", filter=filter_body)
