# SPDX-License-Identifier: Apache-2.0
"""Which pods belong to which workload and VDU: by owner references, whatever their names."""

from __future__ import annotations

import pytest

from container_update.model.objects import Json
from container_update.model.outcome import Vnfc
from container_update.workloads import ownership
from tests.unit import build
from tests.unit.build import by_identity, live, manifests, pod

SPEC = "containers: [{name: c, image: app:1}]"


def owned(kind: str, name: str, uid: str) -> Json:
    return live(build.workload(kind, SPEC, name), uid=uid)


def replica_set(name: str, uid: str, owner: str | None, *, controls: bool = True) -> Json:
    body = owned("ReplicaSet", name, uid)
    if owner:
        body["metadata"]["ownerReferences"] = [{"uid": owner, "controller": controls}]
    return body


def names(pods: tuple[Json, ...]) -> list[str]:
    return [body["metadata"]["name"] for body in pods]


DEPLOYMENT = owned("Deployment", "vdu1", "d1")
LOOK_ALIKE = owned("Deployment", "vdu1-update", "d2")
REPLICA_SETS = [
    replica_set("vdu1-5d4f", "rs-old", "d1"),
    replica_set("vdu1-7f9c", "rs-new", "d1"),
    replica_set("vdu1-update-5d4f", "rs-other", "d2"),
    replica_set("vdu1-1a2b", "rs-orphan", None),
    replica_set("vdu1-3c4d", "rs-owned", "d1", controls=False),
]
PODS = [
    pod("vdu1-5d4f-x2k9p", owner="rs-old"),
    pod("vdu1-7f9c-aaaaa", owner="rs-new"),
    pod("vdu1-7f9c-bbbbb", owner="rs-other"),
    pod("vdu1-update-5d4f-ccccc", owner="rs-other"),
    pod("vdu1-1a2b-ddddd", owner="rs-orphan"),
    pod("vdu1-3c4d-eeeee", owner="rs-owned"),
    pod("vdu1-ffff-ggggg"),
    pod("vdu1", uid="d1-pod"),
    pod("unlike", owner="rs-new"),
    pod("ds-hhhhh", owner="d1"),
]


def test_a_deployment_owns_its_pods_through_its_replicasets() -> None:
    found = ownership.owned_pods(DEPLOYMENT, PODS, REPLICA_SETS)
    assert names(found) == ["vdu1-5d4f-x2k9p", "vdu1-7f9c-aaaaa", "unlike"]
    found = ownership.owned_pods(LOOK_ALIKE, PODS, REPLICA_SETS)
    assert names(found) == ["vdu1-7f9c-bbbbb", "vdu1-update-5d4f-ccccc"]


@pytest.mark.parametrize("kind", ["DaemonSet", "StatefulSet", "ReplicaSet"])
def test_the_other_kinds_own_their_pods_themselves(kind: str) -> None:
    found = ownership.owned_pods(owned(kind, "ds", "d1"), PODS, REPLICA_SETS)
    assert names(found) == ["ds-hhhhh"]


def test_a_pod_is_its_own() -> None:
    itself = pod("vdu1", uid="d1-pod")
    itself["kind"] = "Pod"
    assert names(ownership.owned_pods(itself, PODS, REPLICA_SETS)) == ["vdu1"]
    again = pod("vdu1", uid="another")
    assert ownership.owned_pods(again, PODS, REPLICA_SETS) == ()


@pytest.mark.parametrize(
    ("metadata", "uid"),
    [
        pytest.param({}, None, id="no owner"),
        pytest.param({"ownerReferences": None}, None, id="owners that are null"),
        pytest.param({"ownerReferences": [{"uid": "a"}]}, None, id="an owner, no controller"),
        pytest.param(
            {"ownerReferences": [{"uid": "a"}, {"uid": "b", "controller": True}]}, "b",
            id="the controller among the owners",
        ),
    ],
)  # fmt: skip
def test_the_controller_is_the_owner_that_says_so(metadata: Json, uid: str | None) -> None:
    assert ownership.controller_uid({"metadata": metadata}) == uid


def test_an_object_without_metadata_has_no_controller() -> None:
    assert ownership.controller_uid({}) is None


# --- the VNFCs ----------------------------------------------------------------------------------


def vnfcs(vdus: dict[str, str], workloads: list[Json], others: list[Json]) -> list[Vnfc]:
    live_objects = by_identity(*workloads, *others)
    return list(ownership.vnfcs(vdus, manifests("f", *workloads), live_objects))


def test_every_live_pod_of_a_vdu_is_a_vnfc_of_it_sorted_by_vdu_and_name() -> None:
    found = vnfcs(
        {"VDU2": "vdu1-update", "VDU1": "vdu1"}, [LOOK_ALIKE, DEPLOYMENT], [*PODS, *REPLICA_SETS]
    )
    assert [(vnfc.vdu_id, vnfc.pod_name) for vnfc in found] == [
        ("VDU1", "unlike"),
        ("VDU1", "vdu1-5d4f-x2k9p"),
        ("VDU1", "vdu1-7f9c-aaaaa"),
        ("VDU2", "vdu1-7f9c-bbbbb"),
        ("VDU2", "vdu1-update-5d4f-ccccc"),
    ]


