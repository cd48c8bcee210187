# SPDX-License-Identifier: Apache-2.0
"""A workload that is gone leaves pods behind until they are collected: they still serve."""

from __future__ import annotations

from typing import Any

import pytest

from container_update.cluster.informer import Informer
from container_update.cluster.waiting import NotReadyError, Waiter
from container_update.engine.rollout import RolloutWaiter
from container_update.model.objects import Collection, ObjectKey
from container_update.workloads import ownership
from tests.unit.fakes import Everything, FakeCluster

WEB = ObjectKey("apps", "Deployment", "n", "web")
STORE = ObjectKey("apps", "StatefulSet", "n", "store")


def pod(owner_kind: str = "ReplicaSet", owner: str = "web-1f", **more: Any) -> Any:
    """A pod of an owner that may be gone."""
    reference = {"kind": owner_kind, "name": owner, "uid": "u", "controller": True}
    metadata = {"name": "p", "namespace": "n", "labels": {"pod-template-hash": "1f"}}
    metadata |= {"ownerReferences": [reference], **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {}}


@pytest.mark.parametrize(
    ("key", "body", "is_left"),
    [
        pytest.param(WEB, pod(), True, id="of the Deployment's ReplicaSet"),
        pytest.param(WEB, pod(deletionTimestamp="now"), False, id="on its way out"),
        pytest.param(WEB, pod(owner="web-2-1f"), False, id="of a Deployment of a longer name"),
        pytest.param(WEB, pod("Job", "web-1f"), False, id="of another kind"),
        pytest.param(WEB, pod(namespace="m"), False, id="in another namespace"),
        pytest.param(WEB, pod(ownerReferences=[]), False, id="nobody's"),
        pytest.param(STORE, pod("StatefulSet", "store"), True, id="of a StatefulSet"),
        pytest.param(STORE, pod("StatefulSet", "stores"), False, id="of another StatefulSet"),
    ],
)
def test_the_pods_of_a_workload_that_is_gone_are_known_by_their_owners_names(
    key: ObjectKey, body: Any, is_left: bool
) -> None:
    assert bool(ownership.left_behind(key, [body])) is is_left


def test_a_workload_is_gone_when_its_last_pod_is_on_its_way_out() -> None:
    cluster = FakeCluster(pod())
    informer = Informer(cluster, Everything())
    informer.list([Collection("", "Pod", "n")])
    rollout = RolloutWaiter(Waiter(informer, 1.0))
    with pytest.raises(NotReadyError, match="1 of its pods are still there"):
        rollout.until_gone(WEB, "uid-of-web", 0.0)
    cluster.put(pod(deletionTimestamp="now"))
    rollout.until_gone(WEB, "uid-of-web", 0.0)
