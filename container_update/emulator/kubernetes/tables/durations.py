"""Ages as kubectl prints them: fewer digits the older a thing is."""

from __future__ import annotations

from container_update.emulator import clock

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


def age(stamp: str | None) -> str:
    """The time since *stamp*; '<unknown>' where there is none."""
    if not stamp:
        return "<unknown>"
    return spell(int((clock.now() - clock.parse(stamp)).total_seconds()))


def between(start: str | None, end: str | None) -> str:
    """The time from *start* to *end*; '<unknown>' where either is missing."""
    if not start or not end:
        return "<unknown>"
    return spell(int((clock.parse(end) - clock.parse(start)).total_seconds()))


_FORMS = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)
"""Up to which age, in which unit, and in which smaller unit the rest is told."""


def spell(seconds: int) -> str:
    """119 -> '119s', 200 -> '3m20s', 7200 -> '120m', 10801 -> '3h', 200000 -> '2d7h'."""
    if seconds < 0:
        return "0s" if seconds == -1 else "<invalid>"
    for below, unit, name, small, small_name in _FORMS:
        if seconds < below:
            rest = seconds % unit // small if small else 0
            return f"{seconds // unit}{name}" + (f"{rest}{small_name}" if rest else "")
    return f"{seconds // _YEAR}y"
