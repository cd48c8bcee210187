# SPDX-License-Identifier: Apache-2.0
"""Concurrent and interrupted updates: leases, journals, and which run continues."""

from __future__ import annotations

import random
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from container_update import (
    CancelToken,
    ClusterError,
    LeaseLostError,
    NextStep,
    UpdateFailedError,
    UpdateInProgressError,
    UpdateInterruptedError,
)
from container_update.emulator.faults import Fault, answer, drop_after
from tests.functional.cnf import IMAGES, INSTANCE
from tests.functional.gate import Gate, running
from tests.functional.manifests import config_map, workload
from tests.functional.promise import Checker, Snapshot
from tests.functional.reference.holds import assert_is
from tests.functional.reference_update import (
    BAD_FILES,
    NEW,
    NEW_FILES,
    OLD,
    OLD_FILES,
    Files,
    Lab,
    until,
)
from tests.internals.core import ObjectKey, name_of

LOCK = name_of(INSTANCE)
SILENT = {"renewTime": "2020-01-01T00:00:00.000000Z", "leaseDurationSeconds": 1}
"""A lease that nobody renews."""


def write_lease(lab: Lab, namespace: str, **spec: Any) -> None:
    """Write the lease as held by another holder."""
    lease_spec = {"holderIdentity": "other.7/op-7", "leaseDurationSeconds": 60, **spec}

    key = ObjectKey("coordination.k8s.io", "Lease", namespace, LOCK)
    new = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": LOCK, "namespace": namespace},
    }

    def write() -> bool:
        live = lab.admin.get(key)
        try:
            (lab.admin.replace if live else lab.admin.create)({**(live or new), "spec": lease_spec})
        except ClusterError as error:
            if error.status != 409:  # it was renewed in between
                raise
            return False
        return True

    until(write)


# --- at the same time ---------------------------------------------------------------------------


def test_a_second_update_is_refused_naming_the_first_and_writes_nothing(
    lab: Lab, namespace: str, checker: Checker
) -> None:
    request = lab.request(namespace, OLD_FILES, NEW_FILES)
    gate = Gate()
    with (
        lab.script(namespace, Fault(gate, method="DELETE", path="*/secrets/container-update-*")),
        running(lambda: lab.update(request)) as first,
    ):
        with gate.held():
            lab.server.clear_requests()
            with pytest.raises(UpdateInProgressError) as raised:
                lab.update(request)
            writes = [r for r in lab.server.requests if r.method != "GET" and r.status < 400]
        first.result()
    names = {(r.method, r.path.rpartition("/")[2]) for r in writes}
    # renewals of the first one; what the account may do is asked by a POST
    assert names <= {("PUT", LOCK), ("POST", "selfsubjectrulesreviews")}
    assert re.search(
        r"^operation [0-9a-f-]{36} on \S+ holds this VNF instance since "
        r"20\d\d-\d\d-\d\dT[\d:.]+Z \(last heartbeat \d+ s ago; expires after 9 s without one\)$",
        str(raised.value),
    )
    assert_is(checker, NEW)


def test_of_two_concurrent_updates_one_succeeds_undisturbed(
    lab: Lab, namespace: str, checker: Checker
) -> None:
    request = lab.request(namespace, OLD_FILES, NEW_FILES)
    start = threading.Barrier(2)

    def run() -> str:
        start.wait()
        try:
            lab.update(request)
        except UpdateInProgressError:
            return "refused"
        return "done"

    with ThreadPoolExecutor(2) as pool:
        ends = [future.result() for future in (pool.submit(run), pool.submit(run))]
    assert "done" in ends
    assert_is(checker, NEW)


