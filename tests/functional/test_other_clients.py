# SPDX-License-Identifier: Apache-2.0
"""What another client changes between our write and "ready" is no success of ours, and stays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pytest
import yaml

from container_update import (
    ClusterError,
    HealRequest,
    Options,
    ScaleRequest,
    StepWait,
    UndoIncompleteError,
    UpdateFailedError,
    change_package,
    heal,
    install,
    rollback,
    undo,
    update,
)
from tests.functional.cnf import BAD_IMAGE, IMAGES, INSTANCE, Cnf
from tests.functional.conftest import until
from tests.functional.manifests import workload
from tests.functional.real import one_of
from tests.internals.core import (
    Event,
    Json,
    ObjectKey,
    Scale,
    images,
    is_ready,
    outcome_report,
    run,
    with_images,
)

THEIRS = "nginx:1.29-alpine"
SLOW = {
    "Deployment": "minReadySeconds: 2",
    "DaemonSet": "minReadySeconds: 2",
    "ReplicaSet": "minReadySeconds: 2",
    "StatefulSet": "minReadySeconds: 2\npodManagementPolicy: Parallel",
    "Pod": "",
}
"""What keeps new pods from being available for a moment, where a kind has it."""
PROBE = "readinessProbe: {tcpSocket: {port: 80}, initialDelaySeconds: 2}"


def edit(cnf: Cnf, key: ObjectKey, change: Callable[[Json], Json | None]) -> None:
    """Write as another client, which reads again after a conflict."""
    while True:
        body = cnf.admin.get(key)
        assert body is not None
        try:
            cnf.admin.replace(change(body) or body)
        except ClusterError as error:
            if error.status != 409:
                raise
        else:
            return


def set_image(cnf: Cnf, key: ObjectKey) -> None:
    edit(cnf, key, lambda body: with_images(body, {"main": THEIRS}))


def scale_to_zero(cnf: Cnf, key: ObjectKey) -> None:
    edit(cnf, key, lambda body: body["spec"].update(replicas=0))


def move_nowhere(cnf: Cnf, key: ObjectKey) -> None:
    nowhere = {"example.org/no-such-node": "true"}
    edit(cnf, key, lambda b: b["spec"]["template"]["spec"].update(nodeSelector=nowhere))


def pause(cnf: Cnf, key: ObjectKey) -> None:
    edit(cnf, key, lambda body: body["spec"].update(paused=True))


def delete(cnf: Cnf, key: ObjectKey) -> None:
    cnf.admin.delete(key)


def create_again(cnf: Cnf, key: ObjectKey) -> None:
    body = cnf.admin.get(key)
    assert body is not None
    cnf.admin.delete(key)
    until(lambda: cnf.admin.get(key) is None)
    kept = ("annotations", "labels", "name", "namespace")
    body["metadata"] = {name: body["metadata"][name] for name in kept if name in body["metadata"]}
    body["spec"].pop("nodeName", None)
    cnf.admin.create(body)


@dataclass
class Meddler:
    """Another client, which acts once, as soon as a workload that was written is waited for."""

    cnf: Cnf
    key: ObjectKey | None
    """None: the first one that is waited for."""
    act: Callable[[Cnf, ObjectKey], None]
    has_acted: bool = False

    def __call__(self, event: Event) -> None:
        is_its = isinstance(event, StepWait) and self.key in (None, event.key)
        if isinstance(event, StepWait) and is_its and not self.has_acted:
            self.has_acted = True
            self.act(self.cnf, event.key)


CONTROLLED = ("Deployment", "StatefulSet", "ReplicaSet", "DaemonSet")
ROWS = [
    *((f"sets another image on a {kind}", kind, set_image) for kind in (*CONTROLLED, "Pod")),
    *((f"deletes a {kind}", kind, delete) for kind in (*CONTROLLED, "Pod")),
    *((f"creates a {kind} again", kind, create_again) for kind in (*CONTROLLED, "Pod")),
    *((f"scales a {kind} to 0", kind, scale_to_zero) for kind in CONTROLLED[:3]),
    ("leaves a DaemonSet no node", "DaemonSet", move_nowhere),
]


def manifest(kind: str, image: str) -> str:
    return workload(
        kind, image=image, container=PROBE, spec=SLOW[kind], replicas=2, pod="restartPolicy: Always"
    )


def state(cnf: Cnf, key: ObjectKey) -> tuple[object, ...]:
    """Return what another client may have written into a workload."""
    body = cnf.admin.get(key)
    if body is None:
        return (None,)
    selector = ((body["spec"].get("template") or {}).get("spec") or {}).get("nodeSelector")
    return (
        body["metadata"]["uid"],
        images(body)["main"],
        body["spec"].get("replicas") == 0,
        selector,
    )


def roll(cnf: Cnf, files: Mapping[str, str], meddler: Meddler) -> None:
    """Update to these manifests while another client acts."""
    options = replace(cnf.options, settle_seconds=1, timeout=60, undo_timeout=60)
    update(cnf.request(files), cnf.cluster, options, progress=meddler)


@pytest.mark.parametrize(
    ("kind", "act"),
    one_of(3, [row[1:] for row in ROWS], everywhere=True),
    ids=[row[0] for row in ROWS],
)
def test_an_update_fails_where_another_client(
    cnf: Cnf, kind: str, act: Callable[[Cnf, ObjectKey], None]
) -> None:
    cnf.instantiate(w=manifest(kind, IMAGES[0]))
    key, left = cnf.key(kind, "w"), []

    def act_and_look(cnf: Cnf, key: ObjectKey) -> None:
        act(cnf, key)
        left.append(state(cnf, key))

    meddler = Meddler(cnf, key, act_and_look)
    with pytest.raises(UpdateFailedError) as raised:
        roll(cnf, {"w": manifest(kind, IMAGES[1])}, meddler)
    assert meddler.has_acted
    assert not isinstance(raised.value, UndoIncompleteError)
    assert f"{key} failed: {key} " in str(raised.value)
    assert "by another client" in str(raised.value)
    if act is set_image:
        assert state(cnf, key) == left[0]
    elif act is create_again or (act is delete and kind == "Pod"):
        assert state(cnf, key)[1] == IMAGES[0]
    elif act is delete:
        until(lambda: cnf.admin.get(key) is None)
    else:  # only the image was ours to put back
        assert state(cnf, key) == (left[0][0], IMAGES[0], *left[0][2:])


def test_an_update_fails_where_another_client_pauses_a_deployment(cnf: Cnf) -> None:
    cnf.instantiate(w=manifest("Deployment", IMAGES[0]))
    key = cnf.key("Deployment", "w")
    meddler = Meddler(cnf, key, pause)
    with pytest.raises(UpdateFailedError, match=r"it is paused .*: resume it"):
        roll(cnf, {"w": manifest("Deployment", IMAGES[1])}, meddler)
    assert meddler.has_acted
    assert state(cnf, key)[1] == IMAGES[0]


def test_an_installation_fails_where_another_client_sets_another_image(cnf: Cnf) -> None:
    key = cnf.key("Deployment", "w")
    package = cnf.package({"w.yaml": manifest("Deployment", IMAGES[0])})
    with pytest.raises(UpdateFailedError, match=f"{key} was changed by another client"):
        install(
            package,
            cnf.admin,
            namespace=cnf.namespace,
            instance_id=INSTANCE,
            options=replace(cnf.options, settle_seconds=1),
            progress=Meddler(cnf, key, set_image),
        )


def _change(strategy: str) -> Callable[[Cnf, Options, Meddler], object]:
    def change(cnf: Cnf, options: Options, meddler: Meddler) -> object:
        new = cnf.package({"w.yaml": manifest("Deployment", IMAGES[1])})
        request = {"vnfdId": "any", "additionalParams": {"upgrade_type": strategy}}
        packages = {"old": cnf.old, "new": new}
        return change_package(
            request, cnf.admin, options, progress=meddler, **packages, **cnf.where
        )

    return change


def _scale(cnf: Cnf, options: Options, meddler: Meddler) -> object:
    goal = Scale(ScaleRequest(cnf.old, {"V": 3}, **cnf.where), options)
    goal.packages = replace(goal.packages, new_vdus={"V": "w"})
    return run(goal, cnf.admin, options, progress=meddler)


def _heal(cnf: Cnf, options: Options, meddler: Meddler) -> object:
    set_image(cnf, cnf.key("Deployment", "w"))
    return heal(HealRequest(cnf.old, **cnf.where), cnf.admin, options, progress=meddler)


def _undo(cnf: Cnf, options: Options, meddler: Meddler) -> object:
    cnf.update({"w": manifest("Deployment", IMAGES[1])})
    return undo(cnf.admin, options, progress=meddler, **cnf.where)


VERBS = {
    "a rolling change": _change("RollingUpdate"),
    "a Blue-Green change": _change("Blue-Green"),
    "a canary": _change("Canary"),
    "a heal": _heal,
    "an undo": _undo,
}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_no_verb_succeeds_where_another_client_sets_another_image(
    cnf: Cnf, verb: Callable[[Cnf, Options, Meddler], object]
) -> None:
    fails_with(cnf, verb, lambda body: with_images(body, {"main": "nginx:1.30-alpine"}))


def test_nor_a_scaling_where_it_takes_all_pods(cnf: Cnf) -> None:
    """Another image is no business of a scaling; another number may be an autoscaler's."""
    fails_with(cnf, _scale, lambda body: body["spec"].update(replicas=0))


