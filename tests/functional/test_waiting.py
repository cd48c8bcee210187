# SPDX-License-Identifier: Apache-2.0
"""What is waited for, forwards and back, where not all was well before the update."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from container_update import (
    CancelToken,
    Step,
    StepWait,
    UpdateFailedError,
    UpdateInterruptedError,
    connect,
    resume,
    update,
)
from container_update.emulator.kubernetes import Behaviour, EmbeddedCluster
from container_update.emulator.kubernetes.kubelet import Exit
from tests.functional.cnf import BAD_IMAGE, IMAGES, Cnf
from tests.functional.conftest import OPTIONS, overwrite, until
from tests.functional.manifests import workload
from tests.internals.core import (
    Collection,
    Json,
    StepState,
    informer,
    is_deleting,
    is_ready,
    problem,
)

FOR_EVER = 3600
SHORT = replace(OPTIONS, grace_period=0.5, timeout=20, undo_timeout=20)
ON_DELETE = "updateStrategy: {type: OnDelete}"
TWO_AT_ONCE = "updateStrategy: {rollingUpdate: {maxUnavailable: 2}}"
"""Else its controller waits for the pod that cannot end."""
PARALLEL = "podManagementPolicy: Parallel"


@dataclass
class Lab:
    """A CNF in a cluster of its own, whose kubelets do as they are told."""

    embedded: EmbeddedCluster
    behaviour: Behaviour
    cnf: Cnf

    def create(self, **files: str) -> None:
        """Create the CNF as another tool would: whether it is well does not matter."""
        self.cnf.old = self.cnf.package({f"{name}.yaml": text for name, text in files.items()})
        for text in files.values():
            body = yaml.safe_load(text)
            body["metadata"]["namespace"] = self.cnf.namespace
            self.cnf.admin.create(body)
        until(lambda: len(self.live()) > 0 and all(map(problem, self.not_ready())))

    def not_ready(self) -> list[Json]:
        return [pod for pod in self.live() if not is_ready(pod)]

    def live(self) -> list[Json]:
        """Return the pods by name."""
        listed = self.cnf.admin.list(Collection("", "Pod", self.cnf.namespace)).items
        return sorted(listed, key=lambda pod: str(pod["metadata"]["name"]))

    def ready(self) -> list[str]:
        """Return the images of the ready pods."""
        return [pod["spec"]["containers"][0]["image"] for pod in self.live() if is_ready(pod)]

    def hang(self, pod: Json) -> None:
        """Delete a pod whose kubelet never ends it."""
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        self.embedded.call(
            lambda registry: registry.delete("pods", namespace, name, grace_seconds=FOR_EVER)
        )

    def hanging(self) -> list[str]:
        return [pod["metadata"]["uid"] for pod in self.live() if is_deleting(pod)]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    # a container ends only when it is killed, after its pod's grace period
    behaviour = Behaviour(stop_seconds=FOR_EVER, start_seconds=0.01, backoff_seconds=0.2)
    with EmbeddedCluster(behaviour=behaviour, nodes=2) as embedded:
        path = str(embedded.write_kubeconfig(tmp_path / "kubeconfig"))
        with connect(path, options=SHORT) as cluster:
            yield Lab(embedded, behaviour, Cnf(cluster, cluster, "default", tmp_path, SHORT))


# --- pods that belong to nobody -----------------------------------------------------------------

KINDS = {
    "a Deployment": ("Deployment", "", 2),
    "a ReplicaSet": ("ReplicaSet", "", 2),
    "a DaemonSet": ("DaemonSet", TWO_AT_ONCE, 1),
    "a DaemonSet with OnDelete": ("DaemonSet", ON_DELETE, 1),
    "a StatefulSet, all at once": ("StatefulSet", PARALLEL, 1),
    "a StatefulSet with OnDelete": ("StatefulSet", f"{PARALLEL}\n{ON_DELETE}", 1),
}
"""With how many pods each has while one of two cannot end."""


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def hung(lab: Lab, request: pytest.FixtureRequest) -> tuple[Lab, str, str, int]:
    """A workload of two pods, one of which has been Terminating for long."""
    kind, spec, number = request.param
    lab.cnf.instantiate(w=workload(kind, spec=spec, replicas=2))
    first = lab.live()[0]
    lab.hang(first)
    until(lambda: first["metadata"]["uid"] in lab.hanging() and len(lab.ready()) == number)
    return lab, kind, spec, number


def test_a_pod_that_was_terminating_before_does_not_hold_an_update(
    hung: tuple[Lab, str, str, int],
) -> None:
    lab, kind, spec, number = hung
    left = lab.hanging()
    lab.cnf.update({"w": workload(kind, spec=spec, replicas=2, image=IMAGES[1])})
    assert lab.hanging() == left
    assert lab.ready() == [IMAGES[1]] * number


def test_a_pod_that_was_terminating_before_does_not_hold_an_undo(
    hung: tuple[Lab, str, str, int],
) -> None:
    lab, kind, spec, number = hung
    with pytest.raises(UpdateFailedError) as failed:
        lab.cnf.update({"w": workload(kind, spec=spec, replicas=2, image=BAD_IMAGE)})
    assert {result.state for result in failed.value.outcome.results} == {StepState.UNDONE}
    assert lab.ready() == [IMAGES[0]] * number


def test_a_daemon_set_that_replaces_one_pod_at_a_time_waits_for_it_and_is_undone(lab: Lab) -> None:
    lab.cnf.instantiate(w=workload("DaemonSet"))
    first, second = lab.live()
    lab.hang(first)
    until(lab.hanging)
    left = lab.hanging()
    message = rf"0 of 1 pods are updated, and pod {first['metadata']['name']}, which should have "
    with pytest.raises(UpdateFailedError, match=message) as failed:
        lab.cnf.update({"w": workload("DaemonSet", image=IMAGES[1])}, replace(SHORT, timeout=2))
    assert {result.state for result in failed.value.outcome.results} == {StepState.UNDONE}
    assert lab.hanging() == left
    assert second["metadata"]["uid"] in {pod["metadata"]["uid"] for pod in lab.live()}


@pytest.mark.parametrize("hung", [KINDS["a Deployment"], KINDS["a DaemonSet"]], indirect=True)
@pytest.mark.parametrize("back", [False, True], ids=["resumed", "rolled back"])
def test_a_run_that_was_interrupted_still_knows_which_pods_were_terminating_before(
    hung: tuple[Lab, str, str, int], back: bool
) -> None:
    lab, kind, spec, number = hung
    cancel = CancelToken()

    def stop(event: object) -> None:
        if isinstance(event, Step):
            cancel.request("by a test", keep_journal=True)

    new = {"w": workload(kind, spec=spec, replicas=2, image=IMAGES[1])}
    with pytest.raises(UpdateInterruptedError):
        update(lab.cnf.request(new), lab.cnf.cluster, SHORT, cancel=cancel, progress=stop)
    assert (lab.cnf.rollback() if back else lab.cnf.resume()) is not None
    assert lab.ready() == [IMAGES[0 if back else 1]] * number


def test_nor_does_one_that_has_the_new_image_already(lab: Lab) -> None:
    before, after = (workload("Deployment", replicas=2, image=image) for image in IMAGES)
    lab.cnf.instantiate(w=after)
    lab.hang(lab.live()[0])
    until(lambda: len(lab.hanging()) == 1)
    left = lab.hanging()
    went_back = lab.cnf.get("Deployment", "w")
    went_back["spec"]["template"]["spec"]["containers"][0]["image"] = IMAGES[0]
    overwrite(lab.cnf.admin, went_back)
    until(lambda: lab.ready() == [IMAGES[0]] * 2 and lab.hanging() == left)
    lab.cnf.old = lab.cnf.package({"w.yaml": before})
    lab.cnf.update({"w": after})
    assert lab.hanging() == left


def test_a_resumed_run_waits_for_what_replaces_a_new_pod_that_is_terminating(lab: Lab) -> None:
    lab.cnf.instantiate(w=workload("StatefulSet"))
    cancel = CancelToken()

    def stop(event: object) -> None:
        if isinstance(event, Step):
            cancel.request("by a test", keep_journal=True)

    new = {"w": workload("StatefulSet", image=IMAGES[1])}
    with pytest.raises(UpdateInterruptedError):
        update(lab.cnf.request(new), lab.cnf.cluster, SHORT, cancel=cancel, progress=stop)
    until(lambda: lab.ready() == [IMAGES[1]])
    lab.hang(lab.live()[0])
    until(lambda: len(lab.hanging()) == 1)
    with pytest.raises(UpdateFailedError, match="not ready in time"):
        resume(lab.cnf.cluster, replace(SHORT, timeout=1, undo_timeout=1), **lab.cnf.where)


# --- the verdict of a controller ----------------------------------------------------------------

SLOW = "slow:1"
"""Its containers run and do not get ready."""
DEADLINE = "progressDeadlineSeconds: 1"


def late(lab: Lab) -> bool:
    """Tell whether the Deployment has missed its deadline."""
    conditions = lab.cnf.get("Deployment", "w")["status"]["conditions"]
    return any(condition["reason"] == "ProgressDeadlineExceeded" for condition in conditions)


def test_a_deployment_of_one_pod_that_misses_its_deadline_is_undone(lab: Lab) -> None:
    lab.behaviour.never_ready = [SLOW]
    lab.cnf.instantiate(w=workload("Deployment", spec=DEADLINE))
    with pytest.raises(UpdateFailedError, match="ProgressDeadlineExceeded") as failed:
        lab.cnf.update({"w": workload("Deployment", spec=DEADLINE, image=SLOW)})
    assert {result.state for result in failed.value.outcome.results} == {StepState.UNDONE}
    assert lab.ready() == [IMAGES[0]]
    lab.cnf.update({"w": workload("Deployment", spec=DEADLINE, image=IMAGES[1])})


def test_a_deadline_that_was_missed_before_does_not_fail_the_way_back(lab: Lab) -> None:
    lab.behaviour.never_ready = [SLOW]
    good = {"w": workload("Deployment", spec=DEADLINE)}
    lab.cnf.instantiate(**good)
    live = lab.cnf.get("Deployment", "w")
    live["spec"]["template"]["spec"]["containers"][0]["image"] = SLOW
    overwrite(lab.cnf.admin, live)
    until(lambda: late(lab))
    lab.cnf.old = lab.cnf.package({"w.yaml": workload("Deployment", spec=DEADLINE, image=SLOW)})
    lab.cnf.update(good)
    assert lab.ready() == [IMAGES[0]]


# --- back to what was not well ------------------------------------------------------------------

MISSING = "app:missing-1"
"""An image that cannot be pulled: what runs before the update is broken."""
BROKEN = {
    "a Deployment": ("Deployment", "", 1),
    "a Deployment of two": ("Deployment", "", 2),
    "a ReplicaSet": ("ReplicaSet", "", 2),
    "a DaemonSet": ("DaemonSet", "", 2),
    "a DaemonSet with OnDelete": ("DaemonSet", ON_DELETE, 2),
    "a StatefulSet": ("StatefulSet", "", 2),
    "a StatefulSet with OnDelete": ("StatefulSet", ON_DELETE, 2),
    "a StatefulSet, all at once": ("StatefulSet", PARALLEL, 2),
    "a Pod": ("Pod", "", 1),
}


def image_of(lab: Lab, kind: str) -> str:
    spec = lab.cnf.get(kind, "w")["spec"]
    return str(spec.get("template", {"spec": spec})["spec"]["containers"][0]["image"])


@pytest.mark.parametrize(("kind", "spec", "number"), BROKEN.values(), ids=BROKEN.keys())
def test_a_correction_that_fails_is_undone_and_the_next_one_succeeds(
    lab: Lab, kind: str, spec: str, number: int
) -> None:
    def package(image: str) -> dict[str, str]:
        return {"w": workload(kind, spec=spec, replicas=number, image=image)}

    lab.create(**package(MISSING))
    with pytest.raises(UpdateFailedError) as failed:
        lab.cnf.update(package(BAD_IMAGE))
    assert {result.state for result in failed.value.outcome.results} == {StepState.UNDONE}
    assert image_of(lab, kind) == MISSING

    lab.cnf.update(package(IMAGES[1]))
    assert lab.ready() == [IMAGES[1]] * number


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"])
def test_an_undo_does_not_wait_for_health_that_was_not_there(lab: Lab, kind: str) -> None:
    """The correction was right, and another workload's was not."""

    def package(image: str, other: str) -> dict[str, str]:
        return {
            "other": workload("Deployment", "other", image=other),
            "w": workload(kind, replicas=2, image=image),
        }

    lab.create(**package(MISSING, IMAGES[0]))
    lab.behaviour.pull_seconds = 0.5  # the correction is there before the other has failed
    with pytest.raises(UpdateFailedError) as failed:
        lab.cnf.update(package(IMAGES[1], BAD_IMAGE))
    assert {result.state for result in failed.value.outcome.results} == {StepState.UNDONE}
    assert image_of(lab, kind) == MISSING


