"""A change is never left half done: every fault at every request of a reference change."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.functional import matrix
from tests.functional.conftest import REAL
from tests.functional.matrix import FAULTS, Request, Workers
from tests.functional.reference_change import CHANGES

pytestmark = pytest.mark.skipif(bool(REAL), reason="faults are injected into the embedded cluster")

Requests = dict[str, dict[str, list[Request]]]


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    """Yield worker processes, each with a cluster of its own."""
    with Workers.ready() as ready:
        yield ready


@pytest.fixture(scope="module")
def requests(workers: Workers) -> Requests:
    """The requests of each strategy, for each outcome of the change."""
    return {reference_name: workers.requests(reference_name) for reference_name in CHANGES}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_promise_holds_wherever_a_fault_hits_a_change_or_its_undo(
    fault: str, requests: Requests, workers: Workers
) -> None:
    points = [
        [
            point
            for way in matrix.WAYS
            for point in matrix.points(reference_name, way, requests[reference_name])[fault]
        ]
        for reference_name in CHANGES
    ]
    assert min(map(len, points)) > (40 if matrix.COMPLETE else 2)
    assert not workers.problems([point for of_one in points for point in of_one])
