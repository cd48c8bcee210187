# SPDX-License-Identifier: Apache-2.0
"""What is needed to undo an update or to go on with it, and its form as bytes. Pure.

Nothing of a Secret is ever in :meth:`OperationRecord.summary`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from container_update.cluster.history import revision, schemas
from container_update.model.objects import Manifest, ObjectKey
from container_update.model.operation import OperationRecord, Phase, from_bytes, to_bytes
from container_update.model.packing import packed, unpacked
from container_update.model.pauses import HoldStep
from container_update.model.plan import Action, Step
from container_update.model.scripts import ScriptReport
from container_update.planning.steps import ObjectStep

_FORMAT = 4


@dataclass(frozen=True)
class Record(OperationRecord):
    """One update that is under way."""

    steps: tuple[Step, ...]
    pods_before: Mapping[ObjectKey, frozenset[str]]
    """For each workload the UIDs of the pods it had."""
    def_files: tuple[str, ...] = ()
    context: Mapping[str, Any] = field(default_factory=dict)
    """What a change of the package needs beside its steps, as plain values; empty for others."""
    ended: int = 0
    """So many groups of steps have ended; counted only where not all of them can be repeated."""
    scripts: tuple[ScriptReport, ...] = ()
    """What the scripts in them reported."""
    origin: revision.Origin | None = None
    """For the history; None: an earlier version began the operation."""
    objects: tuple[ObjectKey, ...] = ()
    """Every object of the CNF, for the history."""
    instance: bytes = b""
    """What the VNF instance runs from afterwards, for the history; see Revision."""

    @property
    def planned(self) -> tuple[Step, ...]:
        """See :class:`OperationRecord`."""
        return self.steps

    @property
    def held_at(self) -> HoldStep | None:
        """See :class:`OperationRecord`."""
        holds = (step for step in self.steps if isinstance(step, HoldStep) and step.needs_person)
        here = (step for step in holds if step.group == self.ended)
        return next(here, None) if self.phase is Phase.UPDATE else None

    @property
    def object_steps(self) -> tuple[ObjectStep, ...]:
        """The steps that write objects."""
        return tuple(step for step in self.steps if isinstance(step, ObjectStep))


def digest_of(manifests: Iterable[Manifest]) -> str:
    """Return a digest of the manifests that an update leads to: the same in every run of it."""
    digest = hashlib.sha256(b"[")  # of a JSON list, which is never in memory as a whole
    for number, manifest in enumerate(sorted(manifests, key=lambda manifest: manifest.key)):
        text = json.dumps([str(manifest.key), manifest.body], sort_keys=True)
        digest.update(f"{', ' if number else ''}{text}".encode())
    digest.update(b"]")
    return digest.hexdigest()


def ended_revision(
    record: Record, ended: datetime, cause: str | None = None, report: tuple[str, ...] = ()
) -> revision.Revision:
    """Return the entry of an operation that has ended in the history; it gets its number there.

    :param cause: why it was undone; None where it was not.
    :param report: what failing pods reported.
    """
    assert record.origin is not None, "the operation belongs in the history"
    return revision.Revision(
        number=0,
        operation=record.operation,
        origin=record.origin,
        started=record.started,
        ended=ended.isoformat(timespec="seconds"),
        seconds=(ended - datetime.fromisoformat(record.started)).total_seconds(),
        result=revision.Result.DONE if cause is None else revision.Result.UNDONE,
        changes=len({step.key for step in record.object_steps}),
        cause=cause or "",
        report=report,
        steps=record.object_steps,
        objects=record.objects,
        def_files=record.def_files,
        instance=record.instance if cause is None else b"",
    )


def encode(record: Record, namespace: str) -> dict[str, bytes]:
    """Return a record as compressed bytes, without what its head says, by namespace.

    What it holds of Secrets is in the bytes of their own namespace: who may read Secrets in one
    namespace is to learn nothing of another one's. All the rest is in those of *namespace*.
    """
    new = [step.key for step in record.steps if step.action is Action.CREATE]
    # nothing can be kept in a namespace before it is there
    own = {namespace, *(key.name for key in new if (key.group, key.kind) == ("", "Namespace"))}
    steps, elsewhere = revision.separated(
        record.steps, lambda key: key.kind == "Secret" and key.namespace not in own
    )
    payload = {
        "defFiles": list(record.def_files),
        "steps": steps,
        "context": dict(record.context),
        "podsBefore": [[key.as_dict(), sorted(uids)] for key, uids in record.pods_before.items()],
        "origin": record.origin and record.origin.as_dict(),
        "objects": [key.as_dict() for key in record.objects],
        "instance": base64.b64encode(record.instance).decode(),
    }
    others = {other: packed(bodies) for other, bodies in elsewhere.items()}
    return {namespace: to_bytes(record, _FORMAT, payload), **others}


def decode(
    data: Mapping[str, bytes],
    namespace: str,
    phase: Phase,
    ended: int = 0,
    scripts: tuple[ScriptReport, ...] = (),
) -> Record:
    """Return the record of :func:`encode`.

    :raises UpdateInProgressError: written by another version of this program.
    :raises: one of :data:`DAMAGED`: written by somebody else.
    """
    common, payload = from_bytes(data[namespace], _FORMAT)
    schemas.refuse_other(schemas.RECORD, payload)
    if "request" in payload["context"]:
        schemas.refuse_other(schemas.CONTEXT, payload["context"])
    elsewhere = {other: unpacked(content) for other, content in data.items() if other != namespace}
    return Record(
        **common,
        steps=tuple(map(revision.checked_step, revision.joined(payload["steps"], elsewhere))),
        pods_before={
            revision.object_key(key): frozenset(uids) for key, uids in payload["podsBefore"]
        },
        phase=phase,
        def_files=tuple(payload["defFiles"]),
        context=dict(payload["context"]),
        ended=ended,
        scripts=scripts,
        origin=revision.Origin.of(payload["origin"]) if payload.get("origin") else None,
        objects=tuple(map(revision.object_key, payload.get("objects", ()))),
        instance=base64.b64decode(payload.get("instance", "")),
    )
