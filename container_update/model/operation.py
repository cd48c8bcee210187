# SPDX-License-Identifier: Apache-2.0
"""An operation that is under way, as its journal has it.

A journal is kept where the VNF runs: in Secrets of the cluster, or in a stack of the project. Each
adds to the record what its own steps need.
"""

from __future__ import annotations

import enum
import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from container_update.model.errors import NextStep, UpdateInProgressError
from container_update.model.objects import Json, ObjectKey
from container_update.model.plan import Step
from container_update.model.times import moment


class Phase(enum.Enum):
    """Which way an operation goes."""

    UPDATE = "update"
    UNDO = "undo"
    END = "end"
    """Everything is done, and what the history had may be gone: there is no way back any more."""


@dataclass(frozen=True)
class StepProgress:
    """How far a step is, as its run noted it."""

    state: str = ""
    """'running', 'done', ...; '': not known."""
    message: str = ""
    """What it waits for, or why it failed."""


@dataclass(frozen=True)
class OperationRecord(ABC):
    """One operation that is under way. It holds no passwords of the request."""

    operation: str
    """An id for this run, for logs and the lease."""
    host: str
    started: str
    """When, in UTC (RFC 3339)."""
    goal: str
    """Identifies the request: two runs of one request have the same."""
    instance_id: str | None
    phase: Phase = field(default=Phase.UPDATE, kw_only=True)

    @property
    @abstractmethod
    def planned(self) -> Sequence[Step]:
        """The steps of its plan."""

    @property
    def held_at(self) -> Step | None:
        """The step at which it waits for a person; None: it does not wait."""
        return None

    def progress(self, *, runs: bool = False) -> str:
        """Return its progress, for people; *runs*: a process carries it out."""
        if self.held_at is not None:
            return f"waits for a person ({self.held_at.key.name}): promote or abort it"
        if self.phase is Phase.END:
            return "ended, but its journal is not removed yet"
        going = "in progress" if runs else "not finished"
        return "being undone" if self.phase is Phase.UNDO else going

    def overview(self, states: Sequence[StepProgress] = ()) -> Iterator[str]:
        """Yield its objects and actions for people, with the states where known; never content."""
        for number, step in enumerate(self.planned):
            state = states[number] if states else StepProgress()
            parts = (state.state, str(step.key), step.action.value, state.message)
            yield f"  {': '.join(filter(None, parts))}"

    def summary(self, states: Sequence[StepProgress] = (), *, runs: bool = False) -> str:
        """Return the record for people; see :meth:`progress` and :meth:`overview`."""
        progress = self.progress(runs=runs)
        started = f"{moment(self.started)} UTC"
        head = f"Operation {self.operation} of {self.host}, started {started}, {progress}"
        return "\n".join([f"{head}:", *self.overview(states)])


def name_of(instance_id: str | None) -> str:
    """Return the name of an instance's journal and lease (a DNS subdomain name)."""
    if not instance_id:
        return "container-update"
    name = re.sub(r"[^a-z0-9-]", "-", instance_id.lower()).strip("-")[:150]
    if name != instance_id:
        name += "-" + hashlib.sha256(instance_id.encode()).hexdigest()[:8]
    return f"container-update-{name}"


@dataclass(frozen=True)
class Freeze:
    """No operation of an instance begins until its end; those under way can be ended.

    >>> print(Freeze("ann@host", "2026-01-02T03:04:05+00:00", "", "the trial of the year"))
    frozen by ann@host since 2026-01-02 03:04:05 UTC (the trial of the year)
    """

    who: str
    since: str
    """When, in UTC (RFC 3339)."""
    until: str = ""
    """Likewise, by the clock of each host; '': it does not end by itself."""
    why: str = ""

    def is_over(self, now: datetime) -> bool:
        """Tell whether its time has passed."""
        return bool(self.until) and now >= datetime.fromisoformat(self.until)

    def __str__(self) -> str:
        until = f" until {moment(self.until)} UTC" if self.until else ""
        why = f" ({self.why})" if self.why else ""
        return f"frozen by {self.who} since {moment(self.since)} UTC{until}{why}"


