# SPDX-License-Identifier: Apache-2.0
"""An operation is never left half done: every fault at every request of each reference."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import pytest

from tests.circles import Circle, in_circles
from tests.functional import matrix
from tests.functional.matrix import ROWS, Request, Row, Workers
from tests.functional.real import REAL, one_of
from tests.functional.reference_surroundings import BEHIND_MIRROR, images_mirrored

Requests = Callable[[str], dict[str, list[Request]]]


ON_REAL_ONES = 5
"""On a real cluster, where a row takes half a minute, the default circle has one of so many."""


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    """Worker processes with a server each."""
    with Workers.ready() as ready:
        yield ready


@pytest.fixture(scope="module")
def requests(workers: Workers) -> Requests:
    """Return what records the requests of a reference, for each way, once."""
    return functools.cache(workers.requests)


@pytest.mark.parametrize("row", one_of(ON_REAL_ONES, ROWS), ids=str)
@in_circles(*Circle)
def test_the_promise_holds_wherever_a_fault_hits(
    row: Row, circle: Circle, requests: Requests, workers: Workers
) -> None:
    with images_mirrored(REAL if row.reference_name == BEHIND_MIRROR else None):
        points = row.points(requests(row.reference_name), circle)
        assert len(points) >= (row.least * len(matrix.FAULTS) if circle is Circle.COMPLETE else 1)
        assert not workers.problems(points)
