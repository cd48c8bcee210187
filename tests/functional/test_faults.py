"""An update is never left half done: every fault at every request of the reference update."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.functional import matrix
from tests.functional.conftest import REAL
from tests.functional.matrix import FAULTS, Request, Workers

pytestmark = pytest.mark.skipif(bool(REAL), reason="faults are injected into the embedded cluster")


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    """Worker processes with a cluster each."""
    with Workers.ready() as ready:
        yield ready


@pytest.fixture(scope="module")
def requests(workers: Workers) -> dict[str, list[Request]]:
    """The requests of the update, for each way."""
    return workers.requests("update")


@pytest.mark.parametrize("fault", FAULTS)
def test_the_promise_holds_wherever_a_fault_hits_an_update(
    fault: str, requests: dict[str, list[Request]], workers: Workers
) -> None:
    points = matrix.points("update", "done", requests)[fault]
    assert len(points) > (25 if matrix.COMPLETE else 6)
    assert not workers.problems(points)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_promise_holds_wherever_a_fault_hits_the_undo_of_an_update(
    fault: str, requests: dict[str, list[Request]], workers: Workers
) -> None:
    points = matrix.points("update", "undone", requests)[fault]
    assert len(points) > (20 if matrix.COMPLETE else 2)
    assert not workers.problems(points)