def fails_with(
    cnf: Cnf,
    verb: Callable[[Cnf, Options, Meddler], object],
    change: Callable[[Json], Json | None],
) -> None:
    cnf.instantiate(w=manifest("Deployment", IMAGES[0]))
    options = replace(cnf.options, settle_seconds=1, timeout=60, undo_timeout=60)
    meddler = Meddler(cnf, None, lambda cnf, key: edit(cnf, key, change))
    with pytest.raises(UpdateFailedError, match="by another client"):
        verb(cnf, options, meddler)
    assert meddler.has_acted


def test_a_pod_that_another_client_takes_out_of_its_workload_is_replaced(cnf: Cnf) -> None:
    """Whoever changes its labels has it from then on: its controller creates another one."""
    cnf.instantiate(w=manifest("Deployment", IMAGES[0]))
    taken: list[str] = []

    def take_out(cnf: Cnf, key: ObjectKey) -> None:
        name = next(iter(cnf.pods(key.kind, key.name)))
        pod = cnf.key("Pod", name)
        edit(cnf, pod, lambda body: body["metadata"].update(labels={"debug": "true"}))
        taken.append(name)

    key = cnf.key("Deployment", "w")
    roll(cnf, {"w": manifest("Deployment", IMAGES[1])}, Meddler(cnf, key, take_out))
    pods = cnf.pods("Deployment", "w")
    assert [pod.image for pod in pods.values()] == [IMAGES[1]] * 2
    assert taken[0] not in pods
    live = cnf.admin.get(cnf.key("Pod", taken[0]))
    assert live is not None
    assert is_ready(live)


