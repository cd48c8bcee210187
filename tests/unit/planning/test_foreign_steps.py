# SPDX-License-Identifier: Apache-2.0
"""Which steps of an unsigned journal are believed: those about what is the instance's."""

from __future__ import annotations

import pytest

from container_update.model.objects import INSTANCE_LABEL, Json, ObjectKey
from container_update.model.plan import Action
from container_update.planning.foreign_steps import Owned
from container_update.planning.steps import ManifestStep
from container_update.planning.steps.manifest import manifest_digest, with_recorded_digest

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


TEAM = ObjectKey("", "Service", "beside", "there")


def service(**spec: object) -> Json:
    metadata = {"name": "there", "namespace": "beside", "labels": {INSTANCE_LABEL: "one"}}
    ports = {"ports": [{"port": 80, "protocol": "TCP"}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": ports | spec}


@pytest.mark.parametrize("part", ["before", "content", "both"])
@pytest.mark.parametrize("mends", [False, True])
def test_a_field_of_another_client_elsewhere_stays_where_a_journal_leaves_it_out(
    part: str, mends: bool
) -> None:
    """The journal's own writer may have left it out, so that the updater takes it away."""
    fields: Json = {"f:spec": {"f:externalIPs": {}}}
    theirs = {"manager": "their-operator", "operation": "Update", "fieldsV1": fields}
    live = service(externalIPs=["192.0.2.1"], sessionAffinity="None")
    live["metadata"] |= {"managedFields": [theirs], "uid": "u"}
    old, new = (service(sessionAffinity=value) for value in ("None", "ClientIP"))
    forged = {key: value for key, value in live["spec"].items() if key != "externalIPs"}
    without = with_recorded_digest(live, manifest_digest(new))
    without["spec"] = {**forged, "sessionAffinity": "ClientIP"}
    whole = {**without, "spec": {**live["spec"], "sessionAffinity": "ClientIP"}}
    step = ManifestStep(
        TEAM,
        Action.REPLACE,
        live if part == "content" else {**live, "spec": forged},
        content=whole if part == "before" else without,
        mends=mends,
    )
    about = Owned("one", "cnf", {TEAM: [old, new]}, frozenset({"cnf", "beside"}), all_of_it=True)
    ((believed,), foreign) = about.trusted_steps([step], {TEAM: live}, Action.DELETE)
    assert foreign == ()
    written = believed.with_change(live)
    assert written["spec"]["externalIPs"] == ["192.0.2.1"]
    assert written["spec"]["sessionAffinity"] == "ClientIP"
    undone = believed.without_change(written)
    assert (undone["spec"]["externalIPs"], undone["spec"]["sessionAffinity"]) == (
        *(["192.0.2.1"], "None"),
    )
