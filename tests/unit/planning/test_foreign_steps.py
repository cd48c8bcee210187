# SPDX-License-Identifier: Apache-2.0
"""Which steps of an unsigned journal are believed: those about what is the instance's."""

from __future__ import annotations

import pytest

from container_update.model.objects import INSTANCE_LABEL, Json, ObjectKey
from container_update.model.plan import Action
from container_update.planning.foreign_steps import Owned
from container_update.planning.steps import ManifestStep

BESIDE = ObjectKey("", "ConfigMap", "beside", "there")
HERE = ObjectKey("", "ConfigMap", "cnf", "here")


def body(key: ObjectKey, value: str, instance: str | None = None) -> Json:
    labels = {INSTANCE_LABEL: instance} if instance else {}
    metadata = {"name": key.name, "namespace": key.namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": key.kind, "metadata": metadata, "data": {"x": value}}


def owned(*described: Json) -> Owned:
    """Return what belongs to instance one of namespace cnf, whose journal has a Secret beside."""
    known = {ObjectKey.of(each): [each] for each in described}
    return Owned("one", "cnf", known, frozenset({"cnf", "beside"}), all_of_it=True)


@pytest.mark.parametrize(
    ("key", "is_described", "label"),
    [
        (BESIDE, True, "another"),
        (BESIDE, True, None),
        (BESIDE, False, "another"),
        (BESIDE, False, None),
        (HERE, False, "another"),
        (HERE, True, "another"),
    ],
)
def test_what_is_not_the_instances_is_not_deleted(
    key: ObjectKey, is_described: bool, label: str | None
) -> None:
    step = ManifestStep(key, Action.DELETE, body(key, "said", "one"))
    about = owned(*([body(key, "said")] if is_described else []))
    live = {key: body(key, "said", label)}
    assert about.trusted_steps([step], live, Action.DELETE) == ((), (key,))


@pytest.mark.parametrize("key", [HERE, BESIDE])
def test_the_undo_of_a_deletion_creates_what_was_there_not_what_a_journal_says(
    key: ObjectKey,
) -> None:
    step = ManifestStep(key, Action.DELETE, body(key, "forged", "one"))
    live = body(key, "as it was", "one")
    ((believed,), foreign) = owned().trusted_steps([step], {key: live}, Action.DELETE)
    assert (believed.before, foreign) == (live, ())


@pytest.mark.parametrize(
    ("key", "label", "is_believed"),
    [
        (HERE, None, True),
        (HERE, "one", True),
        (HERE, "another", False),
        (BESIDE, None, False),
        (BESIDE, "one", False),
        (ObjectKey("rbac.authorization.k8s.io", "Role", "cnf", "r"), "one", False),
        (ObjectKey("", "Namespace", "", "other"), "one", False),
    ],
)
def test_what_no_package_describes_is_written_in_the_own_namespace_alone(
    key: ObjectKey, label: str | None, is_believed: bool
) -> None:
    content = body(key, "forged", "one")
    step = ManifestStep(key, Action.REPLACE, body(key, "1", label), content=content)
    believed, foreign = owned().trusted_steps([step], {key: body(key, "1", label)}, Action.DELETE)
    assert (len(believed), len(foreign)) == ((1, 0) if is_believed else (0, 1))


@pytest.mark.parametrize("key", [HERE, BESIDE])
def test_what_a_package_describes_and_another_instance_has_is_not_written(key: ObjectKey) -> None:
    said = body(key, "said")
    step = ManifestStep(key, Action.REPLACE, body(key, "1", "another"), content=said)
    about = owned(said)
    assert about.unknown([step]) == (key,), "its label is read"
    live = {key: body(key, "1", "another")}
    assert about.trusted_steps([step], live, Action.DELETE) == ((), (key,))
