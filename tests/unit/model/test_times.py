# SPDX-License-Identifier: Apache-2.0
"""Times of RFC 3339, with every Python."""

from __future__ import annotations

import pytest

from container_update.model.times import time_of

TIMES = {
    "2026-01-02T03:04:05Z": "2026-01-02T03:04:05+00:00",
    "2026-01-02T03:04:05.5Z": "2026-01-02T03:04:05.500000+00:00",
    "2026-01-02T03:04:05.123456Z": "2026-01-02T03:04:05.123456+00:00",
    "2026-01-02T03:04:05.123456789Z": "2026-01-02T03:04:05.123456+00:00",
    "2026-01-02T03:04:05.25+01:30": "2026-01-02T03:04:05.250000+01:30",
}


@pytest.mark.parametrize(("text", "moment"), TIMES.items())
def test_a_time_is_read_with_any_number_of_digits(text: str, moment: str) -> None:
    assert time_of(text).isoformat() == moment


@pytest.mark.parametrize("text", ["", "soon", "2026-13-02T03:04:05Z"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"format|month"):
        time_of(text)
