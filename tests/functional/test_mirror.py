# SPDX-License-Identifier: Apache-2.0
"""A mutating webhook that has images come from a mirror, in workloads and in pods.

What is live then differs from both packages for ever. It is compared with what the server makes of
our writes: an undo knows its own, and an update that is done has nothing to do. Kills, lost answers
and rollbacks behind such a webhook are in the fault matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from container_update import (
    CancelToken,
    ChangePackageRequest,
    Plan,
    Step,
    StepResult,
    UpdateFailedError,
    UpdateInterruptedError,
    change_package,
    connect,
    plan_of,
    plan_update,
    update,
)
from tests.functional.admission import WORKLOADS, mirroring_images
from tests.functional.cnf import BAD_IMAGE, IMAGES, INSTANCE
from tests.functional.conftest import REAL
from tests.functional.manifests import ENV, config_map, workload
from tests.functional.promise import Checker, Expected, Running, Snapshot
from tests.functional.reference_change import CHANGES
from tests.functional.reference_update import OPTIONS, Files, Lab
from tests.functional.upgrade_types import UPGRADE_TYPES
from tests.internals.core import (
    Json,
    StepState,
)

MIRROR = "mirror.example/"
MIRRORED = {
    "workloads": (WORKLOADS, "CronJob"),
    "pods": ("Pod",),
    "both": (WORKLOADS, "CronJob", "Pod"),
}

INIT = "initContainers: [{{name: first, image: '{image}'}}]"
ON_ONE_NODE = "nodeSelector: {kubernetes.io/hostname: node-1}"
ON_DELETE = "updateStrategy: {type: OnDelete}"


def files(value: str, image: str, last: str = "") -> Files:
    """Return one workload of each kind and way to restart; *last* is the StatefulSet's image."""
    return {
        "cm": config_map("cm", setting=value),
        "deployment": workload("Deployment", "d", container=ENV, image=image),
        "plain": workload("Deployment", "e", image=image),
        "replicas": workload("ReplicaSet", "r", image=image, replicas=2),
        "stateful": workload("StatefulSet", "s", image=last or image),
        "daemon": workload("DaemonSet", "o", spec=ON_DELETE, pod=ON_ONE_NODE, image=image),
        "rolling": workload("DaemonSet", "n", pod=ON_ONE_NODE, image=image),
        "cron": workload("CronJob", "c", image=image),
        "restarted": workload("Pod", "p", image=image),
        "recreated": workload("Pod", "q", container=ENV, pod=INIT.format(image=image)),
    }


OLD, NEW = files("old", IMAGES[0]), files("new", IMAGES[1])
BAD = files("new", IMAGES[1], BAD_IMAGE)
RESTARTED = {"Deployment": "de", "ReplicaSet": "r", "StatefulSet": "s", "DaemonSet": "on"}


def expected(value: str, image: str, *, pods: bool) -> Expected:
    """Return the state of the CNF; *pods*: pods that stand alone have the mirror's images too."""
    runs = {
        (kind, name): Running(MIRROR + image, {}, pods=2 if kind == "ReplicaSet" else 1)
        for kind, names in RESTARTED.items()
        for name in names
    }
    runs["Pod", "p"] = Running(MIRROR * pods + image, {})
    return Expected({("ConfigMap", "cm"): {"setting": value}}, runs)


