"""The times that the cluster writes into its objects."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone


def now() -> datetime:
    """The time, with its zone."""
    return datetime.now(timezone.utc)


def stamp(later: timedelta = timedelta()) -> str:
    """The time (or *later*) to the second, as ``creationTimestamp`` has it."""
    return (now() + later).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_stamp() -> str:
    """The time to the microsecond, as Leases and Events have it."""
    return now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse(text: str) -> datetime:
    """The time that either form of stamp tells."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
