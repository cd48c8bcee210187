# SPDX-License-Identifier: Apache-2.0
"""Changes that fail: reported with Heat's own reason, and undone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from container_update import (
    ClusterError,
    LeaseLostError,
    PackageError,
    PlanError,
    UpdateFailedError,
)
from container_update.emulator.faults import Fault, Faults, raise_error
from container_update.emulator.heat import CloudFaults, ResourceFault
from container_update.emulator.heat.api_errors import OpenStackApiError, stack_quota
from tests.functional.change_vnfpkg.dying import Died, Dying
from tests.functional.stacks import templates
from tests.functional.stacks.change import Call, change, plan_change
from tests.functional.stacks.clocks import in_an_hour
from tests.functional.stacks.conftest import Front
from tests.functional.stacks.limits import Limits
from tests.functional.stacks.proxy import NeverComplete
from tests.functional.stacks.site import REAL
from tests.functional.stacks.vnf import Vnf, until
from tests.internals.core import Phase, StepState, name_of
from tests.internals.stacks import BLUE_GREEN, ROLLING, Heat, reference

BOTH = pytest.mark.parametrize("upgrade_type", [BLUE_GREEN, ROLLING])


def is_new(properties: Any) -> bool:
    return bool(properties.get("image") == "image-2")


@BOTH
def test_an_image_that_is_not_there_is_reported_once_and_undone(
    limits: Limits, vnf: Vnf, upgrade_type: str
) -> None:
    vnf.instantiate("group")
    before, servers, unknown = vnf.body(), vnf.servers(), limits.unknown_image()
    said = rf"(?s)Error validating value '{unknown}'.*[^.]\. Everything is as before$"
    with pytest.raises(UpdateFailedError, match=said) as caught:
        vnf.change(vnf.package("group", unknown), upgrade_type)
    outcome = caught.value.outcome
    assert len([result for result in outcome.results if unknown in result.message]) == 1
    assert outcome.requests > len(outcome.results)
    assert outcome.seconds > 0
    assert (vnf.servers(), vnf.body(), vnf.stacks()) == (servers, before, [vnf.stack])


@BOTH
def test_a_flavour_that_no_host_has_room_for_ends_at_the_time_limit_or_before(
    limits: Limits, vnf: Vnf, faults: CloudFaults, upgrade_type: str
) -> None:
    """Nova gives up a resize and leaves the server as it was; Heat waits for it all the same."""
    vnf.instantiate("group")
    before, servers = vnf.body(), vnf.servers()
    faults.minute = 1.0
    vnf.options = replace(vnf.options, timeout=20 if REAL else 1)
    with pytest.raises(UpdateFailedError) as caught:
        vnf.change(vnf.package("group", vnf.site.images[1], limits.nowhere), upgrade_type)
    assert "Everything is as before" in str(caught.value)
    assert (vnf.servers(), vnf.body(), vnf.stacks()) == (servers, before, [vnf.stack])


@pytest.mark.parametrize("shape", ["server", "group"])
@pytest.mark.parametrize("status", ["SHUTOFF", "SUSPENDED"])
def test_a_server_that_was_stopped_is_not_updated(
    limits: Limits, vnf: Vnf, shape: str, status: str
) -> None:
    """It would not get active, and the undo would replace it."""
    vnf.instantiate(shape)
    before, stopped = vnf.servers(), max(vnf.servers())
    limits.stop(stopped, status)
    with pytest.raises(PlanError, match=rf"server {stopped}\) is {status}: expected .*ACTIVE"):
        vnf.change(vnf.package(shape, vnf.site.images[1]))
    assert (vnf.servers(), vnf.stacks()) == (before, [vnf.stack])
    vnf.change(vnf.package(shape, vnf.site.images[1]), BLUE_GREEN)


def test_a_stack_that_heat_rolls_back_by_itself_is_a_failure_and_not_a_success(
    limits: Limits, vnf: Vnf
) -> None:
    vnf.instantiate("server")
    vnf.heat.update(reference(vnf.live_stack()), {"disable_rollback": False}, existing=True)
    until(lambda: vnf.live_stack()["stack_status"] == "UPDATE_COMPLETE")
    before, servers = vnf.body(), vnf.servers()
    limits.room_for(resizes=0)
    with pytest.raises(UpdateFailedError, match="ROLLBACK_COMPLETE") as caught:
        vnf.change(vnf.package("server", vnf.site.images[1], limits.cores))
    assert "Everything is as before" in str(caught.value)
    assert (vnf.servers(), vnf.body()) == (servers, before)


@pytest.mark.parametrize(("allowed", "error"), [(1, ClusterError), (2, UpdateFailedError)])
def test_the_stacks_quota_is_reported_before_or_after_the_journal(
    front: Front, vnf: Vnf, allowed: int, error: type[Exception]
) -> None:
    vnf.instantiate("group")
    refused = raise_error(stack_quota(allowed))
    front.middlewares.append(Faults(Fault(refused, "POST", "*/stacks", nth=allowed)))
    with pytest.raises(error, match="maximum stacks per tenant"):
        vnf.change(vnf.package("group", vnf.site.images[1]), BLUE_GREEN)
    assert vnf.stacks() == [vnf.stack]


@BOTH
def test_a_stack_stuck_in_progress_ends_at_the_time_limit_and_is_put_back(
    front: Front, faults: CloudFaults, vnf: Vnf, upgrade_type: str
) -> None:
    vnf.instantiate("group")
    vnf.options = replace(vnf.options, timeout=60 if REAL else 1)
    faults.minute = 2.0
    faults.resources.append(ResourceFault(where=is_new, stuck=True))
    if REAL:
        front.middlewares.append(NeverComplete("IN_PROGRESS"))
    with pytest.raises(UpdateFailedError, match="_IN_PROGRESS after the time limit") as caught:
        vnf.change(vnf.package("group", vnf.site.images[1]), upgrade_type)
    assert "Everything is as before" in str(caught.value)
    assert set(vnf.servers().values()) == {vnf.site.images[0]}
    assert vnf.stacks() == [vnf.stack]


class Forgetful:
    """Heat, which takes the request for a second stack of the VNF and does nothing."""

    def __init__(self, heat: Heat) -> None:
        self._heat = heat
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._heat, name)

    def create(self, body: Any, **more: Any) -> None:
        if not body["stack_name"].startswith("vnf-"):
            self._heat.create(body, **more)
            return
        self.asked += 1
        assert self.asked < 500, "it asks for ever"


def test_a_stack_that_never_is_there_ends_at_the_time_limit(vnf: Vnf) -> None:
    vnf.instantiate("server")
    vnf.options = replace(vnf.options, timeout=1)
    request = vnf.request(vnf.package("server", vnf.site.images[1]), BLUE_GREEN)
    forgetful: Any = Forgetful(vnf.heat)
    with pytest.raises(UpdateFailedError, match=r"not there after the time limit.* as before"):
        change(request, forgetful, vnf.options)
    assert vnf.stacks() == [vnf.stack]


@BOTH
def test_a_token_that_expires_meanwhile_is_renewed(
    limits: Limits, vnf: Vnf, upgrade_type: str
) -> None:
    vnf.instantiate("group")
    first = limits.token()
    vnf.change(
        vnf.package("group", vnf.site.images[1]),
        upgrade_type,
        coordinate=lambda _: limits.expire_token(),
    )
    assert limits.token() != first
    assert set(vnf.servers().values()) == {vnf.site.images[1]}


REFUSED: dict[str, OpenStackApiError] = {
    "busy, as Heat without convergence": OpenStackApiError(
        409, "ActionInProgress", "Stack vnf already has an action (UPDATE) in progress."
    ),
    "overloaded": OpenStackApiError(503, "ServiceUnavailable", "try later"),
}


@BOTH
@pytest.mark.parametrize("name", REFUSED)
def test_a_request_to_a_busy_stack_is_retried(
    front: Front, vnf: Vnf, name: str, upgrade_type: str
) -> None:
    vnf.instantiate("group")
    method = "POST" if upgrade_type == BLUE_GREEN else "PUT"
    fault = Fault(raise_error(REFUSED[name]), method=method, path="*/stacks*", times=2)
    if upgrade_type == BLUE_GREEN:
        fault = replace(fault, nth=2)  # the first is the journal's
    faults = Faults(fault)
    front.middlewares.append(faults)
    vnf.change(vnf.package("group", vnf.site.images[1]), upgrade_type)
    assert len(faults.happened) == 2
    assert set(vnf.servers().values()) == {vnf.site.images[1]}


# --- before anything is written -------------------------------------------------------------------


WRONG: dict[str, tuple[Callable[[Vnf], Any], type[Exception], str]] = {
    "a new parameter without a default": (
        lambda vnf: vnf.package(
            "server",
            "image-2",
            **{
                "BaseHOT/simple/top.yaml": templates.hot("server")[
                    "BaseHOT/simple/top.yaml"
                ].replace("parameters:\n", "parameters:\n  zone: {type: string}\n")
            },
        ),
        PackageError,
        "zone have no default",
    ),
    "a template without the VDU's server": (
        lambda vnf: vnf.package(
            "server",
            "image-2",
            **{
                "BaseHOT/simple/top.yaml": templates.hot("server")[
                    "BaseHOT/simple/top.yaml"
                ].replace("VDU1", "VDU9")
            },
        ),
        PackageError,
        "expected one OS::Nova::Server for VDU1",
    ),
    "no template": (
        lambda vnf: vnf.package("server", "image-2", **{"BaseHOT/simple/top.yaml": "a: 1\n"}),
        PackageError,
        "expected heat_template_version and resources",
    ),
}


@BOTH
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_package_is_refused_before_anything_is_written(
    vnf: Vnf, name: str, upgrade_type: str
) -> None:
    vnf.instantiate("server")
    before = vnf.live_stack()
    make, error, words = WRONG[name]
    with pytest.raises(error, match=words):
        vnf.change(make(vnf), upgrade_type)
    assert vnf.live_stack() == before
    assert vnf.stacks() == [vnf.stack]


def test_a_stack_that_is_not_there_or_failed_is_refused(limits: Limits, vnf: Vnf) -> None:
    vnf.instantiate("server")
    request = vnf.request(vnf.package("server", vnf.site.images[1]))
    with pytest.raises(PlanError, match="there is no stack other"):
        change(replace(request, stack="other"), vnf.heat, vnf.options)
    limits.room_for(resizes=0)
    larger = {"parameters": {"flavor": limits.cores}}
    vnf.heat.update(reference(vnf.live_stack()), larger, existing=True)
    until(lambda: vnf.live_stack()["stack_status"] == "UPDATE_FAILED")
    with pytest.raises(PlanError, match=r"UPDATE_FAILED.*Quota exceeded for cores"):
        change(request, vnf.heat, vnf.options)


# --- interrupted ----------------------------------------------------------------------------------


class DiesAfterAnUpdate:
    """Heat for a process that is killed right after it has sent an update of a stack."""

    def __init__(self, heat: Heat, stack: str) -> None:
        self._heat, self._stack = heat, stack

    def __getattr__(self, name: str) -> Any:
        return getattr(self._heat, name)

    def update(self, stack: str, body: Any, **more: Any) -> None:
        self._heat.update(stack, body, **more)
        if stack == self._stack:
            raise Died


WRITES = ("create", "update", "delete")


def test_any_error_of_a_run_leaves_a_journal_that_is_free_at_once(vnf: Vnf) -> None:
    vnf.instantiate("group")

    def script(_: Call, /) -> None:
        raise RuntimeError("nobody thought of this")

    with pytest.raises(RuntimeError, match="nobody thought of this"):
        vnf.change(vnf.package("group", vnf.site.images[1]), coordinate=script)
    assert vnf.instance().status().record is not None
    assert vnf.instance().recover(back=True) is not None
    assert set(vnf.servers().values()) == {vnf.site.images[0]}


def test_a_journal_that_is_being_deleted_belongs_to_an_ended_change(
    faults: CloudFaults, vnf: Vnf
) -> None:
    vnf.instantiate("server")
    new = vnf.package("server", vnf.site.images[1])
    with pytest.raises(Died):
        change(vnf.request(new), Dying(vnf.heat, 1, WRITES), vnf.options)  # type: ignore[arg-type]
    faults.seconds = 0.2
    vnf.heat.delete(name_of(vnf.instance_id))
    assert vnf.instance(clock=in_an_hour()).recover(back=True) is None
    assert vnf.stacks() == [vnf.stack]


class TakenOverAtAnAddress:
    """Heat for a host that sleeps while it reads a VNFC's address, until another one has ended."""

    def __init__(self, vnf: Vnf) -> None:
        self._vnf, self._heat = vnf, vnf.heat

    def __getattr__(self, name: str) -> Any:
        return getattr(self._heat, name)

    def resource(self, stack: str, name: str) -> Any:
        if name == "CP1":
            self._vnf.instance(clock=in_an_hour()).recover(back=True)
        return self._heat.resource(stack, name)


