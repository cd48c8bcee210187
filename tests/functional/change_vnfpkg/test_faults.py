"""Never half a change: every single fault at every request of a reference change of the package."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.functional import matrix
from tests.functional.conftest import REAL
from tests.functional.matrix import FAULTS, Players, Request
from tests.functional.reference_change import CHANGES

pytestmark = pytest.mark.skipif(bool(REAL), reason="faults are injected into the embedded cluster")

Requests = dict[str, dict[str, list[Request]]]


@pytest.fixture(scope="module")
def players() -> Iterator[Players]:
    """Processes with a cluster each."""
    with Players.ready() as ready:
        yield ready


@pytest.fixture(scope="module")
def requests(players: Players) -> Requests:
    """The requests of each strategy, of each way that the change can go."""
    return {what: players.requests(what) for what in CHANGES}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_promise_holds_wherever_a_fault_hits_a_change_or_its_undo(
    fault: str, requests: Requests, players: Players
) -> None:
    points = [
        [point for way in matrix.WAYS for point in matrix.points(what, way, requests[what])[fault]]
        for what in CHANGES
    ]
    assert min(map(len, points)) > (40 if matrix.COMPLETE else 2)
    assert not players.problems([point for of_one in points for point in of_one])
