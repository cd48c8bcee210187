# SPDX-License-Identifier: Apache-2.0
"""An operation on a VNF instance in a cluster: one value while it runs, and after it has ended.

While it runs its journal has it; once it has ended, as a :class:`Revision`, the history. Both keep
it in the same form: :mod:`~container_update.cluster.operation_codec`.
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from container_update.model.objects import Manifest, ObjectKey
from container_update.model.operation import OperationRecord, Phase, StepProgress
from container_update.model.outcome import StepState
from container_update.model.pauses import HoldStep
from container_update.model.plan import INSTALL, UNDO, UPDATE, Step
from container_update.model.requests import PackageIdentity
from container_update.model.scripts import ScriptReport
from container_update.planning.steps import ObjectStep

UPDATES = frozenset({UPDATE, UNDO})
"""The kinds that change configuration and images only."""


class Result(enum.Enum):
    """How an operation ended."""

    DONE = "done"
    UNDONE = "undone"
    """It failed or was stopped, and everything was put back."""


@dataclass(frozen=True)
class Origin:
    """Who asked for an operation, and for which."""

    kind: str
    """:data:`UPDATE`, :data:`UNDO` or an upgrade type; '': it is not kept in the history."""
    user: str
    """The login name."""
    host: str
    packages: tuple[PackageIdentity, ...] = ()
    """The old one and the new one; () where they are not known."""
    undoes: int | None = None
    """The first revision that it undoes, with all after that one; None: it goes forward."""
    scripts: Mapping[str, str] = field(default_factory=dict)
    """What the request of a change says of coordination scripts, by the names that it has there."""
    why: str = ""
    """Why, in the words of the user; '': the user gave no reason."""

    @property
    def who(self) -> str:
        """The user on the host: 'ann@workstation'."""
        return f"{self.user}@{self.host}"

    @property
    def title(self) -> str:
        """What it is, for people: 'update', 'undo of 14'."""
        return self.kind if self.undoes is None else f"{UNDO} of {self.undoes}"

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Origin:
        """Return the origin that these plain values describe."""
        packages = tuple(PackageIdentity(**package) for package in values["packages"])
        return cls(**{**values, "packages": packages})


@dataclass(frozen=True)
class Operation(OperationRecord):
    """One operation: its steps, with the objects before them, and its progress."""

    origin: Origin
    steps: tuple[Step, ...] = field(default=(), repr=False)
    pods_before: Mapping[ObjectKey, frozenset[str]] = field(default_factory=dict, repr=False)
    """For each workload the UIDs of the pods it had."""
    def_files: tuple[str, ...] = ()
    context: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What a change of the package needs beside its steps, as plain values; empty for others."""
    ended_groups: int = 0
    """So many groups of steps have ended; counted only where not all of them can be repeated."""
    scripts: tuple[ScriptReport, ...] = field(default=(), repr=False)
    """What the scripts in them reported."""
    objects: tuple[ObjectKey, ...] = field(default=(), repr=False)
    """Every object of the CNF at its end."""
    instance: bytes = field(default=b"", repr=False)
    """What the VNF instance runs from afterwards, an encoded
    :class:`~container_update.cluster.instance_record.InstanceRecord`; empty: not known."""
    namespaces: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    """The other namespaces in which it has a Secret: its writer may write Secrets there."""

    @property
    def planned(self) -> tuple[Step, ...]:
        """See :class:`OperationRecord`."""
        return self.steps

    @property
    def held_at(self) -> HoldStep | None:
        """See :class:`OperationRecord`."""
        holds = (step for step in self.steps if isinstance(step, HoldStep) and step.needs_person)
        here = (step for step in holds if step.group == self.ended_groups)
        return next(here, None) if self.phase is Phase.UPDATE else None

    def states_at_hold(self) -> tuple[StepProgress, ...]:
        """Return how far each step is while it waits for a person; empty while it does not."""
        if (hold := self.held_at) is None:
            return ()

        def state_of(step: Step) -> StepState:
            if step is hold:
                return StepState.HELD
            return StepState.DONE if step.group < self.ended_groups else StepState.NOT_STARTED

        return tuple(StepProgress(state_of(step).value) for step in self.steps)

    @property
    def object_steps(self) -> tuple[ObjectStep, ...]:
        """The steps that write objects."""
        return tuple(step for step in self.steps if isinstance(step, ObjectStep))


@dataclass(frozen=True)
class Revision(Operation):
    """An operation that has ended.

    >>> for revision in history(cluster, namespace="cnf"):  # doctest: +SKIP
    ...     print(revision.number, revision.origin.title, revision.result.value)
    2 undo of 1 done
    1 update done

    :param object_steps: what it did, with what was there before; empty where that is not kept.
    :param objects: every object of the CNF at its end.
    """

    number: int = field(kw_only=True)
    ended: str = field(kw_only=True)
    """When, in UTC (RFC 3339)."""
    seconds: float = field(kw_only=True)
    result: Result = field(kw_only=True)
    changes: int = field(kw_only=True)
    """How many objects it changed, or was to change: known also where its steps are not kept."""
    cause: str = ""
    """Why it was undone."""
    report: tuple[str, ...] = field(default=(), repr=False)
    """What failing pods reported, a line each: their Events and the end of their logs."""
    journal: str = field(default="", repr=False)
    """The UID of the Secret that was its journal; empty: not known."""
    is_kept: bool = True
    """What it did is kept, so that it can be shown and, if it was not undone, undone."""

    @classmethod
    def of(
        cls,
        operation: Operation,
        ended: datetime,
        journal: str,
        cause: str | None = None,
        report: tuple[str, ...] = (),
    ) -> Revision:
        """Return what the history is to keep of an operation; *cause*: why it was undone."""
        attributes = {each.name: getattr(operation, each.name) for each in fields(Operation)}
        return cls(
            **{**attributes, "instance": operation.instance if cause is None else b""},
            number=0,
            ended=ended.isoformat(timespec="seconds"),
            seconds=round((ended - datetime.fromisoformat(operation.started)).total_seconds(), 3),
            result=Result.DONE if cause is None else Result.UNDONE,
            changes=len({step.key for step in operation.object_steps}),
            cause=cause or "",
            report=report,
            journal=journal,
        )

    @property
    def can_be_undone(self) -> bool:
        """It has ended well, and what was there before it is kept."""
        has_before = self.origin.kind != INSTALL and self.is_kept
        return has_before and self.result is Result.DONE


def digest_of(manifests: Iterable[Manifest]) -> str:
    """Return a digest of the manifests that an update leads to: the same in every run of it."""
    digest = hashlib.sha256(b"[")  # of a JSON list, which is never in memory as a whole
    for number, manifest in enumerate(sorted(manifests, key=lambda manifest: manifest.key)):
        text = json.dumps([str(manifest.key), manifest.body], sort_keys=True)
        digest.update(f"{', ' if number else ''}{text}".encode())
    digest.update(b"]")
    return digest.hexdigest()