@pytest.fixture(params=MIRRORED)
def kinds(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The kinds whose images the server changes."""
    return MIRRORED[request.param]


@contextmanager
def deployed(lab: Lab, kinds: tuple[str, ...], files: Files) -> Iterator[str]:
    """Have these files in a namespace whose images come from the mirror."""
    with ExitStack() as stack:
        namespace = lab.deploy(
            files,
            lambda name: stack.enter_context(mirroring_images(lab.server, name, kinds, MIRROR)),
        )
        yield namespace
    lab.remove(namespace)


@pytest.fixture
def namespace(lab: Lab, kinds: tuple[str, ...]) -> Iterator[str]:
    with deployed(lab, kinds, OLD) as name:
        yield name


def state(lab: Lab, namespace: str, value: str, image: str, kinds: tuple[str, ...]) -> list[str]:
    """Return what differs from a state of the CNF."""
    checker = Checker(lab.server, namespace)
    return checker.differences(expected(value, image, pods="Pod" in kinds), as_before=False)


def test_a_second_update_has_nothing_to_do(
    lab: Lab, namespace: str, kinds: tuple[str, ...]
) -> None:
    request = lab.request(namespace, OLD, NEW)
    assert len(lab.update(request).results) == len(NEW)
    assert not state(lab, namespace, "new", IMAGES[1], kinds)
    plan = plan_update(request, lab.cluster, OPTIONS)
    assert [str(step.key) for step in plan.steps] == []
    drift = {note.key.name for note in plan.notes if "drift" in note.text}
    assert drift <= {"q"}, "of an image that the packages do not change, the server is not asked"


def specs(lab: Lab, namespace: str) -> dict[str, Json]:
    """Return what the workloads say, and the content of the ConfigMap."""

    kinds = ("ConfigMap", "Deployment", "StatefulSet", "DaemonSet", "CronJob", "ReplicaSet")
    found = lab.server.objects((kind, namespace) for kind in kinds)
    return {
        f"{kind} {body['metadata']['name']}": body.get("data") or body["spec"]
        for (kind, _), bodies in found.items()
        for body in bodies
        if not body["metadata"].get("ownerReferences")
        and not body["metadata"]["name"].endswith(".crt")
    }


def test_an_update_that_fails_is_undone(lab: Lab, namespace: str, kinds: tuple[str, ...]) -> None:
    before = specs(lab, namespace)
    with pytest.raises(UpdateFailedError, match="Everything is as before") as raised:
        lab.update(lab.request(namespace, OLD, BAD))
    assert {r.state for r in raised.value.outcome.results} == {StepState.UNDONE}
    assert "left as another client changed it" not in str(raised.value)
    assert specs(lab, namespace) == before
    assert not state(lab, namespace, "old", IMAGES[0], kinds)
    assert not Checker(lab.server, namespace).left_over()


@pytest.mark.embedded
@pytest.mark.parametrize("kinds", ["workloads"], indirect=True)
def test_an_update_that_fails_is_undone_where_admission_denies_dry_runs(
    lab: Lab, namespace: str, kinds: tuple[str, ...]
) -> None:
    """What the server has answered this run's own writes tells them from those of others."""

    async def deny(request: Any, handler: Any) -> Any:
        if request.query.get("dryRun") != "All" or "/pods" in request.path:
            return await handler(request)
        message = 'admission webhook "w.example.org" denied the request: not in a dry run'
        body = {"kind": "Status", "status": "Failure", "message": message, "code": 403}
        return web.json_response(body, status=403)

    before = specs(lab, namespace)
    lab.server.middlewares.append(deny)
    try:
        with pytest.raises(UpdateFailedError, match="Everything is as before"):
            lab.update(lab.request(namespace, OLD, BAD))
    finally:
        lab.server.middlewares.remove(deny)
    assert specs(lab, namespace) == before
    assert not state(lab, namespace, "old", IMAGES[0], kinds)


@pytest.mark.skipif(bool(REAL), reason="kubelets that run nothing get no image later")
@pytest.mark.parametrize("kinds", ["workloads", "both"], indirect=True)
def test_a_resumed_update_keeps_the_pods_that_are_new(lab: Lab, namespace: str) -> None:
    """Interrupted when the ReplicaSet is done; the StatefulSet's image is there only later."""
    cancel = CancelToken()

    def interrupt(event: Plan | Step | StepResult) -> None:
        if isinstance(event, StepResult) and event.step.key.kind == "ReplicaSet":
            cancel.request("by a test", keep_journal=True)

    request, options = lab.request(namespace, OLD, BAD), replace(OPTIONS, grace_period=60)
    with connect(lab.kubeconfig, options=options) as cluster, pytest.raises(UpdateInterruptedError):
        update(request, cluster, options, cancel, progress=interrupt)
    before = uids(lab, namespace, "ReplicaSet", "r")
    lab.behaviour.bad_images.clear()
    outcome = replace(lab.instance(namespace), options=options).recover()
    lab.behaviour.bad_images.append("*missing*")
    assert outcome is not None
    assert uids(lab, namespace, "ReplicaSet", "r") == before


def uids(lab: Lab, namespace: str, kind: str, name: str) -> set[str]:
    pods = Snapshot.at(lab.server, namespace).pods_of(kind, name)
    return {pod["metadata"]["uid"] for pod in pods}


@pytest.mark.parametrize("upgrade_type", UPGRADE_TYPES)
def test_a_change_of_every_kind_of_workload_is_done_once(
    lab: Lab, namespace: str, upgrade_type: str
) -> None:
    body = {"vnfdId": "vnfd-v2", "additionalParams": {"upgrade_type": upgrade_type}}
    packages = lab.package(OLD), lab.package(NEW)
    options = CHANGES[upgrade_type].options
    request = ChangePackageRequest(body, *packages, namespace=namespace, instance_id=INSTANCE)
    change_package(request, lab.cluster, options)
    assert [str(step.key) for step in plan_of(request, lab.cluster, options).steps] == []
