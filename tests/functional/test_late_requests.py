# SPDX-License-Identifier: Apache-2.0
"""What a host that lost the lock had sent changes nothing, whenever it arrives."""

from __future__ import annotations

import pytest

from tests.circles import Circle, in_circles
from tests.functional import late_requests, matrix
from tests.functional.late_requests import AFTERWARDS, LatePoint
from tests.functional.upgrade_types import BLUE_GREEN


@pytest.mark.parametrize("reference_name", late_requests.STEPS)
@in_circles(Circle.THOROUGH, Circle.COMPLETE)
def test_a_late_request_of_a_killed_host_changes_nothing(
    reference_name: str, circle: Circle
) -> None:
    late = late_requests.points(reference_name, matrix.record(reference_name, "done"), circle)
    assert len(late) > (300 if circle is Circle.COMPLETE else 3)
    assert not late_requests.run_late_points(late)


@pytest.mark.parametrize("reference_name", ["update", BLUE_GREEN])
@in_circles(Circle.THOROUGH, Circle.COMPLETE)
def test_a_host_that_was_paused_for_longer_than_its_lease_reports_no_success(
    reference_name: str, circle: Circle
) -> None:
    requests = late_requests.writes(matrix.record(reference_name, "done"))
    late = [
        LatePoint(reference_name, "done", "late", request, then, before, is_paused=True)
        for number, request in enumerate(requests)
        for then in late_requests.THEN
        for before in (2, AFTERWARDS)
        if circle is Circle.COMPLETE or number % 6 == (0 if before == AFTERWARDS else 3)
    ]
    assert len(late) > 6
    assert not late_requests.run_late_points(late)