def test_a_run_that_was_taken_over_runs_no_script_any_more(vnf: Vnf) -> None:
    vnf.instantiate("group")
    calls: list[Call] = []
    request = vnf.request(vnf.package("group", vnf.site.images[1]))
    asleep: Any = TakenOverAtAnAddress(vnf)
    with pytest.raises(LeaseLostError, match="another run has taken over"):
        change(request, asleep, vnf.options, coordinate=calls.append)
    assert calls == []
    assert set(vnf.servers().values()) == {vnf.site.images[0]}


def test_a_journal_of_another_request_is_undone_before_the_new_one_begins(vnf: Vnf) -> None:
    vnf.instantiate("group")
    first = vnf.package("group", vnf.site.images[1], vnf.site.flavors[1])
    second_member = plan_change(vnf.request(first), vnf.heat).steps[2].stack
    dying = DiesAfterAnUpdate(vnf.heat, second_member)
    with pytest.raises(Died):
        change(vnf.request(first), dying, vnf.options)  # type: ignore[arg-type]
    record = vnf.instance().journal("").read()
    assert record is not None
    assert (record.phase, record.done) == (Phase.UPDATE, 2)
    undone = vnf.instance(clock=in_an_hour()).recover(goal=lambda: "another")
    assert undone is not None
    states = [result.state for result in undone.results]
    assert states == [StepState.UNDONE] * 3 + [StepState.NOT_STARTED] * 3 + [StepState.UNDONE]
    assert str(undone.results[-1].step.key).startswith("Script Scripts/old.py (old VNF, VDU1")
    vnf.change(vnf.package("group", vnf.site.images[1]))
    assert vnf.body().parameters["flavor"] == vnf.site.flavors[0]
