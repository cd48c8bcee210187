# SPDX-License-Identifier: Apache-2.0
"""Every verb on Heat keeps the promises: one test a promise, the same scenario a verb."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from container_update import (
    CancelToken,
    ContainerUpdateError,
    Plan,
    Step,
    StepResult,
    UpdateFailedError,
    UpdateInProgressError,
    UpdateInterruptedError,
)
from container_update.emulator.heat import CloudFaults
from tests.circles import Circle, in_circles
from tests.functional.change_vnfpkg.dying import Died, Dying
from tests.functional.stacks.clocks import in_an_hour
from tests.functional.stacks.limits import Limits
from tests.functional.stacks.verbs import VERBS, StackVerb
from tests.functional.stacks.vnf import Vnf, until
from tests.functional.verbs import PROMISES
from tests.internals.core import Event, NoWayBackError, main

WRITES = ("create", "update", "delete", "mark_unhealthy")


def promise(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for each verb that keeps this promise."""
    assert name in PROMISES
    keep = [verb for verb in VERBS if verb.keeps(name)]
    return pytest.mark.parametrize("verb", keep, ids=[verb.name for verb in keep])


def arranged(verb: StackVerb, vnf: Vnf) -> set[str]:
    """Bring the VNF to where the verb has something to do; return its servers."""
    if verb.instantiates:
        return set()
    vnf.instantiate("group")
    return set(vnf.servers())


@promise("lease")
def test_meanwhile_no_other_operation_of_the_instance_begins(verb: StackVerb, vnf: Vnf) -> None:
    before, refused = arranged(verb, vnf), list[ContainerUpdateError]()

    def terminate(event: Event) -> None:
        if isinstance(event, Step) and not refused:
            try:
                vnf.terminate()
            except ContainerUpdateError as error:
                refused.append(error)

    verb.act(vnf, before, vnf.heat, progress=terminate)
    assert [type(error) for error in refused] == [UpdateInProgressError]
    assert verb.new.differences(vnf, before) == []


@pytest.mark.parametrize("name", ["resume", "rollback"])
def test_the_command_ends_what_the_service_has_left(
    name: str, vnf: Vnf, os_cloud: str, limits: Limits
) -> None:
    (verb,) = (each for each in VERBS if each.name == "Heat: scale")
    before, out = arranged(verb, vnf), io.StringIO()
    limits.room_for(servers=0)
    with pytest.raises(UpdateFailedError):
        verb.act(vnf, before, vnf.heat, leave_failed=True)
    limits.lift()
    which = (
        "--stack",
        vnf.stack,
        "--os-cloud",
        os_cloud,
        "--instance-id",
        vnf.instance_id,
        "--no-journal-key",
    )  # the service signs with a key of its own
    assert main(["heat", name, *which], out) == 0
    assert (verb.old if name == "rollback" else verb.new).differences(vnf, before) == []


NUMBERS = {Circle.DEFAULT: (2, 3), Circle.THOROUGH: (1, 2, 3, 4, 5, 6, 7, 9, 12)}
"""After which of its writes a run is killed."""


@promise("journal")
@pytest.mark.parametrize("back", [False, True], ids=["resume", "rollback"])
@in_circles(Circle.DEFAULT, Circle.THOROUGH)
def test_killed_after_any_write_it_is_finished_or_undone(
    verb: StackVerb, back: bool, circle: Circle, vnf: Vnf
) -> None:
    for number in NUMBERS[circle]:
        before = arranged(verb, vnf)
        dying: Any = Dying(vnf.heat, number, WRITES)
        with suppress(Died):
            verb.act(vnf, before, dying)
        instance = vnf.instance(clock=in_an_hour())
        states = [verb.new, verb.old]
        if dying.is_dead:
            try:
                outcome = instance.recover(back=back)
                states = states if outcome is None else [verb.old if back else verb.new]
            except NoWayBackError:
                assert not verb.keeps("undo") or "Blue-Green" in verb.name
                instance.recover()
                states = [verb.new]
        found = [state.differences(vnf, before) for state in states]
        assert [] in found, f"killed after write {number}: {found}"
        vnf.terminate()
        if not dying.is_dead:
            break


