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
ADMISSION, WEBHOOKS = "admissionregistration.k8s.io", "ValidatingWebhookConfiguration"
KEPT = {"metadata": {"annotations": {"helm.sh/resource-policy": " Keep "}}}
JUDGES: dict[str, tuple[tuple[str, str], Json, str | None]] = {
    "a webhook": (
        (ADMISSION, WEBHOOKS), {"webhooks": [{"clientConfig": OTHER}, {"clientConfig": CALL}]}, None
    ),
    "an APIService": (("apiregistration.k8s.io", "APIService"), {"spec": CALL}, None),
    "a webhook elsewhere": (
        (ADMISSION, WEBHOOKS), {"webhooks": [{"clientConfig": OTHER}]}, "it is cluster-scoped"
    ),
    "a webhook at a URL": (
        (ADMISSION, WEBHOOKS), {"webhooks": [{"clientConfig": {"url": "x"}}]}, "it is cluster"
    ),
    "one that is to be kept": (
        (ADMISSION, WEBHOOKS), {**KEPT, "webhooks": [{"clientConfig": CALL}]}, "its annotation"
    ),
    "a conversion": (
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        {"spec": {**NAMES, "conversion": {"webhook": {"clientConfig": CALL}}}},
        "Service cnf/hook, which converts its objects, is deleted",
    ),
    "another kind": (
        ("example.com", "Widget"), {"spec": CALL, "webhooks": ["text"]}, "it is cluster-scoped"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "body", "why"), JUDGES.values(), ids=JUDGES)
def test_what_calls_a_service_that_goes_does_not_stay_without_it(
    kind: tuple[str, str], body: Json, why: str | None
) -> None:
    judge = ObjectKey(*kind, "", "judge")
    live = {judge: {"metadata": {}, **body}, SERVICE: {"metadata": {"namespace": "cnf"}}}
    staying = why_they_stay(live, Included())
    assert staying.keys() == ({judge} if why else set())
    assert (why or "") in staying.get(judge, "")
