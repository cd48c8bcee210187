# SPDX-License-Identifier: Apache-2.0
"""What another client wrote into a live object stays, by its managed fields."""

from __future__ import annotations

from typing import Any

import pytest

from container_update.planning.comparison.live_objects import with_fields_of_others

HOOK = 'k:{"name":"a"}'
SAID = {"webhooks": [{"name": "a", "clientConfig": {"service": "s"}, "rules": [1]}]}
LIVE = {
    "webhooks": [
        {"name": "a", "clientConfig": {"service": "s", "caBundle": "CA"}, "rules": [1]},
        {"name": "b", "clientConfig": {"url": "u"}},
    ],
}
CA = {"f:webhooks": {HOOK: {"f:clientConfig": {"f:caBundle": {}}}}}
ANOTHER = {"f:webhooks": {'k:{"name":"b"}': {".": {}, "f:name": {}, "f:clientConfig": {}}}}
DEPLOYER = {"f:webhooks": {HOOK: {".": {}, "f:name": {}, "f:clientConfig": {"f:caBundle": {}}}}}
INJECTED = [{**SAID["webhooks"][0], "clientConfig": {"service": "s", "caBundle": "CA"}}]


def with_ca(ca: str) -> dict[str, Any]:
    hook = SAID["webhooks"][0]
    return {"webhooks": [{**hook, "clientConfig": {"service": "s", "caBundle": ca}}]}


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "a field that an injector wrote": (CA, SAID, SAID, {"webhooks": INJECTED}),
    "one that the manifests leave empty": (CA, with_ca(""), with_ca(""), {"webhooks": INJECTED}),
    "one that the new manifest says": (CA, SAID, with_ca("own"), with_ca("own")),
    "one that only the old one says": (CA, with_ca("x"), SAID, SAID),
    "an element": (ANOTHER, SAID, SAID, {"webhooks": [*SAID["webhooks"], LIVE["webhooks"][1]]}),
    "a default of who deployed it": (DEPLOYER, SAID, SAID, SAID),
    "a status": ({"f:status": {"f:ready": {}}}, SAID, SAID, SAID),
}


def test_who_applies_a_field_of_an_element_has_to_name_it_and_has_not_deployed_it() -> None:
    entry = {"manager": "m", "operation": "Apply", "fieldsV1": DEPLOYER}
    live = {**LIVE, "metadata": {"managedFields": [entry]}}
    assert with_fields_of_others(SAID, SAID, live) == {"webhooks": INJECTED}
    entry["fieldsV1"] = {"f:webhooks": {HOOK: {**DEPLOYER["f:webhooks"][HOOK], "f:rules": {}}}}
    assert with_fields_of_others(SAID, SAID, live) == SAID, "who says what the manifest says has"


@pytest.mark.parametrize(("fields", "old", "new", "expected"), CASES.values(), ids=CASES)
def test_what_stays_of_a_live_object(fields: Any, old: Any, new: Any, expected: Any) -> None:
    entry = {"manager": "m", "operation": "Update", "fieldsV1": fields}
    live = {**LIVE, "status": {"ready": 1}, "metadata": {"managedFields": [entry]}}
    assert with_fields_of_others(new, old, live) == expected
