# SPDX-License-Identifier: Apache-2.0
"""What a ResourceQuota refuses: pods of each kind of workload, and the journal.

Without a rule for it, an update would wait for pods that never come until its time is over.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from container_update import (
    ClusterError,
    Plan,
    Step,
    StepResult,
    UpdateFailedError,
    change_package,
    update,
)
from tests.functional import role
from tests.functional.cnf import BAD_IMAGE, IMAGES, Cnf
from tests.functional.conftest import until
from tests.functional.manifests import ENV, config_map, workload
from tests.internals.core import Collection, Json, ObjectKey, StepState

SURGE = "strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}"
KINDS = {"Deployment": SURGE, "ReplicaSet": "", "DaemonSet": ""}
ROOM = {"Deployment": 2}
"""How many pods the quota allows: a Deployment begins with one more than before, the others with
one less, which is then refused."""
WITHOUT_LOSS = {
    "a Deployment": ("Deployment", ""),
    "a Deployment that is recreated": ("Deployment", "strategy: {type: Recreate}"),
    "a StatefulSet": ("StatefulSet", ""),
}
"""Kinds whose old pods go before the server refuses new ones."""


def set_quota(cnf: Cnf, **hard: int) -> ObjectKey:
    """Create a quota with these limits, and wait until the server holds to it."""
    metadata = {"name": "limit", "namespace": cnf.namespace}
    spec = {"hard": {name: str(number) for name, number in hard.items()}}
    cnf.admin.create(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}
    )
    return ObjectKey("", "ResourceQuota", cnf.namespace, "limit")


def images_of(cnf: Cnf, kind: str) -> set[str]:
    return {pod.image for pod in cnf.pods(kind, "w").values()}


@pytest.mark.parametrize("kind", KINDS)
def test_pods_that_are_refused_fail_the_update_with_the_controllers_message(
    cnf: Cnf, kind: str
) -> None:
    """The quota goes as soon as the update has failed: the undo needs room for the old pods."""
    replicas = None if kind == "DaemonSet" else 2
    old = {"w": workload(kind, spec=KINDS[kind], replicas=replicas)}
    cnf.instantiate(**old)
    quota = set_quota(cnf, pods=ROOM.get(kind, 0))

    def make_room(event: Plan | Step | StepResult) -> None:
        if isinstance(event, StepResult) and event.state is StepState.FAILED:
            cnf.admin.delete(quota)

    new = {"w": workload(kind, spec=KINDS[kind], replicas=replicas, image=IMAGES[1])}
    with pytest.raises(UpdateFailedError) as raised:
        update(cnf.request(new), cnf.cluster, cnf.options, progress=make_room)
    message = str(raised.value)
    assert f"{kind} {cnf.namespace}/w failed" in message
    assert "not ready in time" not in message
    assert "FailedCreate: " in message
    assert "is forbidden: exceeded quota: limit, requested: pods=1, used: pods=" in message
    assert "Everything is as before" in message
    assert images_of(cnf, kind) == {IMAGES[0]}
    assert cnf.plan(old).is_empty


@pytest.mark.parametrize(("kind", "strategy"), WITHOUT_LOSS.values(), ids=WITHOUT_LOSS)
def test_no_pod_goes_where_a_quota_is_exceeded_already(cnf: Cnf, kind: str, strategy: str) -> None:
    old = {"w": workload(kind, spec=strategy, replicas=4)}
    cnf.instantiate(**old)
    before = cnf.pods(kind, "w")
    set_quota(cnf, pods=3)
    key = ObjectKey("", "ResourceQuota", cnf.namespace, "limit")
    until(lambda: "pods" in ((cnf.admin.get(key) or {}).get("status") or {}).get("used", {}))
    with pytest.raises(UpdateFailedError, match=r"exceeded quota: .*Everything is as before"):
        cnf.update({"w": workload(kind, spec=strategy, replicas=4, image=IMAGES[1])})
    assert cnf.pods(kind, "w") == before


def test_a_roll_that_makes_room_for_itself_is_given_its_time(cnf: Cnf) -> None:
    """The server refuses the surge, and each old pod that goes makes room for one. The controller
    tries again after pauses, which grow to minutes."""
    cnf.instantiate(w=workload("Deployment", replicas=4))
    quota = set_quota(cnf, pods=4)

    def make_room(event: Plan | Step | StepResult) -> None:
        if isinstance(event, StepResult) and event.state is StepState.FAILED:
            cnf.admin.delete(quota)

    request = cnf.request({"w": workload("Deployment", replicas=4, image=IMAGES[1])})
    options = replace(cnf.options, timeout=20)
    try:
        update(request, cnf.cluster, options, progress=make_room)
    except UpdateFailedError as error:
        assert "not ready in time: " in str(error)  # noqa: PT017 it may get there, too


def test_without_the_right_to_list_events_a_refusal_ends_with_the_time_limit(cnf: Cnf) -> None:
    cnf.instantiate(w=workload("StatefulSet"))
    live = cnf.admin.get(role.key(cnf.namespace))
    assert live is not None
    kept = [r for r in live["rules"] if r["resources"] not in (["events"], ["resourcequotas"])]
    cnf.admin.replace({**live, "rules": kept})
    quota = set_quota(cnf, pods=0)

    def make_room(event: Plan | Step | StepResult) -> None:
        if isinstance(event, StepResult) and event.state is StepState.FAILED:
            cnf.admin.delete(quota)

    options = replace(cnf.options, timeout=2)
    with pytest.raises(UpdateFailedError, match="not ready in time: 0 of 1 pods") as raised:
        update(
            cnf.request({"w": workload("StatefulSet", image=IMAGES[1])}),
            cnf.cluster,
            options,
            progress=make_room,
        )
    assert "Everything is as before" in str(raised.value)


def test_a_refusal_that_passes_within_the_grace_period_is_no_failure(cnf: Cnf) -> None:
    cnf.instantiate(w=workload("DaemonSet"), other=workload("CronJob", "other"))
    quota = set_quota(cnf, pods=0)
    refusals = Collection("", "Event", cnf.namespace, "reason=FailedCreate")

    def make_room(event: Plan | Step | StepResult) -> None:
        if isinstance(event, StepResult) and event.step.key.name == "other":
            until(lambda: bool(cnf.admin.list(refusals).items))
            cnf.admin.delete(quota)

    new = {
        "w": workload("DaemonSet", image=IMAGES[1]),
        "other": workload("CronJob", "other", image=IMAGES[1]),
    }
    options = replace(cnf.options, grace_period=60)
    update(cnf.request(new), cnf.cluster, options, progress=make_room)
    assert images_of(cnf, "DaemonSet") == {IMAGES[1]}


def test_a_quota_that_was_raised_gets_its_limits_back_when_the_pods_are_back(cnf: Cnf) -> None:
    """Under them no pod of the Deployment that is done could go back: it starts one more first."""

    def quota(pods: int) -> str:
        kind = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: limit}\n"
        return f"{kind}spec: {{hard: {{pods: '{pods}'}}}}\n"

    later = "annotations: {container-update/order: '1'}"
    old = {"w": workload("Deployment"), "bad": workload("Deployment", "bad", metadata=later)}
    cnf.instantiate(**old, q=quota(2))
    new = {name: text.replace(*IMAGES) for name, text in old.items()}
    new["bad"] = new["bad"].replace(IMAGES[1], BAD_IMAGE)
    files = {f"{name}.yaml": text for name, text in {**new, "q": quota(3)}.items()}
    body = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": "RollingUpdate"}}
    options = replace(cnf.options, grace_period=5, undo_timeout=20)
    packages = {"old": cnf.old, "new": cnf.package(files)}
    with pytest.raises(UpdateFailedError, match="Everything is as before"):
        change_package(body, cnf.admin, options, **packages, **cnf.where)
    assert images_of(cnf, "Deployment") == {IMAGES[0]}
    limit = cnf.admin.get(ObjectKey("", "ResourceQuota", cnf.namespace, "limit"))
    assert limit is not None
    assert limit["spec"]["hard"] == {"pods": "2"}


# --- the journal --------------------------------------------------------------------------------


@pytest.mark.parametrize("resource", ["secrets", "count/secrets"])
def test_a_journal_that_a_quota_refuses_leaves_nothing_behind(cnf: Cnf, resource: str) -> None:
    old = {"cm": config_map(setting="old"), "w": workload("Deployment", container=ENV)}
    cnf.instantiate(**old)
    set_quota(cnf, **{resource: 0})
    before = everything(cnf)
    with pytest.raises(ClusterError) as raised:
        cnf.update({**old, "cm": config_map(setting="new")})
    assert f"exceeded quota: limit, requested: {resource}=1, used: " in str(raised.value)
    assert "see the Role" not in str(raised.value)
    assert everything(cnf) == before


def test_a_quota_with_room_for_a_part_of_the_journal_leaves_no_part_behind(cnf: Cnf) -> None:
    """Its parts hold 700 kB each; the content is random, so that it cannot be compressed."""
    names = ("a", "b")
    old = {n: config_map(n, text=random.Random(n).randbytes(450_000).hex()) for n in names}
    cnf.instantiate(**old)
    before = everything(cnf)
    secrets = sum(name.startswith("Secret ") for name in before)
    set_quota(cnf, secrets=secrets + 1)
    new = {n: config_map(n, text=random.Random(n + n).randbytes(450_000).hex()) for n in names}
    with pytest.raises(ClusterError, match="exceeded quota: limit, requested: secrets=1"):
        cnf.update(new)
    assert everything(cnf) == before


def everything(cnf: Cnf) -> dict[str, Json]:
    """Return the specs and data of all that an update writes."""
    kinds = [("", "Secret"), ("", "ConfigMap"), ("apps", "Deployment")]
    kinds.append(("coordination.k8s.io", "Lease"))
    bodies = [b for kind in kinds for b in cnf.admin.list(Collection(*kind, cnf.namespace)).items]
    return {f"{b['kind']} {b['metadata']['name']}": b.get("data") or b["spec"] for b in bodies}
