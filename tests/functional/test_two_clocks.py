# SPDX-License-Identifier: Apache-2.0
"""Two hosts whose clocks differ never both change a CNF, and never both report success."""

from __future__ import annotations

import pytest

from tests.circles import Circle, in_circles
from tests.functional import matrix, two_clocks
from tests.functional.upgrade_types import BLUE_GREEN


@pytest.mark.parametrize("reference_name", ["update", BLUE_GREEN])
@in_circles(Circle.THOROUGH, Circle.COMPLETE)
def test_a_host_is_let_in_only_when_the_other_one_is_gone_whatever_the_clocks_say(
    reference_name: str, circle: Circle
) -> None:
    points = two_clocks.points(reference_name, matrix.record(reference_name, "done"), circle)
    assert len(points) > (300 if circle is Circle.COMPLETE else 6)
    assert not two_clocks.run_clock_points(points)