@pytest.mark.parametrize("status", [None, 403, 410, 500])
def test_a_plan_that_another_update_overtook_is_refused(
    lab: Lab, namespace: str, status: int | None
) -> None:
    """The first update changes everything but the bystander, the second one only the bystander.

    :param status: of the response to the watch of the journal; None: it is watched.
    """
    request, gate = lab.request(namespace, OLD_FILES, NEW_FILES), Gate()
    others = {**OLD_FILES, "bystander": workload("Deployment", "b", image=IMAGES[1])}
    faults = [Fault(gate, method="POST", path="*/leases")]
    if status is not None:
        faults.append(Fault(answer(status), path="*/secrets", watch=True, times=2))
    with (
        lab.script(namespace, *faults),
        running(lambda: lab.update(request)) as overtaken,
    ):
        with gate.held():
            lab.update(lab.request(namespace, OLD_FILES, others))
            lab.server.clear_requests()
        with pytest.raises(UpdateInProgressError, match=r"^Deployment \S+/b changed ") as error:
            overtaken.result()
        writes = [r.path for r in lab.server.requests if r.method in ("PUT", "POST", "DELETE")]
    assert error.value.next_step is NextStep.RETRY
    own = ("/leases", "/secrets", f"/{LOCK}", "reviews")
    assert [path for path in writes if not path.endswith(own)] == []
    assert str(lab.instance(namespace).status()) == "No operation is under way."


def test_a_lease_is_taken_over_although_the_response_is_lost(
    lab: Lab, namespace: str, checker: Checker
) -> None:
    write_lease(lab, namespace, **SILENT)
    with lab.script(namespace, Fault(drop_after, method="PUT", path="*/leases/*")):
        lab.update(lab.request(namespace, OLD_FILES, NEW_FILES))
    assert_is(checker, NEW)


@pytest.mark.parametrize(("holder", "left"), [("", []), ("other.7/op-7", [LOCK])])
def test_a_lease_that_certainly_nobody_holds_goes_with_an_update_with_nothing_to_do(
    lab: Lab, namespace: str, checker: Checker, holder: str, left: list[str]
) -> None:
    write_lease(lab, namespace, **SILENT, holderIdentity=holder)
    assert lab.update(lab.request(namespace, OLD_FILES, OLD_FILES)).plan.is_empty
    assert list(Snapshot.at(lab.server, namespace).objects["Lease"]) == left
    assert_no_workload_changed(checker)


def test_an_update_that_loses_its_lease_stops(lab: Lab, namespace: str, checker: Checker) -> None:
    cancel, gate = CancelToken(), Gate()
    request = lab.request(namespace, OLD_FILES, NEW_FILES)
    with (
        lab.script(namespace, Fault(gate, method="PUT", path="*/configmaps/cm")),
        running(lambda: lab.update(request, cancel)) as losing,
    ):
        with gate.held():
            write_lease(lab, namespace, renewTime="2999-01-01T00:00:00.000000Z")
            until(lambda: cancel.lease_lost)
        with pytest.raises(LeaseLostError, match=r"^This run stopped where it was: .* is lost: "):
            losing.result()
    assert_no_workload_changed(checker)
    lab.free_leases(namespace)
    lab.instance(namespace).recover(back=True)
    assert_is(checker, OLD)


def test_an_undo_that_loses_its_lease_stops_too(lab: Lab, namespace: str, checker: Checker) -> None:
    cancel, gate = CancelToken(), Gate()
    request = lab.request(namespace, OLD_FILES, BAD_FILES)
    with (
        lab.script(namespace, Fault(gate, method="PUT", path="*/configmaps/cm", nth=2)),
        running(lambda: lab.update(request, cancel)) as losing,
    ):
        with gate.held():
            write_lease(lab, namespace, renewTime="2999-01-01T00:00:00.000000Z")
            until(lambda: cancel.lease_lost)
            lab.server.clear_requests()
        with pytest.raises(LeaseLostError):
            losing.result()
        writes = [r.path for r in lab.server.requests if r.method != "GET"]
    assert [path for path in writes if "/apis/apps/" in path or "/pods/" in path] == []
    lab.free_leases(namespace)
    lab.instance(namespace).recover(back=True)
    assert_is(checker, OLD)


def assert_no_workload_changed(checker: Checker) -> None:
    """Check that the pods and their containers are the same as before."""
    snapshot = Snapshot.at(checker.server, checker.namespace)
    for kind, name in OLD.workloads:
        now, before = snapshot.pods_of(kind, name), checker.before.pods_of(kind, name)
        assert [pod["status"] for pod in now] == [pod["status"] for pod in before]


