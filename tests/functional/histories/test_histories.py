# SPDX-License-Identifier: Apache-2.0
"""After any history of two hosts a rollback or a resume reaches wholly old or wholly new.

Random operations of two hosts on one VNF, with crashes, pauses, late requests, lost answers and
clocks that differ. A success that was reported was true, and nothing is left in the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.circles import Circle, in_circles
from tests.examples import examples
from tests.functional.conftest import REAL
from tests.functional.histories.history import History
from tests.functional.histories.packages import Family
from tests.functional.histories.processes import LATE, TROUBLE, Event, Process, processes
from tests.functional.reference_update import Lab

pytestmark = pytest.mark.skipif(bool(REAL), reason="looks into the embedded cluster")

AT_ONCE = 5
"""So many histories are one example, each of a VNF of its own: most of their time is waiting."""

SKEWS = (-3600.0, -20.0, 0.0, 20.0, 3600.0)
NUMBERS = st.one_of(st.integers(1, 16), st.integers(9, 12))
"""Of writes; most runs end in the second part: the journal is removed, the lease released."""


@st.composite
def events(draw: st.DrawFn, family: Family, *operations: str) -> Event:
    return Event(
        host=draw(st.integers(0, 1)),
        operation=draw(st.sampled_from(operations)),
        target=draw(st.sampled_from(family.targets)),
        trouble=draw(st.sampled_from((*TROUBLE, *LATE, *LATE))),
        nth=draw(NUMBERS),
        overtaken=draw(st.integers(1, 16)),
        is_known_dead=draw(st.sampled_from([True, True, False])),
    )


@dataclass(frozen=True)
class Drawn:
    """What is to happen to one VNF."""

    family: Family
    events: tuple[Event, ...]
    skews: tuple[float, float]
    back: bool

    def run(self, lab: Lab, known: dict[int, Process]) -> list[str]:
        """Let it happen; return how each operation ended, in a word."""
        history = History(lab, known, self.family, self.skews)
        history.run(self.events, back=self.back)
        return [line.partition(" -> ")[2].partition(":")[0] for line in history.told]


@st.composite
def histories(draw: st.DrawFn) -> Drawn:
    """Draw packages and a few rounds: somebody begins something, others see to what it left."""
    family = Family(draw(st.booleans()))
    begins = events(family, *family.beginnings)
    goes_on = events(family, "rollback", "resume", "rollback", "resume", "update", "status")
    happening: list[Event] = []
    for _ in range(draw(st.integers(1, 2))):
        happening += [draw(begins), *draw(st.lists(goes_on, min_size=1, max_size=2))]
    skews = draw(st.tuples(st.sampled_from(SKEWS), st.sampled_from(SKEWS)))
    return Drawn(family, tuple(happening), skews, draw(st.booleans()))


@pytest.fixture(scope="module")
def known() -> Iterator[dict[int, Process]]:
    with processes() as by_number:
        yield by_number


@in_circles(Circle.THOROUGH, Circle.COMPLETE)
def test_after_any_history_the_vnf_is_wholly_old_or_wholly_new(
    lab: Lab, known: dict[int, Process], circle: Circle
) -> None:
    drawn = st.lists(histories(), min_size=AT_ONCE, max_size=AT_ONCE)
    examples(6, circle)(given(drawn=drawn)(is_wholly_old_or_wholly_new))(lab, known)


def is_wholly_old_or_wholly_new(lab: Lab, known: dict[int, Process], drawn: list[Drawn]) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = [pool.submit(one.run, lab, known) for one in drawn]
    problems = [str(error) for future in running if (error := future.exception())]
    for future in running:
        for result in future.result() if not future.exception() else ():
            event(result)
    assert problems == [], "\n\n".join(problems)
