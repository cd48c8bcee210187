# SPDX-License-Identifier: Apache-2.0
"""Whatever Keystone or Heat answers to whichever request of a verb: it ends, in time, with an error
of ours or without one, in little memory, and the VNF can be brought to one of its two states."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from container_update.emulator.faults import Fault, Faults
from container_update.emulator.heat import EmbeddedOpenStack
from container_update.model.errors import ContainerUpdateError, NoWayBackError
from container_update.openstack.client import Heat, connect
from tests.circles import Circle, in_circles
from tests.functional.change_vnfpkg.dying import Died, Dying
from tests.functional.stacks.clocks import in_an_hour
from tests.functional.stacks.conftest import OPTIONS
from tests.functional.stacks.site import REAL, Site
from tests.functional.stacks.verbs import VERBS, StackVerb
from tests.functional.stacks.vnf import Vnf
from tests.hostile_server import HOSTILE, MEMORY, growth

pytestmark = pytest.mark.skipif(bool(REAL), reason="answers in place of the embedded cloud")

HASTY = replace(
    OPTIONS, timeout=4, undo_timeout=4, request_timeout=1, retry_seconds=0.5, lease_seconds=3
)
DEADLINE = 120
"""Seconds after which a verb counts as one that never ends: it takes ten of its own at most."""
REQUESTS = {
    "Heat: change, rolling": 140,
    "Heat: change, Blue-Green": 85,
    "Heat: instantiate": 50,
    "Heat: heal": 60,
    "Heat: scale": 55,
    "Heat: terminate": 45,
    "Heat: status": 10,
    "Heat: resume": 50,
    "Heat: rollback": 50,
}
"""Of each verb, about; the first two are Keystone's."""
POINTS = {
    Circle.DEFAULT: 1,
    Circle.THOROUGH: len(HOSTILE) * 2 // 3,
    Circle.COMPLETE: len(HOSTILE) * max(REQUESTS.values()),
}
"""How many answers at how many requests are tried for each verb."""
WRITES = ("create", "update", "delete", "mark_unhealthy")
(SCALE,) = (verb for verb in VERBS if verb.name == "Heat: scale")


def _ending(name: str, end: Any) -> StackVerb:
    """Return what ends, or shows, a scaling that was killed in its middle."""

    def act(vnf: Vnf, _: set[str], heat: Heat) -> Any:
        return end(replace(vnf, heat=heat).instance(clock=in_an_hour()))

    return StackVerb(f"Heat: {name}", act, old=SCALE.old, new=SCALE.new)


ENDINGS = (
    _ending("status", lambda instance: instance.status()),
    _ending("resume", lambda instance: instance.recover()),
    _ending("rollback", lambda instance: instance.recover(back=True)),
)
ALL = (*VERBS, *ENDINGS)


@pytest.mark.parametrize("verb", ALL, ids=lambda verb: verb.name)
@in_circles(*Circle)
def test_no_answer_makes_a_verb_hang_or_fail_with_what_is_not_ours(
    verb: StackVerb, circle: Circle, cloud: EmbeddedOpenStack, heat: Heat, tmp_path: Path
) -> None:
    names = list(HOSTILE)
    shift = ALL.index(verb)
    wrong = [
        fault
        for number in range(POINTS[circle])
        for fault in tried(
            verb,
            cloud,
            Vnf(heat, tmp_path / str(number), Site(), HASTY),
            names[(shift + number * 5) % len(names)],
            nth=1 + (shift * 7 + number * 11) % REQUESTS[verb.name],
            times=1 + (number % 3 == 2) * 10**6,
        )
    ]
    assert wrong == []


def _arranged(verb: StackVerb, vnf: Vnf) -> set[str]:
    """Bring the VNF to where the verb has something to do; return its servers."""
    vnf.folder.mkdir()
    if verb.instantiates:
        return set()
    vnf.instantiate("group")
    before = set(vnf.servers())
    if verb in ENDINGS:
        with suppress(Died):
            SCALE.act(vnf, before, Dying(vnf.heat, 3, WRITES))
    return before


def _ended(vnf: Vnf) -> None:
    """Bring the VNF to one of its states."""
    instance = vnf.instance(clock=in_an_hour())
    try:
        instance.recover(back=True)
    except NoWayBackError:
        instance.recover()


def tried(
    verb: StackVerb, cloud: EmbeddedOpenStack, vnf: Vnf, answer: str, nth: int, times: int
) -> Iterator[str]:
    """Yield what goes wrong where requests from the nth on have a hostile answer."""
    before = _arranged(verb, vnf)
    raised: list[BaseException] = []
    what = f"{verb.name}: answer {nth} {answer}, {times} times"

    def act() -> None:
        try:
            with connect(auth=cloud.auth(), options=HASTY) as heat:
                cloud.middlewares.append(faults)
                verb.act(vnf, before, heat)
        except Exception as error:  # noqa: BLE001, what is not ours is what is looked for
            raised.append(error)

    faults = Faults(Fault(HOSTILE[answer], nth=nth, times=times))
    thread = threading.Thread(target=act, daemon=True)
    with growth() as grown:
        thread.start()
        thread.join(DEADLINE)
    cloud.middlewares.remove(faults)
    if thread.is_alive():
        yield f"{what}: goes on after {DEADLINE} seconds"
        return
    yield from (
        f"{what}: {type(error).__name__}: {error}"
        for error in raised
        if not isinstance(error, ContainerUpdateError)
    )
    if grown.bytes > MEMORY:
        yield f"{what}: {grown.bytes} bytes of memory"
    _ended(vnf)
    found = [state.differences(vnf, before) for state in (verb.old, verb.new)]
    if [] not in found:
        yield f"{what}: {found} after {raised}"
