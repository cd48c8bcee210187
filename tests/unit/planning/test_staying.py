# SPDX-License-Identifier: Apache-2.0
"""What an uninstallation leaves, and why."""

from __future__ import annotations

import pytest

from container_update.model.objects import Json, ObjectKey
from container_update.planning.staying import Included, why_they_stay

SERVICE = ObjectKey("", "Service", "cnf", "hook")
CALL = {"service": {"namespace": "cnf", "name": "hook"}}
OTHER = {"service": {"namespace": "cnf", "name": "another"}}
NAMES = {"group": "example.com", "names": {"kind": "Widget"}}
JUDGES: dict[str, tuple[Json, str | None]] = {
    "a webhook": ({"webhooks": [{"clientConfig": OTHER}, {"clientConfig": CALL}]}, None),
    "an APIService": ({"spec": CALL}, None),
    "a webhook elsewhere": ({"webhooks": [{"clientConfig": OTHER}]}, "it is in no namespace"),
    "a webhook at a URL": ({"webhooks": [{"clientConfig": {"url": "x"}}]}, "it is in no namespace"),
    "one that is to be kept": (
        {
            "metadata": {"annotations": {"helm.sh/resource-policy": "keep"}},
            "webhooks": [{"clientConfig": CALL}],
        },
        "its annotation",
    ),
    "a conversion": (
        {"spec": {**NAMES, "conversion": {"webhook": {"clientConfig": CALL}}}},
        "Service cnf/hook, which converts its objects, goes",
    ),
}


@pytest.mark.parametrize(("body", "why"), JUDGES.values(), ids=JUDGES)
def test_what_calls_a_service_that_goes_does_not_stay_without_it(
    body: Json, why: str | None
) -> None:
    kind = "CustomResourceDefinition" if "group" in body.get("spec", {}) else "Judge"
    group = "apiextensions.k8s.io" if kind != "Judge" else "example.com"
    judge = ObjectKey(group, kind, "", "judge")
    live = {judge: {"metadata": {}, **body}, SERVICE: {"metadata": {"namespace": "cnf"}}}
    staying = why_they_stay(live, Included())
    assert staying.keys() == ({judge} if why else set())
    assert (why or "") in staying.get(judge, "")
