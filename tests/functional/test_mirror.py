# SPDX-License-Identifier: Apache-2.0
"""A mutating webhook that has images come from a mirror, in workloads and in pods.

What is live then differs from both packages for ever. It is compared with what the server makes of
our writes: an undo knows its own, from any host, and an update that is done has nothing to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from container_update import (
    CancelToken,
    ChangePackageRequest,
    Plan,
    Step,
    StepResult,
    UndoIncompleteError,
    UpdateFailedError,
    UpdateInterruptedError,
    change_package,
    connect,
    plan_of,
    plan_update,
    update,
)
from container_update.emulator.faults import Fault, answer_after, drop_after
from container_update.emulator.kubernetes import Registry
from container_update.emulator.kubernetes.resources import Resource
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
    containers,
    images,
    pod_spec,
    with_images,
)

pytestmark = pytest.mark.skipif(bool(REAL), reason="the webhook is the embedded cluster's")

MIRROR = "mirror.example/"
MIRRORED = {
    "workloads": ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "CronJob"),
    "pods": ("Pod",),
    "both": ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "CronJob", "Pod"),
}

INIT = "initContainers: [{{name: first, image: '{image}'}}]"
ON_DELETE = "updateStrategy: {type: OnDelete}"


def files(value: str, image: str, last: str = "") -> Files:
    """Return one workload of each kind and way to restart; *last* is the StatefulSet's image."""
    return {
        "cm": config_map("cm", setting=value),
        "deployment": workload("Deployment", "d", container=ENV, image=image),
        "plain": workload("Deployment", "e", image=image),
        "replicas": workload("ReplicaSet", "r", image=image, replicas=2),
        "stateful": workload("StatefulSet", "s", image=last or image),
        "daemon": workload("DaemonSet", "o", spec=ON_DELETE, image=image),
        "rolling": workload("DaemonSet", "n", image=image),
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
def kinds(request: pytest.FixtureRequest, lab: Lab) -> Iterator[tuple[str, ...]]:
    """The kinds whose images the webhook changes."""
    chosen = MIRRORED[request.param]

    def mirror(resource: Resource, body: Json) -> None:
        if resource.kind not in chosen:
            return
        for _, container in containers(pod_spec({**body, "kind": resource.kind} | _api(resource))):
            image = str(container.get("image"))
            if not image.startswith((MIRROR, "bad:")):
                container["image"] = MIRROR + image

    def install(registry: Registry) -> None:
        registry.webhooks[:] = [mirror]

    lab.embedded.call(install)
    yield chosen
    lab.embedded.call(lambda registry: registry.webhooks.clear())


def _api(resource: Resource) -> Json:
    return {"apiVersion": resource.api_version}


@pytest.fixture
def namespace(lab: Lab, kinds: tuple[str, ...]) -> Iterator[str]:
    name = lab.deploy(OLD)
    yield name
    lab.remove(name)


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

    def read(registry: Registry) -> dict[str, Json]:
        kinds = ("configmaps", "deployments", "statefulsets", "daemonsets", "cronjobs")
        bodies = [body for kind in kinds for body in registry.list(kind, namespace)]
        sets = registry.list("replicasets", namespace)
        bodies += [body for body in sets if not body["metadata"].get("ownerReferences")]
        return {f"{b['kind']} {b['metadata']['name']}": b.get("data") or b["spec"] for b in bodies}

    return lab.embedded.call(read)


def test_an_update_that_fails_is_undone(lab: Lab, namespace: str, kinds: tuple[str, ...]) -> None:
    before = specs(lab, namespace)
    with pytest.raises(UpdateFailedError, match="Everything is as before") as raised:
        lab.update(lab.request(namespace, OLD, BAD))
    assert {r.state for r in raised.value.outcome.results} == {StepState.UNDONE}
    assert "left as another client changed it" not in str(raised.value)
    assert specs(lab, namespace) == before
    assert not state(lab, namespace, "old", IMAGES[0], kinds)
    assert not Checker(lab.server, namespace).left_over()


@pytest.mark.parametrize("back", [True, False])
def test_another_host_rolls_back_or_resumes_what_was_interrupted(
    lab: Lab, namespace: str, kinds: tuple[str, ...], back: bool
) -> None:
    """Interrupted when the CronJob is done, which restarts nothing: all were begun by then."""
    before, cancel = specs(lab, namespace), CancelToken()

    def interrupt(event: Plan | Step | StepResult) -> None:
        if isinstance(event, StepResult) and event.step.key.kind == "CronJob":
            cancel.request("by a test", keep_journal=True)

    request = lab.request(namespace, OLD, NEW)
    with connect(lab.kubeconfig, options=OPTIONS) as cluster, pytest.raises(UpdateInterruptedError):
        update(request, cluster, OPTIONS, cancel, progress=interrupt)
    assert specs(lab, namespace) != before
    outcome = lab.instance(namespace).recover(back=back)
    assert outcome is not None
    if back:
        assert specs(lab, namespace) == before
    value, image = ("old", IMAGES[0]) if back else ("new", IMAGES[1])
    assert not state(lab, namespace, value, image, kinds)
    assert not Checker(lab.server, namespace).left_over()


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


@pytest.mark.parametrize("effect", [drop_after, answer_after(504)])
def test_a_write_whose_answer_is_lost_is_known_as_our_own(
    lab: Lab, namespace: str, kinds: tuple[str, ...], effect: Any
) -> None:
    faults = [
        Fault(effect, method, f"*/{resource}*")
        for method, resource in [
            ("PUT", "deployments/d"),
            ("PUT", "statefulsets/s"),
            ("PUT", "replicasets/r"),
            ("PUT", "daemonsets/o"),
            ("PUT", "pods/p"),
            ("POST", "pods"),
        ]
    ]
    with lab.script(namespace, *faults):
        lab.update(lab.request(namespace, OLD, NEW))
    assert not state(lab, namespace, "new", IMAGES[1], kinds)


def test_what_somebody_else_changed_is_still_left_alone(
    lab: Lab, namespace: str, kinds: tuple[str, ...]
) -> None:
    """An image that the server does not make of ours is not ours, behind a webhook either."""

    def change(event: Plan | Step | StepResult) -> None:
        if isinstance(event, StepResult) and event.step.key.name == "e":

            def write(registry: Registry) -> None:
                body = registry.require("deployments", namespace, "e")
                registry.update(
                    "deployments", namespace, "e", with_images(body, {"main": "their:1"})
                )

            lab.embedded.call(write)

    with connect(lab.kubeconfig, options=OPTIONS) as cluster, pytest.raises(UpdateFailedError) as r:
        update(lab.request(namespace, OLD, BAD), cluster, OPTIONS, progress=change)
    assert not isinstance(r.value, UndoIncompleteError)
    assert f"Deployment {namespace}/e: left as another client changed it" in str(r.value)
    live = lab.embedded.call(lambda registry: registry.require("deployments", namespace, "e"))
    assert images(live)["main"].endswith("their:1")


# --- a change of the package --------------------------------------------------------------------


def behind_mirror(expected: Expected) -> Expected:
    """Return the state with the mirror's images."""
    runs = {
        key: running and replace(running, image=MIRROR + running.image)
        for key, running in expected.workloads.items()
    }
    return replace(expected, workloads=runs)


@pytest.mark.parametrize("kinds", ["workloads", "both"], indirect=True)
@pytest.mark.parametrize("upgrade_type", UPGRADE_TYPES)
@pytest.mark.parametrize("way", ["done", "undone"])
def test_a_change_of_the_package_is_done_once_or_undone(
    lab: Lab, kinds: tuple[str, ...], upgrade_type: str, way: str
) -> None:
    assert kinds
    reference = CHANGES[upgrade_type]
    namespace = lab.deploy(reference.old_files)
    checker = Checker(lab.server, namespace)
    request, options = reference.request(lab, namespace, reference.ways[way]), reference.options
    if way == "done":
        change_package(request, lab.cluster, options)
        plan = plan_of(request, lab.cluster, options)
        assert [str(step.key) for step in plan.steps] == []
    else:
        with pytest.raises(UpdateFailedError, match="Everything is as before"):
            change_package(request, lab.cluster, options)
    state = behind_mirror(reference.new if way == "done" else reference.old)
    assert not checker.differences(state, as_before=way == "undone")
    assert not checker.left_over()
    lab.remove(namespace)


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
