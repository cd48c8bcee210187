# SPDX-License-Identifier: Apache-2.0
"""An immutable object is read once: new pods get its first content while an old one runs."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from container_update.emulator.kubernetes.kubelet.configuration import references
from tests.emulator.stage import Stage, image, on_stage, scale, workload
from tests.internals.core import Json

NAMES = {"configmaps": "cached", "secrets": "cached"}


def config(kind: str, value: str) -> Json:
    """Return the ConfigMap or Secret that the containers use."""
    text = base64.b64encode(value.encode()).decode() if kind == "secrets" else value
    return {"metadata": {"name": "cached"}, "data": {"k": text}, "immutable": True}


def using(kind: str) -> Json:
    """Return a Deployment of one pod that uses all keys in its environment and in a volume."""
    body = workload("deployments", "web", 1)
    spec = body["spec"]["template"]["spec"]
    source, volume = (
        ("secretRef", {"secret": {"secretName": "cached"}})
        if kind == "secrets"
        else ("configMapRef", {"configMap": {"name": "cached"}})
    )
    spec["containers"][0] |= {
        "envFrom": [{source: {"name": "cached"}}],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }
    spec["volumes"] = [{"name": "v", **volume}]
    return body


def seen(stage: Stage) -> set[str]:
    """Return what the container of the one pod saw when it started last."""
    (pod,) = (pod for pod in stage.stored("pods") if "deletionTimestamp" not in pod["metadata"])
    start = stage.behaviour.started("rec", pod["metadata"]["name"], "a")[-1]
    return {start.env["k"], start.files["/v/k"].decode()}


async def rolled_out(stage: Stage) -> None:
    await stage.until(lambda: stage.is_rolled_out("deployments", "web"))


def create_again(stage: Stage, kind: str) -> None:
    stage.delete(kind, "cached")
    stage.create(kind, config(kind, "new"))


@pytest.mark.parametrize("kind", NAMES)
def test_new_pods_get_the_old_content_while_an_old_pod_refers_to_the_name(kind: str) -> None:
    @on_stage
    async def scenario(stage: Stage) -> None:
        stage.create(kind, config(kind, "old"))
        stage.create("deployments", using(kind))
        await rolled_out(stage)
        create_again(stage, kind)
        stage.change("deployments", "web", image("app:2"))
        await rolled_out(stage)
        assert seen(stage) == {"old"}
        stage.change("deployments", "web", scale(0))
        await stage.until(lambda: not stage.stored("pods"))
        stage.change("deployments", "web", scale(1))
        await rolled_out(stage)
        assert seen(stage) == {"new"}

    scenario()


def spec(**more: Any) -> Json:
    return {"spec": {"containers": [{"name": "a", **more.pop("container", {})}], **more}}


REFERENCES: dict[str, tuple[Json, set[tuple[str, str]]]] = {
    "envFrom": (spec(container={"envFrom": [{"secretRef": {"name": "x"}}]}), {("secrets", "x")}),
    "env": (
        spec(container={"env": [{"valueFrom": {"configMapKeyRef": {"name": "x"}}}, {"value": ""}]}),
        {("configmaps", "x")},
    ),
    "a volume": (spec(volumes=[{"secret": {"secretName": "x"}}]), {("secrets", "x")}),
    "a projected volume": (
        spec(volumes=[{"projected": {"sources": [{"configMap": {"name": "x"}}]}}]),
        {("configmaps", "x")},
    ),
    "an init container": (
        spec(initContainers=[{"envFrom": [{"configMapRef": {"name": "x"}}]}]),
        {("configmaps", "x")},
    ),
    "nothing": (spec(volumes=[{"emptyDir": {}}]), set()),
}


@pytest.mark.parametrize(("pod", "expected"), REFERENCES.values(), ids=REFERENCES)
def test_what_a_pod_refers_to(pod: Json, expected: set[tuple[str, str]]) -> None:
    assert references(pod) == expected
