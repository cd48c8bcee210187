"""Waiting for a condition, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")
PATIENCE_SECONDS = 30.0


def until(look: Callable[[], Found], what: str, seconds: float = PATIENCE_SECONDS) -> Found:
    """What *look* finds, once it finds something."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"waited {seconds:g} seconds for {what}"
        time.sleep(0.01)
    return found
