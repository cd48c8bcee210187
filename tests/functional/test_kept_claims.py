# SPDX-License-Identifier: Apache-2.0
"""The volume claims of a StatefulSet whose retention policy deletes them: the server does, unless
the policy says Retain by then."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from container_update import (
    ScaleRequest,
    TerminateRequest,
    UpdateFailedError,
    change_package,
    install,
    plan_of,
    terminate,
)
from tests.functional.cnf import BAD_IMAGE, IMAGES, INSTANCE, Cnf
from tests.functional.conftest import overwrite, until
from tests.functional.manifests import config_map, workload
from tests.functional.test_install import Shell
from tests.internals.core import Collection, Included, ObjectKey, Scale, run

DELETE = "{whenDeleted: Delete, whenScaled: Delete}"


def stateful_set(name: str = "db", image: str = IMAGES[0], replicas: int = 2) -> str:
    """Return a StatefulSet whose claims go with it and with its pods."""
    spec = f"""
persistentVolumeClaimRetentionPolicy: {DELETE}
volumeClaimTemplates:
- metadata: {{name: data}}
  spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Mi}}}}}}
"""
    return workload("StatefulSet", name, image=image, spec=spec, replicas=replicas)


def claims(cnf: Cnf) -> dict[str, str]:
    """Return the UIDs of the claims that are not being deleted, by name."""
    listed = cnf.admin.list(Collection("", "PersistentVolumeClaim", cnf.namespace)).items
    metadata = [body["metadata"] for body in listed]
    return {each["name"]: each["uid"] for each in metadata if "deletionTimestamp" not in each}


def owners(cnf: Cnf) -> set[str]:
    listed = cnf.admin.list(Collection("", "PersistentVolumeClaim", cnf.namespace)).items
    return {o["uid"] for body in listed for o in body["metadata"].get("ownerReferences") or ()}


def policy(cnf: Cnf) -> Any:
    return cnf.get("StatefulSet", "db")["spec"]["persistentVolumeClaimRetentionPolicy"]


@pytest.fixture
def before(cnf: Cnf) -> dict[str, str]:
    """The claims of a CNF with the StatefulSet, which owns them."""
    cnf.old = cnf.package({"db.yaml": stateful_set()})
    install(cnf.old, cnf.admin, options=cnf.options, **cnf.where)
    uid = cnf.get("StatefulSet", "db")["metadata"]["uid"]
    until(lambda: owners(cnf) == {uid})
    return claims(cnf)


@pytest.fixture
def shell(cnf: Cnf, admin_kubeconfig: str) -> Shell:
    return Shell(cnf, admin_kubeconfig)


def uninstalled(cnf: Cnf, included: Included = Included()) -> None:  # noqa: B008
    terminate(None, cnf.admin, included=included, options=cnf.options, **cnf.where)


def until_settled(cnf: Cnf) -> None:
    """Wait until the garbage collector has met an object that it is to delete."""
    owner = cnf.admin.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "o", "namespace": cnf.namespace},
        }
    )["metadata"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": owner["uid"]}
    metadata = {"name": "d", "namespace": cnf.namespace, "ownerReferences": [reference]}
    cnf.admin.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    cnf.admin.delete(cnf.key("ConfigMap", "o"))
    until(lambda: cnf.admin.get(cnf.key("ConfigMap", "d")) is None)


def test_an_uninstallation_keeps_them_as_its_plan_says(
    cnf: Cnf, shell: Shell, before: dict[str, str]
) -> None:
    text = shell.run("uninstall", "--instance-id", INSTANCE, "--plan")[1]
    assert text.count("stays: it holds data") == 2
    assert "its volume claims stay: whenDeleted of its retention policy is set to Retain" in text
    assert policy(cnf)["whenDeleted"] == "Delete"
    assert shell.run("uninstall", "--instance-id", INSTANCE)[0] == 0
    until_settled(cnf)
    assert claims(cnf) == before


def test_those_of_pods_that_are_gone_are_kept_too(cnf: Cnf, before: dict[str, str]) -> None:
    body = cnf.get("StatefulSet", "db")
    body["spec"]["persistentVolumeClaimRetentionPolicy"]["whenScaled"] = "Retain"
    body["spec"]["replicas"] = 1
    overwrite(cnf.admin, body)
    until(lambda: len(cnf.pods("StatefulSet", "db")) == 1)
    uninstalled(cnf)
    until_settled(cnf)
    assert claims(cnf) == before


def test_an_uninstallation_with_its_data_deletes_them(
    cnf: Cnf, shell: Shell, before: dict[str, str]
) -> None:
    assert before
    text = shell.run("uninstall", "--instance-id", INSTANCE, "--delete-data", "--plan")[1]
    assert text.count("its volume, and the data on it (its reclaim policy is Delete)") == 2
    uninstalled(cnf, Included(data=True))
    until(lambda: claims(cnf) == {})


def test_one_is_found_behind_a_gap(cnf: Cnf) -> None:
    """Somebody has deleted the claim of the first pod alone."""
    package = cnf.package({"db.yaml": stateful_set().replace(": Delete", ": Retain")})
    install(package, cnf.admin, options=cnf.options, **cnf.where)
    body = cnf.get("StatefulSet", "db")
    body["spec"]["replicas"] = 0
    overwrite(cnf.admin, body)
    until(lambda: not cnf.pods("StatefulSet", "db"))
    cnf.admin.delete(ObjectKey("", "PersistentVolumeClaim", cnf.namespace, "data-db-0"))
    until(lambda: claims(cnf).keys() == {"data-db-1"})
    plan = plan_of(TerminateRequest(delete_data=True, **cnf.where), cnf.admin)
    assert {step.key.name for step in plan.steps} == {"db", "data-db-1"}


@pytest.mark.parametrize("data", [False, True])
def test_those_of_a_set_that_only_has_a_name_from_the_package_stay(cnf: Cnf, data: bool) -> None:
    settings = config_map(setting="a")
    install(cnf.package({"cm.yaml": settings}), cnf.admin, options=cnf.options, **cnf.where)
    body = yaml.safe_load(stateful_set())
    body["metadata"]["namespace"] = cnf.namespace
    cnf.admin.create(body)
    until(lambda: len(claims(cnf)) == len(cnf.pods("StatefulSet", "db")) == 2)
    package = cnf.package({"cm.yaml": settings, "db.yaml": stateful_set()})
    request = TerminateRequest(package, delete_data=data, **cnf.where)
    planned = {step.key.name for step in plan_of(request, cnf.admin).steps}
    assert planned == {"cm"}


@pytest.mark.parametrize("strategy", ["RollingUpdate", "Blue-Green"])
def test_a_change_that_removes_the_workload_keeps_them(
    cnf: Cnf, before: dict[str, str], strategy: str
) -> None:
    new = cnf.package({"cm.yaml": config_map(setting="a")})
    request = {"vnfdId": "any", "additionalParams": {"upgrade_type": strategy}}
    outcome = change_package(request, cnf.admin, cnf.options, old=cnf.old, new=new, **cnf.where)
    noted = {note.key.name for note in outcome.plan.notes if "holds data" in note.text}
    assert noted == before.keys()
    assert cnf.admin.get(cnf.key("StatefulSet", "db")) is None
    until_settled(cnf)
    assert claims(cnf) == before


def test_the_undo_of_an_installation_keeps_those_that_it_found(
    cnf: Cnf, before: dict[str, str]
) -> None:
    uninstalled(cnf)
    bad = cnf.package({"db.yaml": stateful_set(image=BAD_IMAGE)})
    with pytest.raises(UpdateFailedError) as raised:
        install(bad, cnf.admin, options=cnf.options, **cnf.where)
    assert raised.value.outcome.claims_left == ()
    assert cnf.admin.get(cnf.key("StatefulSet", "db")) is None
    until_settled(cnf)
    assert claims(cnf) == before


def test_the_undo_of_an_installation_names_those_that_it_leaves(cnf: Cnf) -> None:
    bad = cnf.package({"db.yaml": stateful_set(image=BAD_IMAGE, replicas=1)})
    with pytest.raises(UpdateFailedError) as raised:
        install(bad, cnf.admin, options=cnf.options, **cnf.where)
    assert claims(cnf).keys() == {"data-db-0"}
    assert [key.name for key in raised.value.outcome.claims_left] == ["data-db-0"]
    named = f"PersistentVolumeClaim {cnf.namespace}/data-db-0: stays, it holds data"
    assert named in raised.value.outcome.ending
    uninstalled(cnf, Included(data=True))
    until(lambda: claims(cnf) == {})
    assert cnf.history() == ()


def test_those_that_an_uninstallation_has_left_are_deleted_by_another_one(
    cnf: Cnf, before: dict[str, str]
) -> None:
    uninstalled(cnf)
    assert claims(cnf) == before
    uninstalled(cnf, Included(data=True))
    until(lambda: claims(cnf) == {})


def test_an_installation_says_whose_it_takes_over(cnf: Cnf, before: dict[str, str]) -> None:
    uninstalled(cnf)
    retaining = stateful_set().replace(DELETE, "{whenDeleted: Retain, whenScaled: Retain}")
    package, other = cnf.package({"db.yaml": retaining}), {**cnf.where, "instance_id": "other"}
    outcome = install(package, cnf.admin, options=cnf.options, **other)
    notes = {note.key.name: note.text for note in outcome.plan.notes}
    assert notes.keys() == before.keys()
    assert all(f"VNF instance {INSTANCE}'s, with 1Mi" in text for text in notes.values())
    uninstalled(cnf, Included(data=True))
    assert claims(cnf) == before, "another instance runs on them"
    outcome = terminate(None, cnf.admin, included=Included(data=True), options=cnf.options, **other)
    whose = {note.text.partition(":")[0] for note in outcome.plan.notes}
    assert whose == {f"stays, it is VNF instance {INSTANCE}'s"}
    uninstalled(cnf, Included(data=True))
    until(lambda: claims(cnf) == {})


def test_a_scale_in_keeps_them_and_the_policy_is_as_before(
    cnf: Cnf, before: dict[str, str]
) -> None:
    goal = Scale(ScaleRequest(cnf.old, {"V": 1}, **cnf.where), cnf.options)
    goal.packages = replace(goal.packages, new_vdus={"V": "db"})
    outcome = run(goal, cnf.admin, cnf.options)
    reasons = [str(reason) for result in outcome.results for reason in result.step.reasons]
    assert any("its volume claims stay: whenScaled" in reason for reason in reasons)
    until(lambda: cnf.admin.get(cnf.key("Pod", "db-1")) is None)
    until_settled(cnf)
    assert claims(cnf) == before
    assert policy(cnf) == {"whenDeleted": "Delete", "whenScaled": "Delete"}
