# SPDX-License-Identifier: Apache-2.0
"""What a writer does where the server says that the object is not the one that was read."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from container_update.cluster.informer import Informer
from container_update.cluster.waiting import Waiter
from container_update.engine.writer import ChangedByAnotherError, ObjectWriter
from container_update.model.objects import Json, ObjectKey
from container_update.model.plan import Action
from container_update.planning.steps import RestartStep
from container_update.workloads import pod_template
from tests.unit import build
from tests.unit.fakes import FakeCluster

KEY = ObjectKey("apps", "ReplicaSet", "ns", "w")
TWO = {"containers": [{"name": "a", "image": "app:1"}, {"name": "b", "image": "app:1"}]}


def written(
    changes: dict[str, Any], now: dict[str, str], *, digest: str | None = None
) -> tuple[FakeCluster, RestartStep]:
    """Return a step for a workload whose pods run app:1, and the cluster, in which it has other
    images by *now* and its status was written since."""
    cluster = FakeCluster(build.live(build.workload("ReplicaSet", TWO)))
    read = copy.deepcopy(cluster.objects[KEY])
    cluster.put({**pod_template.with_images(read, now), "status": {"readyReplicas": 1}})
    step = RestartStep(KEY, Action.EVICT, read, images=changes, digest=digest)
    return cluster, step


def apply(cluster: FakeCluster, step: RestartStep) -> Json:
    writer = ObjectWriter(cluster, Waiter(Informer(cluster), 1))
    return writer.apply(step, step.before)


@pytest.mark.parametrize(
    "now", [{}, {"a": "app:2"}, {"a": "app:2", "b": "app:2"}], ids=["none", "one", "all"]
)
@pytest.mark.parametrize("digest", [None, "x"], ids=["images", "images and configuration"])
def test_a_status_that_a_controller_wrote_is_no_change_by_somebody_else(
    now: dict[str, str], digest: str | None
) -> None:
    """The template may have new images already, from another tool, when its pods have not."""
    wanted = {"a": "app:2", "b": "app:2"}
    after = apply(*written(wanted, now, digest=digest))
    assert pod_template.images(after) == wanted
    assert pod_template.config_digest(after) == digest
    assert after["status"] == {"readyReplicas": 1}


@pytest.mark.parametrize("digest", [None, "x"])
def test_an_image_that_is_neither_the_old_nor_the_new_one_is(digest: str | None) -> None:
    cluster, step = written({"a": "app:2"}, {"a": "app:3"}, digest=digest)
    with pytest.raises(ChangedByAnotherError, match="changed by somebody else"):
        apply(cluster, step)


def test_a_digest_that_is_neither_the_old_nor_the_new_one_is() -> None:
    cluster, step = written({"a": "app:2"}, {}, digest="x")
    cluster.put(pod_template.with_digest(cluster.objects[KEY], "of another"))
    with pytest.raises(ChangedByAnotherError, match="changed by somebody else"):
        apply(cluster, step)


def test_an_object_that_was_created_again_is() -> None:
    cluster, step = written({"a": "app:2"}, {})
    again = copy.deepcopy(cluster.objects[KEY])
    again["metadata"]["uid"] = "another"
    cluster.put(again)
    with pytest.raises(ChangedByAnotherError, match="changed by somebody else"):
        apply(cluster, step)
