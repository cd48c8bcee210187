# SPDX-License-Identifier: Apache-2.0
"""Waiting for a condition, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")
PATIENCE_SECONDS = 30.0


def until(
    read: Callable[[], Value],
    condition: str,
    seconds: float = PATIENCE_SECONDS,
    *,
    lasts: bool = False,
) -> Value:
    """Call *read* until its value is true and return the value.

    :param lasts: the condition stays true: the longer it takes, the more seldom it is looked at,
        since that takes processor time from what is waited for.
    """
    deadline, pause = time.monotonic() + seconds, 0.01
    while not (value := read()):
        assert time.monotonic() < deadline, f"waited {seconds:g} seconds for {condition}"
        time.sleep(pause)
        pause = min(1.2 * pause, 0.1) if lasts else pause
    return value