def test_an_autoscaler_that_scales_meanwhile_is_no_failure(cnf: Cnf) -> None:
    cnf.instantiate(w=manifest("Deployment", IMAGES[0]))
    key = cnf.key("Deployment", "w")

    def scale(cnf: Cnf, key: ObjectKey) -> None:
        edit(cnf, key, lambda body: body["spec"].update(replicas=3))

    roll(cnf, {"w": manifest("Deployment", IMAGES[1])}, Meddler(cnf, key, scale))
    assert [pod.image for pod in cnf.pods("Deployment", "w").values()] == [IMAGES[1]] * 3


def test_the_update_of_others_goes_back_too(cnf: Cnf) -> None:
    """One workload is another client's; the others run what they ran."""
    names = ("w", "x", "y", "z")
    old = {name: _named(manifest("Deployment", IMAGES[0]), name) for name in names}
    new = {name: _named(manifest("Deployment", IMAGES[1]), name) for name in names}
    cnf.instantiate(**old)
    key = cnf.key("Deployment", "y")
    with pytest.raises(UpdateFailedError, match=f"{key} was changed by another client"):
        roll(cnf, new, Meddler(cnf, key, set_image))
    live = {name: images(cnf.get("Deployment", name))["main"] for name in names}
    assert live == dict.fromkeys(names, IMAGES[0]) | {"y": THEIRS}


def _named(text: str, name: str) -> str:
    body = yaml.safe_load(text)
    body["metadata"]["name"] = name
    body["spec"]["selector"]["matchLabels"]["app"] = name
    body["spec"]["template"]["metadata"]["labels"]["app"] = name
    return yaml.safe_dump(body)


def test_a_rollback_says_what_it_leaves_to_another_client(cnf: Cnf) -> None:
    cnf.instantiate(w=workload("Deployment"))
    body = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": "RollingUpdate"}}
    new = cnf.package({"w.yaml": workload("Deployment", image=BAD_IMAGE)})
    with pytest.raises(UpdateFailedError):
        change_package(
            body, cnf.admin, cnf.options, old=cnf.old, new=new, leave_failed=True, **cnf.where
        )
    set_image(cnf, ObjectKey("apps", "Deployment", cnf.namespace, "w"))
    undone = rollback(cnf.admin, cnf.options, **cnf.where)
    assert undone is not None
    left = f"Deployment {cnf.namespace}/w: left as another client changed it"
    assert outcome_report.summary_text(undone).endswith(
        f"everything is as before (1 step; {left})."
    )
