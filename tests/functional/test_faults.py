# SPDX-License-Identifier: Apache-2.0
"""An operation is never left half done: every fault at every request of each reference."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.circles import Circle, in_circles
from tests.functional import matrix
from tests.functional.conftest import REAL
from tests.functional.matrix import ROWS, Request, Row, Workers

pytestmark = pytest.mark.skipif(bool(REAL), reason="faults are injected into the embedded cluster")

Requests = dict[str, dict[str, list[Request]]]


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    """Worker processes with a cluster each."""
    with Workers.ready() as ready:
        yield ready


@pytest.fixture(scope="module")
def requests(workers: Workers) -> Requests:
    """The requests of each reference, for each way."""
    names = dict.fromkeys(row.reference_name for row in ROWS)
    return {name: workers.requests(name) for name in names}


@pytest.mark.parametrize("row", ROWS, ids=str)
@in_circles(*Circle)
def test_the_promise_holds_wherever_a_fault_hits(
    row: Row, circle: Circle, requests: Requests, workers: Workers
) -> None:
    points = row.points(requests[row.reference_name], circle)
    assert len(points) >= (row.least * len(matrix.FAULTS) if circle is Circle.COMPLETE else 1)
    assert not workers.problems(points)
