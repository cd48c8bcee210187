# SPDX-License-Identifier: Apache-2.0
"""Whatever Keystone or Heat answers to whichever request of a verb: it ends, in time, with an error
of ours or without one, in little memory, and the VNF can be brought to one of its two states."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.circles import Circle, in_circles
from tests.functional.change_vnfpkg.dying import Died, Dying
from tests.functional.stacks.clocks import in_an_hour
from tests.functional.stacks.conftest import OPTIONS, Front
from tests.functional.stacks.site import REAL, Site
from tests.functional.stacks.verbs import VERBS, StackVerb
from tests.functional.stacks.vnf import Vnf
from tests.hostile_server import HOSTILE, SECONDS, Attack, attacks
from tests.internals.core import NoWayBackError
from tests.internals.stacks import Heat, connect

pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")

HASTY = (
    replace(OPTIONS, timeout=60, undo_timeout=60, request_timeout=10, retry_seconds=3)
    if REAL
    else replace(
        OPTIONS, timeout=4, undo_timeout=4, request_timeout=1, retry_seconds=0.5, lease_seconds=3
    )
)
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
    Circle.THOROUGH: 1 if REAL else len(HOSTILE) // 3,
    Circle.COMPLETE: len(HOSTILE) * max(REQUESTS.values()),
}
"""How many answers at how many requests are tried for each verb; one takes minutes of a real
cloud."""
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
    verb: StackVerb, circle: Circle, front: Front, heat: Heat, site: Site, tmp_path: Path
) -> None:
    if REAL and circle is Circle.COMPLETE:
        pytest.skip("the other circles have the points of a real cloud")
    points = attacks(POINTS[circle], ALL.index(verb), REQUESTS[verb.name])
    wrong = [
        fault
        for number, attack in enumerate(points)
        for fault in tried(verb, front, Vnf(heat, tmp_path / str(number), site, HASTY), attack)
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
    instance = replace(vnf, options=OPTIONS).instance(clock=in_an_hour())
    try:
        instance.recover(back=True)
    except NoWayBackError:
        instance.recover()


def tried(verb: StackVerb, front: Front, vnf: Vnf, attack: Attack) -> Iterator[str]:
    """Yield what goes wrong where requests of a verb have a hostile answer."""
    before = _arranged(verb, vnf)

    def act(begin: Callable[[], None]) -> None:
        with connect(auth=front.auth(), options=HASTY) as heat:
            begin()
            verb.act(vnf, before, heat)

    wrong, raised = attack.on(front.middlewares, act, 600 if REAL else SECONDS)
    _ended(vnf)
    found = [state.differences(vnf, before) for state in (verb.old, verb.new)]
    if [] not in found:
        wrong.append(str(found))
    vnf.leave_real_cloud()
    yield from (f"{verb.name}: {attack}: {text} after {raised}" for text in wrong)