@promise("undo")
def test_stopped_at_its_last_step_it_puts_everything_back(
    verb: StackVerb, vnf: Vnf, faults: CloudFaults
) -> None:
    before, cancel, left = arranged(verb, vnf), CancelToken(), set[Any]()
    soon = faults.seconds

    def stop(event: Event) -> None:
        if isinstance(event, Plan):
            left.update(step.place for step in event.steps)
        if isinstance(event, StepResult):
            left.discard(event.step.place)
        if isinstance(event, Step | StepResult) and len(left) <= 1 and not cancel:
            faults.seconds = 0.3  # the step has not ended when it is looked at
            cancel.request("by the test")
        elif isinstance(event, StepResult):
            faults.seconds = soon

    with pytest.raises(UpdateInterruptedError, match="Everything is as before"):
        verb.act(vnf, before, vnf.heat, cancel=cancel, progress=stop)
    assert verb.old.differences(vnf, before) == []


@promise("writes of others")
def test_what_others_change_meanwhile_is_not_written_over(verb: StackVerb, vnf: Vnf) -> None:
    before, changed = arranged(verb, vnf), list[Event]()

    def scale(event: Event) -> None:
        if isinstance(event, Step) and not changed:
            changed.append(event)
            vnf.heat.update(vnf.stack, {"parameters": {"size": 4}}, existing=True)
            until(lambda: vnf.heat.stack(vnf.stack)["stack_status"] == "UPDATE_COMPLETE")  # type: ignore[index]

    in_place = "Blue-Green" not in verb.name
    with suppress(UpdateFailedError):
        verb.act(vnf, before, vnf.heat, progress=scale)
        assert not in_place, "it ends, and the message names the stack"
    assert len(vnf.servers()) == (4 if in_place else 2)


def refuse_a_server(verb: StackVerb, vnf: Vnf, limits: Limits) -> str:
    """Let Heat fail at a server of the verb; return what its reason has in it."""
    if verb.replaces_servers:
        limits.room_for(servers=0)
        return "Quota exceeded for"
    unknown = limits.unknown_image()
    vnf.site = replace(vnf.site, images=(vnf.site.images[0], unknown))
    return f"Error validating value '{unknown}'"


@promise("fails early")
def test_a_server_that_heat_cannot_start_ends_it_with_heats_reason(
    verb: StackVerb, vnf: Vnf, limits: Limits
) -> None:
    before, good = arranged(verb, vnf), vnf.site
    reason = refuse_a_server(verb, vnf, limits)
    with pytest.raises(UpdateFailedError, match=reason):
        verb.act(vnf, before, vnf.heat)
    vnf.site = good
    if verb.keeps("undo"):
        assert verb.old.differences(vnf, before) == []
    else:
        limits.lift()
        vnf.instance().recover()
        assert verb.new.differences(vnf, before) == []


@promise("JSON")
def test_it_is_a_document_and_its_exit_status_says_what_became_of_it(
    verb: StackVerb, vnf: Vnf, os_cloud: str
) -> None:
    before, out = arranged(verb, vnf), io.StringIO()
    packages = (vnf.old, vnf.package("group", vnf.site.images[1]))
    upgrade_type = "rolling" if "rolling" in verb.name else "Blue-Green"
    which = ("--stack", vnf.stack, "--os-cloud", os_cloud, "--upgrade-type", upgrade_type)
    status = main(["heat", "change", *packages, *which, "--vdu", "VDU1", "-o", "json"], out)
    assert (status, json.loads(out.getvalue())["kind"]) == (0, "Outcome")
    assert verb.new.differences(vnf, before) == []


@promise("records")
def test_it_returns_exactly_the_live_servers(verb: StackVerb, vnf: Vnf) -> None:
    outcome = verb.act(vnf, arranged(verb, vnf), vnf.heat)
    assert {vnfc.pod_name for vnfc in outcome.vnfcs} == set(vnf.servers())
