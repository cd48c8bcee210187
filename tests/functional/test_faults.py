"""Never half an update: every single fault at every request of the reference update."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

from tests.functional import matrix
from tests.functional.conftest import REAL
from tests.functional.matrix import FAULTS, WAYS, Point, Request

pytestmark = pytest.mark.skipif(bool(REAL), reason="faults are injected into the embedded cluster")

PROCESSES = 2

Play = Callable[[list[Point]], str]


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    """Processes with a cluster each."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, mp_context=context) as workers:
        yield workers


@pytest.fixture(scope="module")
def requests(pool: ProcessPoolExecutor) -> dict[str, list[Request]]:
    """The requests of each way that the update can go."""
    return dict(zip(WAYS, pool.map(matrix.record, WAYS), strict=True))


@pytest.fixture
def problems(pool: ProcessPoolExecutor) -> Play:
    """Plays points and tells what contradicts the promise."""

    def play(points: list[Point]) -> str:
        shares = [points[start::PROCESSES] for start in range(PROCESSES)]
        played = pool.map(matrix.play, shares)
        return "\n".join(text for share in played for found in share for text in found)

    return play


@pytest.mark.parametrize("fault", FAULTS)
def test_the_promise_holds_wherever_a_fault_hits_an_update(
    fault: str, requests: dict[str, list[Request]], problems: Play
) -> None:
    points = matrix.points("done", requests)[fault]
    assert len(points) > 25
    assert not problems(points)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_promise_holds_wherever_a_fault_hits_the_undo_of_an_update(
    fault: str, requests: dict[str, list[Request]], problems: Play
) -> None:
    points = matrix.points("undone", requests)[fault]
    assert len(points) > (20 if matrix.COMPLETE else 10)
    assert not problems(points)
