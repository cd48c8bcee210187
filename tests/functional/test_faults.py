"""Never half an update: every single fault at every request of the reference update."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.functional import matrix
from tests.functional.conftest import REAL
from tests.functional.matrix import FAULTS, Players, Request

pytestmark = pytest.mark.skipif(bool(REAL), reason="faults are injected into the embedded cluster")


@pytest.fixture(scope="module")
def players() -> Iterator[Players]:
    """Processes with a cluster each."""
    with Players.ready() as ready:
        yield ready


@pytest.fixture(scope="module")
def requests(players: Players) -> dict[str, list[Request]]:
    """The requests of each way that the update can go."""
    return players.requests("update")


@pytest.mark.parametrize("fault", FAULTS)
def test_the_promise_holds_wherever_a_fault_hits_an_update(
    fault: str, requests: dict[str, list[Request]], players: Players
) -> None:
    points = matrix.points("update", "done", requests)[fault]
    assert len(points) > (25 if matrix.COMPLETE else 6)
    assert not players.problems(points)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_promise_holds_wherever_a_fault_hits_the_undo_of_an_update(
    fault: str, requests: dict[str, list[Request]], players: Players
) -> None:
    points = matrix.points("update", "undone", requests)[fault]
    assert len(points) > (20 if matrix.COMPLETE else 2)
    assert not players.problems(points)
