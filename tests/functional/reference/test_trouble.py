# SPDX-License-Identifier: Apache-2.0
"""External faults during an update: which it tolerates, and how it reports the others."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from container_update import (
    CancelToken,
    LeaseLostError,
    NextStep,
    UndoIncompleteError,
    UpdateFailedError,
    UpdateInterruptedError,
)
from container_update.emulator.faults import Effect, Fault, FaultedRequest, Faults, answer, outage
from container_update.emulator.kubernetes import Registry
from tests.functional.cnf import IMAGES
from tests.functional.conftest import REAL
from tests.functional.gate import Gate, running
from tests.functional.manifests import ENV, config_map, workload
from tests.functional.matrix import TROUBLE
from tests.functional.promise import Checker, Expected, Running, Snapshot
from tests.functional.reference.holds import assert_is
from tests.functional.reference_update import (
    NEW,
    NEW_FILES,
    OLD,
    OLD_FILES,
    OPTIONS,
    Lab,
    until,
)
from tests.internals.core import Json

pytestmark = pytest.mark.skipif(bool(REAL), reason="looks into the embedded cluster")


def meanwhile(lab: Lab, change: Callable[[Registry], object]) -> Effect:
    """Let the change of another client take effect just before the request."""
    registry = lab.embedded.call(lambda registry: registry)

    async def effect(faulted: FaultedRequest) -> web.StreamResponse:
        change(registry)
        return await faulted.handler(faulted.request)

    return effect


def edit(
    resource: str, namespace: str, name: str, change: Callable[[Json], object]
) -> Callable[[Registry], object]:
    """Return a change of one object for :func:`meanwhile`."""

    def write(registry: Registry) -> None:
        body = copy.deepcopy(registry.require(resource, namespace, name))
        change(body)
        registry.update(resource, namespace, name, body)

    return write


# --- got over -----------------------------------------------------------------------------------


@pytest.mark.parametrize("trouble", TROUBLE)
def test_a_failing_access_review_does_not_fail_an_update(
    lab: Lab, checker: Checker, trouble: str
) -> None:
    """The fault matrix does not cover it, since its path contains no namespace."""
    script = Faults(Fault(TROUBLE[trouble]), path="*/selfsubjectrulesreviews")
    lab.server.middlewares.append(script)
    try:
        lab.update(lab.request(checker.namespace, OLD_FILES, NEW_FILES))
    finally:
        lab.server.middlewares.remove(script)
    assert script.happened
    assert_is(checker, NEW)


def test_a_pull_that_succeeds_at_the_second_try_does_not_fail_an_update(
    lab: Lab, checker: Checker
) -> None:
    new = {**NEW_FILES, "bystander": workload("Deployment", "b", image="flaky:2")}
    patient = replace(OPTIONS, grace_period=5)
    lab.update(lab.request(checker.namespace, OLD_FILES, new), options=patient)
    (pod,) = Snapshot.at(lab.server, checker.namespace).pods_of("Deployment", "b")
    assert pod["spec"]["containers"][0]["image"] == "flaky:2"
    assert lab.behaviour.pull_fails("flaky:2", 0)


@pytest.mark.parametrize(
    ("kind", "name"), [("Deployment", "d"), ("ReplicaSet", "r"), ("StatefulSet", "s")]
)
def test_a_pod_evicted_by_its_node_does_not_fail_an_update(
    lab: Lab, checker: Checker, kind: str, name: str
) -> None:
    gate = Gate()
    request = lab.request(checker.namespace, OLD_FILES, NEW_FILES)
    with (
        lab.script(checker.namespace, Fault(gate, method="PUT", path=f"*/{kind.lower()}s/{name}")),
        running(lambda: lab.update(request)) as updating,
    ):
        with gate.held():
            pod = checker.before.pods_of(kind, name)[0]["metadata"]["name"]
            lab.behaviour.evict_pod(checker.namespace, pod)
        updating.result()
    assert_is(checker, NEW)


@pytest.mark.parametrize("too_old", [False, True], ids=["cut", "cut, and 410 afterwards"])
def test_watches_that_end_do_not_fail_an_update(lab: Lab, checker: Checker, too_old: bool) -> None:
    gate = Gate()
    request = lab.request(checker.namespace, OLD_FILES, NEW_FILES)
    with (
        lab.script(checker.namespace, Fault(gate, method="PUT", path="*/deployments/d")),
        running(lambda: lab.update(request)) as updating,
    ):
        with gate.held():
            if too_old:
                lab.embedded.forget_history()
            lab.server.end_watches()
        updating.result()
    assert_is(checker, NEW)


def test_what_an_autoscaler_writes_meanwhile_is_kept(lab: Lab, checker: Checker) -> None:
    scale = edit("replicasets", checker.namespace, "r", lambda b: b["spec"].update(replicas=3))
    fault = Fault(meanwhile(lab, scale), method="PUT", path="*/replicasets/r")
    with lab.script(checker.namespace, fault):
        lab.update(lab.request(checker.namespace, OLD_FILES, NEW_FILES))
    pods = Snapshot.at(lab.server, checker.namespace).pods_of("ReplicaSet", "r")
    assert [pod["spec"]["containers"][0]["image"] for pod in pods] == [IMAGES[1]] * 3


def test_a_label_that_another_client_writes_meanwhile_is_kept(lab: Lab, checker: Checker) -> None:
    label = edit(
        "configmaps", checker.namespace, "cm", lambda b: b["metadata"]["labels"].update(mine="x")
    )
    fault = Fault(meanwhile(lab, label), method="PUT", path="*/configmaps/cm")
    with lab.script(checker.namespace, fault):
        lab.update(lab.request(checker.namespace, OLD_FILES, NEW_FILES))
    assert_is(checker, NEW)
    snapshot = Snapshot.at(lab.server, checker.namespace)
    assert snapshot.get("ConfigMap", "cm")["metadata"]["labels"]["mine"] == "x"


def test_an_eviction_that_meets_a_conflict_is_retried(lab: Lab, checker: Checker) -> None:
    conflict = Fault(answer(409), method="POST", path="*/eviction", times=2)
    with lab.script(checker.namespace, conflict) as script:
        lab.update(lab.request(checker.namespace, OLD_FILES, NEW_FILES))
    assert len(script.happened) == 2
    assert_is(checker, NEW)


# --- reported, and undone -----------------------------------------------------------------------


def failure(lab: Lab, checker: Checker, files: dict[str, str], **options: Any) -> str:
    with pytest.raises(UpdateFailedError) as raised:
        lab.update(
            lab.request(checker.namespace, OLD_FILES, files), options=replace(OPTIONS, **options)
        )
    assert not isinstance(raised.value, UndoIncompleteError), raised.value
    return str(raised.value)


def test_configuration_that_another_client_writes_is_kept_and_stops_the_update(
    lab: Lab, checker: Checker
) -> None:
    foreign_edit = edit(
        "configmaps", checker.namespace, "cm", lambda b: b["data"].update(setting="theirs")
    )
    fault = Fault(meanwhile(lab, foreign_edit), method="PUT", path="*/configmaps/cm")
    with lab.script(checker.namespace, fault):
        message = failure(lab, checker, NEW_FILES)
    cm = f"ConfigMap {checker.namespace}/cm"
    assert f"{cm} failed: {cm} was changed by another client since it was read" in message
    assert f"{cm}: left as another client changed it" in message
    snapshot = Snapshot.at(lab.server, checker.namespace)
    assert snapshot.get("ConfigMap", "cm")["data"] == {"setting": "theirs"}
    config = {**OLD.config, ("ConfigMap", "cm"): {"setting": "theirs"}}
    assert_is_before(checker, replace(OLD, config=config))


def assert_is_before(checker: Checker, expected: Expected) -> None:
    assert checker.differences(expected, as_before=True) == []
    assert checker.left_over() == []


def test_a_pod_that_started_with_the_new_configuration_is_replaced_by_the_undo(
    lab: Lab, checker: Checker
) -> None:
    """Its controller starts it before the Deployment is written, and keeps it in the undo."""
    pods = checker.before.pods_of("Deployment", "d")
    half = Expected({}, {("Deployment", "d"): Running(IMAGES[0], {"SETTING": "new"})})

    def replace_pods() -> None:
        for pod in pods:
            lab.embedded.call(Registry.delete, "pods", checker.namespace, pod["metadata"]["name"])
        until(lambda: not checker.differences(half, as_before=False))

    async def effect(faulted: FaultedRequest) -> web.StreamResponse:
        await asyncio.to_thread(replace_pods)
        return await answer(403, "not now")(faulted)

    with lab.script(checker.namespace, Fault(effect, method="PUT", path="*/deployments/d")):
        message = failure(lab, checker, NEW_FILES)
    assert "not now" in message
    assert "Everything is as before" in message
    assert_is(checker, OLD)


def test_an_object_that_another_client_deletes_stops_the_update(lab: Lab, checker: Checker) -> None:
    def delete(registry: Registry) -> None:
        registry.delete("deployments", checker.namespace, "d")

    fault = Fault(meanwhile(lab, delete), method="PUT", path="*/deployments/d")
    with lab.script(checker.namespace, fault):
        message = failure(lab, checker, NEW_FILES)
    assert f"Deployment {checker.namespace}/d" in message
    others = {key: runs for key, runs in OLD.workloads.items() if key != ("Deployment", "d")}
    assert_is_before(checker, replace(OLD, workloads=others))


def test_an_object_too_large_for_the_database_is_reported_as_such(
    lab: Lab, checker: Checker
) -> None:
    refusal = answer(500, "etcdserver: request is too large")
    fault = Fault(refusal, method="PUT", path="*/configmaps/cm", times=100)
    with lab.script(checker.namespace, fault) as script:
        message = failure(lab, checker, NEW_FILES)
    assert "the object is too large for the cluster's database: make it smaller" in message
    assert len(script.happened) == 1  # trying again does not help
    assert_is(checker, OLD)


def test_a_crash_after_readiness_is_noticed_in_the_grace_period(lab: Lab, checker: Checker) -> None:
    bad = {**NEW_FILES, "stateful": workload("StatefulSet", "s", image="late:1")}
    message = failure(lab, checker, bad, settle_seconds=30.0)
    assert f"StatefulSet {checker.namespace}/s failed" in message
    assert "container main: CrashLoopBackOff" in message
    assert_is(checker, OLD)


def test_a_cancellation_in_the_grace_period_undoes_the_update(lab: Lab, checker: Checker) -> None:
    cancel = CancelToken()
    request = lab.request(checker.namespace, OLD_FILES, NEW_FILES)
    options = replace(OPTIONS, settle_seconds=3600.0)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lab.update, request, cancel, options)
        until(lambda: not checker.differences(NEW, as_before=False))
        cancel.request("by a test")
        with pytest.raises(UpdateInterruptedError, match="stopped by a test"):
            running.result(timeout=60)
    assert_is(checker, OLD)


def test_a_long_outage_is_reported_and_the_update_can_be_repeated(
    lab: Lab, checker: Checker
) -> None:
    request = lab.request(checker.namespace, OLD_FILES, NEW_FILES)
    with (
        lab.script(checker.namespace, Fault(outage(30), method="PUT", path="*/deployments/d")),
        pytest.raises((UndoIncompleteError, LeaseLostError), match="cannot reach") as caught,
    ):
        lab.update(request, options=replace(OPTIONS, retry_seconds=0.5))
    assert caught.value.next_step in (NextStep.FIX_AND_ROLLBACK, NextStep.CHECK_STATUS)
    assert checker.left_over() != []
    lab.free_leases(checker.namespace)
    lab.update(request)
    assert_is(checker, NEW)


def test_workloads_are_not_undone_before_their_configuration_is(lab: Lab, checker: Checker) -> None:
    """They would restart with the configuration that the update has left."""
    bad = {**NEW_FILES, "stateful": workload("StatefulSet", "s", image="bad:missing")}
    refusal = Fault(answer(403, "no"), method="GET", path="*/configmaps/cm", times=100)
    request = lab.request(checker.namespace, OLD_FILES, bad)
    with (
        lab.script(checker.namespace, refusal),
        pytest.raises(UndoIncompleteError, match="waits until its configuration is as before"),
    ):
        lab.update(request)
    lab.instance(checker.namespace).recover(back=True)
    assert_is(checker, OLD)


def test_a_deployment_that_is_already_rolled_back_is_not_awaited(lab: Lab) -> None:
    """A second rollback meets pods that are neither the old ones nor those of the update."""
    old = {"cm": config_map(setting="old"), "w": workload("Deployment", "d", container=ENV)}
    new = {**old, "cm": config_map(setting="new")}
    namespace = lab.deploy(old)
    checker = Checker(lab.server, namespace)
    refusal = Fault(answer(410), method="DELETE", path="*/secrets/*", times=100)
    bad = {**new, "w": workload("Deployment", "d", container=ENV, image="bad:missing")}
    with (
        lab.script(namespace, refusal),
        pytest.raises(UpdateFailedError, match="Everything is as before"),
    ):
        lab.update(lab.request(namespace, old, bad))
    assert checker.left_over() != []
    lab.instance(namespace).recover(back=True)
    assert checker.left_over() == []
    lab.remove(namespace)
