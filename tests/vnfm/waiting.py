"""Waiting for a condition, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")
PATIENCE_SECONDS = 30.0


def until(read: Callable[[], Value], condition: str, seconds: float = PATIENCE_SECONDS) -> Value:
    """Call *read* until its value is true and return the value."""
    deadline = time.monotonic() + seconds
    while not (value := read()):
        assert time.monotonic() < deadline, f"waited {seconds:g} seconds for {condition}"
        time.sleep(0.01)
    return value
