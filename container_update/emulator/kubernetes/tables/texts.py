# SPDX-License-Identifier: Apache-2.0
"""The texts in cells; ages are shown with fewer digits the older an object is, as kubectl does."""

from __future__ import annotations

from typing import Any

from container_update.emulator import clock
from container_update.emulator.json_type import Json

NONE = "<none>"


def age(item: Json) -> str:
    """Return the time since the object was created."""
    return age_of(item["metadata"].get("creationTimestamp"))


def join(values: Any) -> str:
    """Return the values with commas between them; '<none>' without any."""
    return ",".join(map(str, values)) or NONE


def label_text(labels: Json | None) -> str:
    """Return labels as 'a=b,c=d', ordered by key."""
    return join(f"{key}={value}" for key, value in sorted((labels or {}).items()))


_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


def age_of(stamp: str | None) -> str:
    """Return the time since a timestamp; '<unknown>' for None."""
    if not stamp:
        return "<unknown>"
    return duration(int((clock.now() - clock.parse(stamp)).total_seconds()))


def between(start: str | None, end: str | None) -> str:
    """Return the time from *start* to *end*; '<unknown>' if either is None."""
    if not start or not end:
        return "<unknown>"
    return duration(int((clock.parse(end) - clock.parse(start)).total_seconds()))


_UNITS = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)
"""Up to which age, in which unit, and in which smaller unit the rest is shown."""


def duration(seconds: int) -> str:
    """Return a duration: 119 as '119s', 200 as '3m20s', 7200 as '120m', 200000 as '2d7h'."""
    if seconds < 0:
        return "0s" if seconds == -1 else "<invalid>"
    for below, unit, name, small, small_name in _UNITS:
        if seconds < below:
            rest = seconds % unit // small if small else 0
            return f"{seconds // unit}{name}" + (f"{rest}{small_name}" if rest else "")
    return f"{seconds // _YEAR}y"
