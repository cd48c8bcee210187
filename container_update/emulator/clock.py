# SPDX-License-Identifier: Apache-2.0
"""Timestamps as the emulated APIs write them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone


def now() -> datetime:
    """Return the present time in UTC."""
    return datetime.now(timezone.utc)


def stamp(offset: timedelta = timedelta()) -> str:
    """Return the present time plus *offset* to the second, as in ``creationTimestamp``."""
    return (now() + offset).isoformat(timespec="seconds").replace("+00:00", "Z")


def parse(text: str) -> datetime:
    """Return the time of a timestamp, with or without fractions of a second."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
