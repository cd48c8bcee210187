# SPDX-License-Identifier: Apache-2.0
"""What an installation makes of objects that exist already."""

from __future__ import annotations

import pytest

from container_update.model.errors import PlanError
from container_update.model.objects import INSTANCE_LABEL, Json, Manifest, ObjectKey, Source
from container_update.planning.lifecycle import install_plan, own_objects

CONFIG = ObjectKey("", "ConfigMap", "cnf", "c")
ROLE = ObjectKey("rbac.authorization.k8s.io", "ClusterRole", "", "r")
SPACE = ObjectKey("", "Namespace", "", "cnf")
ENDING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def body(key: ObjectKey, said: str, owner: str | None = None, **more: str) -> Json:
    content = {"rules": [said]} if key == ROLE else {"data": {"x": said}}
    labels = {INSTANCE_LABEL: owner} if owner else {}
    metadata = {"name": key.name, "labels": labels, **more}
    if key.namespace:
        metadata["namespace"] = key.namespace
    version = f"{key.group}/v1" if key.group else "v1"
    return {"apiVersion": version, "kind": key.kind, "metadata": metadata, **content}


@pytest.mark.parametrize(
    ("key", "live", "expected"),
    [
        (CONFIG, body(CONFIG, "said", "one"), None),
        (CONFIG, body(CONFIG, "other", "one"), "differs from a.yaml"),
        (ROLE, body(ROLE, "said"), "belongs to no VNF instance: shared"),
        (ROLE, body(ROLE, "said", "another"), "belongs to VNF instance another: shared"),
        (SPACE, body(SPACE, "other"), "belongs to no VNF instance: shared"),
    ],
)
def test_what_exists_stays_and_a_note_says_why(
    key: ObjectKey, live: Json, expected: str | None
) -> None:
    manifest = Manifest(key, body(key, "said"), Source("a.yaml", 1))
    plan = install_plan([manifest], {key: live}, "cnf", "one")
    assert (plan.steps, plan.unchanged) == ((), (key,))
    assert [expected in note.text for note in plan.notes if expected] == [True] * bool(expected)


@pytest.mark.parametrize(
    ("key", "live", "expected"),
    [
        (CONFIG, body(CONFIG, "said"), "belongs to no VNF instance: choose"),
        (CONFIG, body(CONFIG, "said", "another"), "another: choose another namespace or name$"),
        (CONFIG, body(CONFIG, "other"), "and it differs from the package's"),
        (ROLE, body(ROLE, "other"), "and it differs from the package's"),
        (CONFIG, body(CONFIG, "said", "one", **ENDING), "is being deleted: wait until it is gone"),
    ],
)
def test_what_is_not_the_instances_or_is_going_is_refused(
    key: ObjectKey, live: Json, expected: str
) -> None:
    manifest = Manifest(key, body(key, "said"), Source("a.yaml", 1))
    with pytest.raises(PlanError, match=expected):
        install_plan([manifest], {key: live}, "cnf", "one")


@pytest.mark.parametrize(
    ("owner", "is_own"), [("mine", (True, True)), ("theirs", (False, False)), (None, (False, True))]
)
def test_a_label_decides_whose_an_object_is_and_where_there_is_none_the_record(
    owner: str | None, is_own: tuple[bool, bool]
) -> None:
    key = ObjectKey("", "ConfigMap", "cnf", "cm")
    live = {key: body(key, "a", owner)}
    assert tuple(key in own_objects(live, recorded, "mine") for recorded in ([], [key])) == is_own
