# SPDX-License-Identifier: Apache-2.0
"""Faults of the cloud on command: resources that fail or never finish, quotas."""

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
"""Nova's most frequent error."""


@dataclass
class ResourceFault:
    """What happens to which resource."""

    reason: str = NO_HOST
    """Heat's reason, without the path of the resource before it."""
    error: str = "ResourceInError"
    """Heat's or a client's name of the error."""
    type: str = "OS::Nova::Server"
    """A pattern (fnmatch), as are the name and the action ('CREATE', 'UPDATE' or 'DELETE')."""
    name: str = "*"
    action: str = "[!D]*"
    where: Callable[[Mapping[str, Any]], bool] = lambda _: True
    """A condition on the resource's resolved properties."""
    stuck: bool = False
    """It does not fail: it stays IN_PROGRESS until :meth:`CloudFaults.release`. A server's action
    that Heat gave up meanwhile takes effect then."""
    ruins: bool = False
    """It leaves a server that was updated in ERROR, as a rebuild that failed on its host. A request
    that Nova refuses leaves the server as it was."""
    nth: int = 1
    """The first matching resource that it happens to, from 1."""
    times: int = 1_000_000
    """To how many of them, one after the other."""
    seen: int = field(default=0, init=False)

    def applies_to(self, kind: str, name: str, action: str, properties: Mapping[str, Any]) -> bool:
        """Count a resource that matches, and return whether the fault happens to this one."""
        matches = (
            fnmatchcase(kind, self.type)
            and fnmatchcase(name, self.name)
            and fnmatchcase(action, self.action)
            and self.where(properties)
        )
        self.seen += matches
        return matches and 0 <= self.seen - self.nth < self.times


@dataclass
class CloudFaults:
    """All faults of a cloud, and how long an action takes. May be changed at any time."""

    seconds: float = 0.01
    """How long it takes to create, update or delete one resource."""
    minute: float = 60.0
    """How many seconds a minute of ``timeout_mins`` takes."""
    disks: dict[str, int] = field(default_factory=dict)
    """The flavors' disks in GB. A server cannot be resized to a smaller one."""
    images: set[str] | None = None
    """The images that there are; None: every one."""
    stacks_allowed: int | None = None
    """Top-level stacks of the project; more are refused with 403."""
    servers_allowed: int | None = None
    """Servers of the project; more fail with Nova's quota error."""
    resources: list[ResourceFault] = field(default_factory=list)
    _released: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def find(
        self, kind: str, name: str, action: str, properties: Mapping[str, Any]
    ) -> ResourceFault | None:
        """Return the first fault that happens to this resource. Every fault counts it."""
        faults = [
            fault for fault in self.resources if fault.applies_to(kind, name, action, properties)
        ]
        return faults[0] if faults else None

    async def wait_for_release(self) -> None:
        """Wait until :meth:`release` is called."""
        await self._released.wait()

    def release(self) -> None:
        """Let the resources that are stuck continue. Call it on the cloud's own thread."""
        self._released.set()
        self._released = asyncio.Event()
