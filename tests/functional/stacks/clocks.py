# SPDX-License-Identifier: Apache-2.0
"""The clocks of hosts that run at the same time, and do not agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tests.internals.core import utc_now
from tests.internals.stacks import Clock


@dataclass
class World:
    """What passes while a host waits takes no time."""

    passed: float = 0.0
    """Seconds."""
    meanwhile: list[Callable[[], object]] = field(default_factory=list)
    """What other hosts do whenever one waits."""

    def clock(self, skew: timedelta = timedelta()) -> Clock:
        """Return the clock of a host that is ahead of the true time."""

        def now() -> datetime:
            return utc_now() + skew + timedelta(seconds=self.passed)

        return Clock(now, lambda: self.passed, self.wait)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.passed += seconds
        for act in self.meanwhile:
            act()


def in_an_hour() -> Clock:
    """Return the clock of a host on which the others' last heartbeat is long ago."""
    return World().clock(timedelta(hours=1))
