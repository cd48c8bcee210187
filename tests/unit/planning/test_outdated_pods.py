# SPDX-License-Identifier: Apache-2.0
"""Pods that run the old image although their workload's template has the new one."""

from __future__ import annotations

import pytest

from container_update.model.objects import Json, ObjectKey
from container_update.model.plan import ImageChange
from container_update.planning.update import as_its_pods
from container_update.workloads import pod_template

CHANGE = ImageChange("main", "web:1", "web:2")


def body(kind: str, name: str, image: str, spec: Json | None = None) -> Json:
    pod = {"containers": [{"name": "main", "image": image}]}
    group = "v1" if kind == "Pod" else "apps/v1"
    return {
        "apiVersion": group,
        "kind": kind,
        "metadata": {"name": name, "namespace": "cnf", "uid": name},
        "spec": pod if kind == "Pod" else {"template": {"spec": pod}, **(spec or {})},
    }


def pod(name: str, image: str, owner: str = "web", namespace: str = "cnf") -> Json:
    made = body("Pod", name, image)
    made["metadata"] |= {
        "namespace": namespace,
        "ownerReferences": [{"uid": owner, "controller": True}],
    }
    return made


ON_DELETE = {"updateStrategy": {"type": "OnDelete"}}


@pytest.mark.parametrize(
    ("kind", "spec", "pods", "image"),
    [
        pytest.param("ReplicaSet", {}, [pod("a", "web:1")], "web:1", id="the old image"),
        pytest.param("StatefulSet", ON_DELETE, [pod("a", "web:1")], "web:1", id="on delete"),
        pytest.param("ReplicaSet", {}, [pod("a", "web:2"), pod("b", "web:1")], "web:1", id="one"),
        pytest.param("ReplicaSet", {}, [pod("a", "web:2")], None, id="the new image"),
        pytest.param("ReplicaSet", {}, [], None, id="no pods"),
        pytest.param("ReplicaSet", {}, [pod("a", "mirror/web:2")], None, id="one of a webhook"),
        pytest.param("ReplicaSet", {}, [pod("a", "web:1", "other")], None, id="of another"),
        pytest.param("ReplicaSet", {}, [pod("a", "web:1", namespace="x")], None, id="elsewhere"),
        pytest.param("StatefulSet", {}, [pod("a", "web:1")], None, id="its controller is at it"),
        pytest.param("Deployment", {}, [pod("a", "web:1")], None, id="a Deployment rolls"),
    ],
)
def test_only_pods_that_nobody_else_replaces_and_that_run_the_old_image_count(
    kind: str, spec: Json, pods: list[Json], image: str | None
) -> None:
    workload = body(kind, "web", "web:2", spec)
    live = {ObjectKey.of(each): each for each in (workload, *pods)}
    found, changes = as_its_pods(workload, [CHANGE], live)
    assert changes == ([] if image is None else [CHANGE])
    assert pod_template.images(found) == {"main": image or "web:2"}
    assert pod_template.images(workload) == {"main": "web:2"}, "the live object is left alone"
