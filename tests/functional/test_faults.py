"""An update is never left half done: every fault at every request of the reference update."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.functional import matrix
from tests.functional.conftest import REAL
from tests.functional.matrix import FAULTS, WAYS, Request, Workers
from tests.functional.reference_surroundings import REFUSED, SURROUNDINGS

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


@pytest.mark.parametrize("reference_name", SURROUNDINGS)
@pytest.mark.parametrize("way", WAYS)
def test_the_promise_holds_whatever_is_special_around_an_update(
    reference_name: str, way: str, workers: Workers
) -> None:
    points = matrix.points(reference_name, way, workers.requests(reference_name))
    chosen = [point for of_one in points.values() for point in of_one]
    assert len(chosen) > (350 if matrix.COMPLETE else 5)
    assert not workers.problems(chosen)


@pytest.mark.parametrize("reference_name", REFUSED)
def test_an_update_whose_journal_a_quota_refuses_leaves_nothing_behind(
    reference_name: str, workers: Workers
) -> None:
    requests = workers.requests(reference_name)["undone"]
    points = matrix.points(reference_name, "undone", {"done": [], "undone": requests})
    chosen = [point for of_one in points.values() for point in of_one]
    assert len(chosen) > (150 if matrix.COMPLETE else 10)
    assert not workers.problems(chosen)