def test_what_was_there_before_survives_the_end_of_the_process(lab: Lab) -> None:
    lab.create(w=workload("Deployment", replicas=2, image=MISSING))
    cancel = CancelToken()

    def stop(event: object) -> None:
        if isinstance(event, StepWait):
            cancel.request("by a test", keep_journal=True)

    new = {"w": workload("Deployment", replicas=2, image=BAD_IMAGE)}
    with pytest.raises(UpdateInterruptedError):
        update(lab.cnf.request(new), lab.cnf.cluster, SHORT, cancel=cancel, progress=stop)
    assert image_of(lab, "Deployment") == BAD_IMAGE
    outcome = lab.cnf.rollback()
    assert outcome is not None
    assert {result.state for result in outcome.results} == {StepState.UNDONE}
    assert image_of(lab, "Deployment") == MISSING


# --- forwards from what was not well ------------------------------------------------------------

ILL = {
    "a Deployment": ("Deployment", ""),
    "a ReplicaSet": ("ReplicaSet", ""),
    "a DaemonSet with OnDelete": ("DaemonSet", ON_DELETE),
    "a StatefulSet": ("StatefulSet", ""),
    "a StatefulSet with OnDelete": ("StatefulSet", ON_DELETE),
}


def make_ill(lab: Lab, pod: Json) -> None:
    """Let a pod not be Ready any more, for a reason that only its kubelet knows."""

    def write(registry: Any) -> None:
        body = copy.deepcopy(registry.get("pods", lab.cnf.namespace, pod["metadata"]["name"]))
        for condition in body["status"]["conditions"]:
            if condition["type"] in ("Ready", "ContainersReady"):
                condition["status"] = "False"
        for status in body["status"]["containerStatuses"]:
            status["ready"] = False
        name = pod["metadata"]["name"]
        registry.update("pods", lab.cnf.namespace, name, body, subresource="status")

    lab.embedded.call(write)


