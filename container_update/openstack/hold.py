# SPDX-License-Identifier: Apache-2.0
"""Who holds the journal of a change, as the tags of its stack say, and since when it is silent.

A hold is judged by our own observation of it, as client-go's leader election does: clocks of two
hosts may differ by any amount. Heat allows 80 letters for one tag.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone

from container_update.cluster.lease import describe_holder, refuse_too_long, utc_now
from container_update.model.cancellation import CancelToken
from container_update.model.errors import PlanError, UpdateInProgressError
from container_update.model.objects import Json
from container_update.model.process_identity import ProcessIdentity

LOG = logging.getLogger(__name__)

_NEVER = "never"
_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"


@dataclass(frozen=True)
class Clock:
    """The time on a host."""

    now: Callable[[], datetime] = utc_now
    monotonic: Callable[[], float] = time.monotonic
    """In seconds; no option sets it."""
    sleep: Callable[[float], object] = time.sleep


@dataclass(frozen=True)
class StackHolder:
    """The run that holds a journal."""

    operation: str
    renewed: datetime | None
    """Its last heartbeat, by its own clock; None: it has ended and left the journal."""
    seconds: float
    """After how long without a heartbeat another run may take over."""
    process: ProcessIdentity | None

    @classmethod
    def of(cls, stack: Json) -> StackHolder:
        """Return the holder that a stack's tags name; PlanError: no run of this program set one."""
        tags = dict(tag.split("=", 1) for tag in stack.get("tags") or () if "=" in tag)
        return cls(
            tags.get("holder", ""),
            _heartbeat(stack, tags.get("renewed", _NEVER)),
            _seconds(tags.get("seconds", "0")),
            ProcessIdentity.parse(f"{tags.get('boot')} {tags.get('process')}"),
        )

    @property
    def is_gone(self) -> bool:
        """Whether it has certainly ended: it left the journal, or its process of this host died."""
        return self.renewed is None or (self.process is not None and self.process.is_gone())

    def is_fresh(self, now: datetime) -> bool:
        """Return whether it lives by our clock, so that to watch it is no use. A heartbeat that
        is to come says that the clocks differ."""
        return not self.is_gone and 0 <= self.silence(now) < self.seconds

    def silence(self, now: datetime) -> float:
        """Return the seconds since its last heartbeat by our clock."""
        return (now - (self.renewed or now)).total_seconds()

    def sentence(self, now: datetime) -> str:
        """Return who holds the journal, and when its last heartbeat was."""
        return describe_holder(self.operation, self.silence(now), self.seconds)


def _heartbeat(stack: Json, text: str) -> datetime | None:
    if text == _NEVER:
        return None
    try:
        return datetime.fromisoformat(text.removesuffix("Z")).replace(tzinfo=timezone.utc)
    except ValueError as error:
        raise PlanError(
            f"stack {stack['stack_name']}, tag renewed: expected a time, found another text: it is "
            "by no run of this program: see who wrote it, and delete the stack"
        ) from error


def _seconds(text: str) -> float:
    """Return the number; without an end where it is none."""
    try:
        return float(text)
    except ValueError:
        return math.inf


def is_free(read: Callable[[], Json | None], clock: Clock, cancel: CancelToken) -> bool:
    """Return whether another run may take over, if need be after the holder's lease.

    :param read: returns the stack that is held, None where it is gone; then this returns False.
    :raises UpdateInProgressError: the holder lives, or the wait for that was cancelled.
    :raises PlanError: it wants to be waited for longer than any run of ours does.
    """
    stack = read()
    if stack is None:
        return False
    holder = StackHolder.of(stack)
    if holder.is_gone:
        return True
    refuse_too_long(f"stack {stack['stack_name']}, tag seconds", holder.seconds)
    if holder.is_fresh(clock.now()):
        raise UpdateInProgressError(holder.sentence(clock.now()))
    LOG.warning("waiting for %.0f s whether %s lives", holder.seconds, holder.operation)
    end = clock.monotonic() + holder.seconds
    while clock.monotonic() < end:
        clock.sleep(holder.seconds / 20)
        stack = read()
        if stack is None:
            return False
        if StackHolder.of(stack) != holder or cancel:
            why = f"the wait was stopped {cancel.reason}" if cancel else "it lives"
            raise UpdateInProgressError(f"{holder.sentence(clock.now())}: {why}")
    return True


def tags_of(operation: str, renewed: datetime | None, seconds: float) -> str:
    """Return the tags of this process as the holder; without a heartbeat it leaves the journal."""
    tags = {
        "holder": operation,
        "renewed": _NEVER if renewed is None else renewed.strftime(_TIME),
        "seconds": f"{seconds:g}",
    }
    if process := ProcessIdentity.current():
        boot, _, rest = str(process).partition(" ")
        tags |= {"boot": boot, "process": rest}
    return ",".join(f"{name}={value}" for name, value in tags.items())
