"""What goes wrong in the cloud, on command: resources that fail or never end, quotas."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

NO_HOST = (
    'Went to status ERROR due to "Message: No valid host was found. There are not enough hosts '
    'available., Code: 500"'
)
"""What Nova says most often."""


@dataclass
class Trouble:
    """What happens to which resource."""

    reason: str = NO_HOST
    """Heat's reason, without the path of the resource before it."""
    error: str = "ResourceInError"
    """Heat's or a client's name for the error."""
    type: str = "OS::Nova::Server"
    """A pattern (fnmatch), as are the name and the action ('CREATE', 'UPDATE', 'DELETE'), which is
    anything but a deletion unless it says so."""
    name: str = "*"
    action: str = "[!D]*"
    where: Callable[[Mapping[str, Any]], bool] = lambda _: True
    """Asked about the resource's resolved properties."""
    stuck: bool = False
    """It does not fail: it stays IN_PROGRESS until :meth:`Troubles.release`."""
    nth: int = 1
    """The first fitting resource that it happens to, from 1."""
    times: int = 1_000_000
    """To how many of them, one after the other."""
    seen: int = field(default=0, init=False)

    def strikes(self, kind: str, name: str, action: str, properties: Mapping[str, Any]) -> bool:
        """Whether it happens to this resource now; counts."""
        fits = (
            fnmatchcase(kind, self.type)
            and fnmatchcase(name, self.name)
            and fnmatchcase(action, self.action)
            and self.where(properties)
        )
        self.seen += fits
        return fits and 0 <= self.seen - self.nth < self.times


@dataclass
class Troubles:
    """All that goes wrong, and how long what goes right takes. May be changed at any time."""

    seconds: float = 0.01
    """How long one resource takes to be created, updated or deleted."""
    stacks_allowed: int | None = None
    """Top-level stacks of the project; more are refused with 403."""
    servers_allowed: int | None = None
    """Servers of the project; more fail with Nova's quota error."""
    list: list[Trouble] = field(default_factory=list)
    _released: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def find(
        self, kind: str, name: str, action: str, properties: Mapping[str, Any]
    ) -> Trouble | None:
        """The first that happens to this resource."""
        struck = [
            trouble for trouble in self.list if trouble.strikes(kind, name, action, properties)
        ]
        return struck[0] if struck else None

    async def stay(self) -> None:
        """Wait for the release."""
        await self._released.wait()

    def release(self) -> None:
        """Let what is stuck go on; in the cloud's own thread."""
        self._released.set()
        self._released = asyncio.Event()
