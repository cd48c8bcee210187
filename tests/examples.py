# SPDX-License-Identifier: Apache-2.0
"""Random examples, of which each circle has its number."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.circles import Circle

FACTOR = {Circle.DEFAULT: 0.3, Circle.THOROUGH: 1, Circle.COMPLETE: 10}


def examples(number: int, circle: Circle) -> settings:
    """Return settings with so many examples in the thorough circle: always the same ones, except
    where every point is asked for."""
    return settings(
        max_examples=max(1, int(number * FACTOR[circle])),
        deadline=None,
        derandomize=circle is not Circle.COMPLETE,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