def test_a_vnfc_says_what_the_records_need() -> None:
    labelled = pod("vdu1-7f9c-aaaaa", owner="rs-new")
    labelled["metadata"]["labels"] = {"app": "x"}
    labelled["spec"] = {"volumes": [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-1"}},
        {"name": "scratch", "emptyDir": {}},
    ]}  # fmt: skip
    labelled["status"]["containerStatuses"] = [{"restartCount": 2}, {"restartCount": 1}]
    found = vnfcs({"VDU1": "vdu1"}, [DEPLOYMENT], [labelled, *REPLICA_SETS])
    assert found == [
        Vnfc(
            "VDU1", "vdu1-7f9c-aaaaa", "ns", "Deployment", "vdu1", {"app": "x"},
            {"data": "data-1"}, "vdu1-7f9c-aaaaa/3",
        ),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["Pod", "DaemonSet", "ReplicaSet", "StatefulSet"])
def test_a_vdu_may_be_of_this_kind(kind: str) -> None:
    if kind == "Pod":
        workload, others = {**build.workload(kind, SPEC, "v"), **pod("v")}, []
    else:
        workload, others = owned(kind, "v", "d1"), PODS
    (found,) = vnfcs({"VDU1": "v"}, [workload], others)
    assert (found.workload_kind, found.workload_name) == (kind, "v")
    assert found.pod_name == ("v" if kind == "Pod" else "ds-hhhhh")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(pod("p", owner="u", deleting=True), id="is being deleted"),
        pytest.param(pod("p", owner="u", phase="Failed"), id="has failed"),
        pytest.param(pod("p", owner="u", phase="Succeeded"), id="has ended"),
    ],
)
def test_a_pod_is_no_vnfc_that(body: Json) -> None:
    workload = owned("DaemonSet", "v", "u")
    assert vnfcs({"VDU1": "v"}, [workload], [body]) == []
    assert len(vnfcs({"VDU1": "v"}, [workload], [pod("p", owner="u", ready=False)])) == 1


@pytest.mark.parametrize(
    ("vdus", "workload"),
    [
        pytest.param({"VDU1": "v"}, owned("Job", "v", "d1"), id="a Job, which is no VDU"),
        pytest.param({"VDU1": "v"}, owned("CronJob", "v", "d1"), id="a CronJob, which is no VDU"),
        pytest.param({"VDU1": "v"}, owned("DaemonSet", "v2", "d1"), id="another name"),
        pytest.param({}, owned("DaemonSet", "v", "d1"), id="no VDU at all"),
    ],
)
def test_nothing_is_a_vnfc_of(vdus: dict[str, str], workload: Json) -> None:
    assert vnfcs(vdus, [workload], PODS) == []


def test_a_workload_that_is_not_in_the_cluster_has_no_vnfc() -> None:
    gone = manifests("f", owned("DaemonSet", "v", "d1"))
    assert ownership.vnfcs({"VDU1": "v"}, gone, by_identity(*PODS)) == ()


def test_a_pod_of_another_api_group_is_none() -> None:
    workload, custom = owned("DaemonSet", "v", "u"), pod("p", owner="u")
    custom["apiVersion"] = "example.org/v1"
    assert vnfcs({"VDU1": "v"}, [workload], [custom]) == []


# --- whose template a roll that did not end has left ---------------------------------------------


def revised(name: str, revision: str) -> Json:
    body = pod(name, uid=name)
    body["metadata"]["labels"] = {"controller-revision-hash": revision}
    return body


@pytest.mark.parametrize(
    ("kind", "status", "revisions", "kept"),
    [
        ("StatefulSet", {"updateRevision": "a"}, "aba", {"0", "2"}),
        ("StatefulSet", {"updateRevision": "a", "observedGeneration": 0}, "aba", set()),
        ("DaemonSet", {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2}, "aa", {"0", "1"}),
        ("DaemonSet", {"desiredNumberScheduled": 2, "updatedNumberScheduled": 1}, "aa", set()),
        ("DaemonSet", {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2}, "aab", set()),
    ],
)
def test_pods_show_by_their_revision_that_they_are_as_they_are_to_be(
    kind: str, status: Json, revisions: str, kept: set[str]
) -> None:
    body = owned(kind, "w", "w1")
    body["metadata"]["generation"] = 1
    body["status"] = {"observedGeneration": 1, **status}
    pods = [revised(str(number), revision) for number, revision in enumerate(revisions)]
    assert ownership.up_to_date(body, pods, ()) == kept


def templated(kind: str, name: str, image: str, owner: Json | None = None) -> Json:
    spec = {"containers": [{"name": "main", "image": image}]}
    body = owned(kind, name, name)
    if owner is not None:
        own = {"kind": owner["kind"], "uid": owner["metadata"]["uid"], "controller": True}
        body["metadata"]["ownerReferences"] = [own]
    labels = {"pod-template-hash": name} if kind == "ReplicaSet" else {}
    return {**body, "spec": {"template": {"metadata": {"labels": labels}, "spec": spec}}}


def test_a_pod_that_came_late_from_the_template_before_is_no_new_one() -> None:
    """A Deployment that was created a moment before its update: its controller has created the
    first pod when the update had read which ones there are."""
    deployment = templated("Deployment", "w", "app:2")
    sets = [templated("ReplicaSet", f"w-{n}", f"app:{n}", deployment) for n in (1, 2)]
    pods = [templated("Pod", f"p{n}", "", sets[n - 1]) for n in (1, 2)]
    assert ownership.outdated_pods(deployment, pods, sets) == {"p1"}
    assert ownership.up_to_date(deployment, pods, sets) == {"p2"}
    assert ownership.outdated_pods(deployment, pods, ()) == frozenset()
    assert ownership.outdated_pods(templated("StatefulSet", "w", ""), pods, sets) == frozenset()
