# SPDX-License-Identifier: Apache-2.0
"""A change is never left half done: every fault at every request to Keystone and Heat."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

from tests import forks
from tests.circles import Circle, in_circles
from tests.functional.stacks import matrix
from tests.functional.stacks.matrix import FAULTS, WAYS, Point, Request
from tests.functional.stacks.site import REAL

PROCESSES = 1 if REAL else 2

Play = Callable[[list[Point]], str]


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    """Yield processes that run points."""
    with ProcessPoolExecutor(PROCESSES, mp_context=forks.context()) as workers:
        yield workers


@pytest.fixture(scope="module")
def requests(pool: ProcessPoolExecutor) -> dict[str, list[Request]]:
    """The requests of a change, for each way; on a real cloud they differ from run to run."""
    if REAL:
        return {}
    return dict(zip(WAYS, pool.map(matrix.record, WAYS), strict=True))


@pytest.fixture
def problems(pool: ProcessPoolExecutor) -> Play:
    """Runs points and returns what contradicts the promise."""

    def run_points(points: list[Point]) -> str:
        shares = [points[start::PROCESSES] for start in range(PROCESSES)]
        results = pool.map(matrix.run_points, shares)
        return "\n".join(text for share in results for lines in share for text in lines)

    return run_points


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("way", WAYS)
@in_circles(*Circle)
def test_the_promise_holds_wherever_a_fault_hits_a_change(
    way: str, fault: str, circle: Circle, requests: dict[str, list[Request]], problems: Play
) -> None:
    if REAL:
        if circle is Circle.COMPLETE:
            pytest.skip("the second circle has the points of a real cloud")
        assert not problems([matrix.write_of_real_cloud(way, fault)])
        return
    assert len(requests[way]) > 50
    writes = [each for each in requests[way] if each.method != "GET" and not each.is_begin]
    assert len(writes) >= matrix.WRITES[way], "a real cloud has a fault at each of so many"
    points = matrix.points(way, requests[way], circle)[fault]
    assert points
    assert not problems(points)