@pytest.mark.parametrize(("kind", "spec"), ILL.values(), ids=ILL.keys())
@pytest.mark.parametrize("which", [0, -1], ids=["the first", "the last"])
def test_an_old_pod_that_is_not_ready_does_not_stop_an_update(
    lab: Lab, kind: str, spec: str, which: int
) -> None:
    lab.cnf.instantiate(w=workload(kind, spec=spec, replicas=2))
    make_ill(lab, lab.live()[which])
    lab.cnf.update({"w": workload(kind, spec=spec, replicas=2, image=IMAGES[1])})
    assert lab.ready() == [IMAGES[1]] * 2


def evictions(lab: Lab) -> list[str]:
    """Return the names of the pods that were to be evicted, in order."""
    paths = [r.path for r in lab.embedded.requests if r.path.endswith("/eviction")]
    return [path.split("/")[-2] for path in paths]


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_pod_that_is_not_ready_is_replaced_first(lab: Lab, which: int) -> None:
    lab.cnf.instantiate(w=workload("ReplicaSet", replicas=3))
    ill = lab.live()[which]
    make_ill(lab, ill)
    lab.cnf.update({"w": workload("ReplicaSet", replicas=3, image=IMAGES[1])})
    assert evictions(lab)[0] == ill["metadata"]["name"]
    assert len(evictions(lab)) == 3


BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: budget}
spec: {minAvailable: 1, selector: {matchLabels: {app: w}}}
"""


def test_a_disruption_budget_does_not_keep_pods_that_are_broken(lab: Lab) -> None:
    lab.create(w=workload("ReplicaSet", replicas=2), budget=BUDGET)
    until(lambda: len(lab.ready()) == 2)
    for pod in lab.live():
        make_ill(lab, pod)
    files = {"w": workload("ReplicaSet", replicas=2, image=IMAGES[1]), "budget": BUDGET}
    lab.cnf.update(files)
    assert lab.ready() == [IMAGES[1]] * 2


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet", "Deployment"])
def test_an_undo_does_not_wait_for_a_pod_that_was_ready_for_a_moment(lab: Lab, kind: str) -> None:
    """It was Ready when the undo began, and crashes before it counts as available."""
    lab.behaviour.exits = [Exit(image=IMAGES[1], code=1, after_seconds=2)]
    lab.behaviour.stop_seconds = 0.01  # so that a new pod is there before the other has failed
    slow = "minReadySeconds: 3"

    def package(image: str, other: str) -> dict[str, str]:
        return {
            "other": workload("Deployment", "other", image=other),
            "w": workload(kind, spec=slow, replicas=2, image=image),
        }

    lab.cnf.instantiate(**package(*IMAGES[:1], IMAGES[0]))
    with pytest.raises(UpdateFailedError) as failed:
        lab.cnf.update(package(IMAGES[1], BAD_IMAGE))
    assert {result.state for result in failed.value.outcome.results} == {StepState.UNDONE}
    assert lab.ready() == [IMAGES[0]] * 3


def test_a_pod_has_to_stay_ready_for_its_min_ready_seconds(lab: Lab) -> None:
    lab.behaviour.exits = [Exit(image=IMAGES[1], code=1, after_seconds=0.5)]
    spec = "minReadySeconds: 2"
    lab.cnf.instantiate(w=workload("StatefulSet", spec=spec))
    with pytest.raises(UpdateFailedError, match="CrashLoopBackOff") as failed:
        lab.cnf.update({"w": workload("StatefulSet", spec=spec, image=IMAGES[1])})
    assert {result.state for result in failed.value.outcome.results} == {StepState.UNDONE}


# --- a watch that went silent -------------------------------------------------------------------


def test_a_watch_that_went_silent_is_noticed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informer, "_SILENT_SECONDS", 1.0)
    lab.cnf.instantiate(w=workload("Deployment"))
    silenced: list[str] = []

    async def mute(request: web.Request, handler: Any) -> web.StreamResponse:
        if request.query.get("watch") != "true" or "lease" in request.path:
            return await handler(request)
        silenced.append(request.path)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        await asyncio.sleep(FOR_EVER)
        return response

    lab.embedded.middlewares.append(mute)
    patient = replace(SHORT, timeout=FOR_EVER)
    lab.cnf.update({"w": workload("Deployment", image=IMAGES[1])}, patient)
    assert lab.ready() == [IMAGES[1]]
    assert {path.rsplit("/", 1)[1] for path in silenced} >= {"deployments", "pods"}


class Deaf:
    """A cluster whose watch of pods is late from the first eviction on, which cancels the run,
    until the next one."""

    def __init__(self, cluster: Any, cancel: CancelToken, replaced: Any) -> None:
        self._cluster, self._cancel, self._replaced = cluster, cancel, replaced
        self._is_late = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def evict(self, key: Any, **more: Any) -> None:
        self._is_late = not self._cancel
        self._cluster.evict(key, **more)
        if not self._cancel:
            until(self._replaced)
            self._cancel.request("by the test")

    def watch(self, collection: Collection, *where: Any) -> Iterator[Any]:
        for event in self._cluster.watch(collection, *where):
            if not (self._is_late and collection.kind == "Pod"):
                yield event


def test_an_undo_finds_a_pod_of_the_new_template_that_no_watch_has_told_of(cnf: Cnf) -> None:
    old = {"w": workload("ReplicaSet", replicas=2)}
    cnf.instantiate(**old)
    request = cnf.request({"w": workload("ReplicaSet", replicas=2, image=IMAGES[1])})

    def new_pods() -> bool:
        return any(state.image == IMAGES[1] for state in cnf.pods("ReplicaSet", "w").values())

    cancel = CancelToken()
    late: Any = Deaf(cnf.cluster, cancel, new_pods)
    with pytest.raises(UpdateInterruptedError, match="Everything is as before"):
        update(request, late, cnf.options, cancel)
    assert {state.image for state in cnf.pods("ReplicaSet", "w").values()} == {IMAGES[0]}