# --- one after the other ------------------------------------------------------------------------


def stopped_after(lab: Lab, namespace: str, files: Files, **reference: Any) -> None:
    """Run an update that is stopped during a request and has to leave everything."""
    cancel, gate = CancelToken(), Gate()
    request = lab.request(namespace, OLD_FILES, files)
    with (
        lab.script(namespace, Fault(gate, **reference)),
        running(lambda: lab.update(request, cancel)) as stopped,
    ):
        with gate.held():
            cancel.request("by the test", keep_journal=True)
        message = r"^The update was stopped by the test\. Everything is left as it is$"
        with pytest.raises(UpdateInterruptedError, match=message) as caught:
            stopped.result()
        assert caught.value.next_step is NextStep.RESUME_OR_ROLLBACK


LATE = {"method": "PUT", "path": "*/deployments/d"}
"""When the configuration is written and some workloads are."""


def test_an_interrupted_update_is_finished_by_running_it_again(
    lab: Lab, namespace: str, checker: Checker
) -> None:
    stopped_after(lab, namespace, NEW_FILES, **LATE)
    outcome = lab.update(lab.request(namespace, OLD_FILES, NEW_FILES))
    assert outcome.results
    assert_is(checker, NEW)


def test_an_interrupted_update_is_undone_before_another_one(
    lab: Lab, namespace: str, checker: Checker
) -> None:
    stopped_after(lab, namespace, {**NEW_FILES, "cm": config_map("cm", setting="other")}, **LATE)
    lab.update(lab.request(namespace, OLD_FILES, NEW_FILES))
    assert_is(checker, NEW)


def test_the_status_describes_an_interrupted_update_without_its_content(
    lab: Lab, namespace: str
) -> None:
    stopped_after(lab, namespace, NEW_FILES, **LATE)
    status = str(lab.instance(namespace).status())
    assert "not finished" in status
    assert f"Deployment {namespace}/d: roll" in status
    assert "new" not in status


def test_a_resumed_update_that_fails_undoes_what_the_first_run_wrote_too(
    lab: Lab, namespace: str, checker: Checker
) -> None:
    """It fails at its first step, before it reaches the workloads."""
    stopped_after(lab, namespace, NEW_FILES, **LATE)
    refusal = Fault(answer(403, "not now"), method="GET", path="*/configmaps/cm", nth=2)
    with (
        lab.script(namespace, refusal),
        pytest.raises(UpdateFailedError, match=r"not now.*Everything is as before"),
    ):
        lab.instance(namespace).recover()
    assert_is(checker, OLD)


@pytest.mark.parametrize("back", [False, True], ids=["resume", "rollback"])
def test_a_journal_larger_than_one_object_may_be_is_split(lab: Lab, back: bool) -> None:
    noise = [random.Random(seed).randbytes(450_000).hex() for seed in range(4)]
    old = {
        **OLD_FILES,
        "big": config_map("big", noise=noise[0]),
        "b2": config_map("b2", x=noise[1]),
    }
    new = {
        **NEW_FILES,
        "big": config_map("big", noise=noise[2]),
        "b2": config_map("b2", x=noise[3]),
    }
    namespace = lab.deploy(old)
    checker = Checker(lab.server, namespace)
    cancel, gate = CancelToken(), Gate()
    request = lab.request(namespace, old, new)
    listed = (*request.config_paths, "Files/big.yaml", "Files/b2.yaml")
    request = replace(request, config_paths=listed)
    with (
        lab.script(namespace, Fault(gate, method="PUT", path="*/configmaps/big")),
        running(lambda: lab.update(request, cancel)) as stopped,
    ):
        with gate.held():
            cancel.request("by the test", keep_journal=True)
        with pytest.raises(UpdateInterruptedError):
            stopped.result()
    assert len(checker.left_over()) > 1
    lab.instance(namespace).recover(back=back)
    assert_is(checker, OLD if back else NEW)
    big = Snapshot.at(lab.server, namespace).get("ConfigMap", "big")
    assert big["data"]["noise"] == (noise[0] if back else noise[2])
    lab.remove(namespace)