@dataclass(frozen=True)
class Status:
    """What is under way for an instance; as text it never shows content.

    >>> print(Status(record=None))
    No operation is under way.
    """

    record: OperationRecord | None
    """The journal of a run that has not ended."""
    holder: str | None = None
    """Who holds the lease."""
    held: str = ""
    """Since when, or when its last heartbeat was, for people."""
    expired: bool = False
    """The holder has been silent for too long: another may take over."""
    leftovers: Sequence[ObjectKey] = ()
    """What a run that changed nothing has left: a resume or a rollback removes it."""
    frozen: Freeze | None = None
    """No operation may begin."""
    states: Sequence[StepProgress] = ()
    """Of each step; empty: not known."""

    @property
    def next_step(self) -> NextStep | None:
        """How to end an operation that does not end by itself; None where there is none."""
        if self.is_held:
            return NextStep.PROMOTE_OR_ABORT
        if self.is_running or not (self.record or self.leftovers):
            return None
        is_over = self.record is not None and self.record.phase is Phase.END
        return NextStep.RESUME if is_over else NextStep.RESUME_OR_ROLLBACK

    @property
    def is_running(self) -> bool:
        """A process carries it out, as far as is known."""
        return self.holder is not None and not self.expired

    @property
    def is_held(self) -> bool:
        """It waits for a person."""
        return self.record is not None and self.record.held_at is not None

    def __str__(self) -> str:
        none = "No operation is under way."
        runs = self.is_running
        lines = [self.record.summary(self.states, runs=runs) if self.record else none]
        if self.holder is not None:
            expired = " (expired)" if self.expired else ""
            lines.append(f"Held by {self.holder} {self.held}{expired}.")
        if self.leftovers:
            names = ", ".join(map(str, self.leftovers))
            lines.append(f"A run that changed nothing has left {names}; a rollback removes it.")
        if self.frozen is not None:
            lines.append(f"The VNF instance is {self.frozen}.")
        return "\n".join(lines)

    def as_dict(self) -> Json:
        """Return the same as plain values."""
        return {
            "operation": self.record.operation if self.record else None,
            "phase": self.record.phase.value if self.record else None,
            "held": self.is_held,
            "started": self.record.started if self.record else None,
            "steps": list(self._steps()),
            "holder": self.holder,
            "expired": self.expired,
            "leftovers": [key.as_dict() for key in self.leftovers],
            "frozen": self.frozen and asdict(self.frozen),
            "nextStep": self.next_step and self.next_step.value,
        }

    def _steps(self) -> Iterator[Json]:
        for number, step in enumerate(self.record.planned if self.record else ()):
            yield {**step.key.as_dict(), **(asdict(self.states[number]) if self.states else {})}


# --- as plain values ----------------------------------------------------------------------------

_COMMON = ("operation", "host", "started", "goal", "instance_id")


def to_values(record: OperationRecord, version: int) -> Json:
    """Return what every record has as plain values, without the phase, in a format."""
    return {"format": version, **{name: getattr(record, name) for name in _COMMON}}


def from_values(values: Mapping[str, Any], version: int) -> dict[str, Any]:
    """Return the attributes of the record of :func:`to_values`.

    :raises UpdateInProgressError: another version of this program wrote it.
    :raises: one of :data:`.packing.DAMAGED`: another client wrote it.
    """
    if (number := int(values["format"])) != version:
        raise UpdateInProgressError(
            f"the journal has format {number}, expected {version}: another version of "
            "this program wrote it; finish the operation with that version",
            next_step=NextStep.FIX_AND_RETRY,
        )
    if datetime.fromisoformat(_line(values["started"])).tzinfo is None:
        raise ValueError("started: expected a time with its zone")
    has_id = values["instance_id"] is not None
    lines = {name: _line(values[name]) for name in _COMMON if name != "instance_id" or has_id}
    return {"instance_id": None, **lines}


def _line(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError("expected one line of text")
    return value
