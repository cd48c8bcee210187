"""What is needed to undo an update or to go on with it, kept in the cluster as Secrets.

Written before the first change and removed after the last: where there is one, an update is under
way or was interrupted, and any host can finish or undo it. A Secret, because it holds what the
CNF's own Secrets held. Nothing of that is ever in :meth:`OperationRecord.summary`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from container_update.model.cluster import Cluster
from container_update.model.errors import ClusterError, ContainerUpdateError, UpdateInProgressError
from container_update.model.objects import Json, Manifest, ObjectKey
from container_update.model.operation import OperationRecord, Phase, from_bytes, name_of, to_bytes
from container_update.planning.steps import ObjectStep
from container_update.planning.steps.codec import step_from_dict, step_to_dict

_PART_BYTES = 700_000
"""What one Secret holds; the API server allows 1 MiB for all of its data."""

_FORMAT = 3


@dataclass(frozen=True)
class Record(OperationRecord):
    """One update that is under way."""

    steps: tuple[ObjectStep, ...]
    pods_before: Mapping[ObjectKey, frozenset[str]]
    """For each workload the UIDs of the pods it had."""
    def_files: tuple[str, ...] = ()
    context: Mapping[str, Any] = field(default_factory=dict)
    """What a change of the package needs beside its steps, as plain values; empty for others."""
    milestones: frozenset[str] = frozenset()
    """What was passed on the way beside the steps."""

    @property
    def planned(self) -> tuple[ObjectStep, ...]:
        """See :class:`OperationRecord`."""
        return self.steps


def goal_of(manifests: Iterable[Manifest]) -> str:
    """Return a digest of the manifests that an update leads to: the same in every run of it."""
    bodies = [[str(m.key), m.body] for m in sorted(manifests, key=lambda m: m.key)]
    return hashlib.sha256(json.dumps(bodies, sort_keys=True).encode()).hexdigest()


def encode(record: Record) -> bytes:
    """Return a record as compressed bytes, without its phase and milestones."""
    payload = {
        "defFiles": list(record.def_files),
        "steps": [step_to_dict(step) for step in record.steps],
        "context": dict(record.context),
        "podsBefore": [[asdict(key), sorted(uids)] for key, uids in record.pods_before.items()],
    }
    return to_bytes(record, _FORMAT, payload)


def decode(data: bytes, phase: Phase, milestones: frozenset[str] = frozenset()) -> Record:
    """Return the record of :func:`encode`.

    :raises UpdateInProgressError: written by another version of this program.
    """
    common, payload = from_bytes(data, _FORMAT)
    return Record(
        **common,
        steps=tuple(step_from_dict(step) for step in payload["steps"]),
        pods_before={ObjectKey(**key): frozenset(uids) for key, uids in payload["podsBefore"]},
        phase=phase,
        def_files=tuple(payload["defFiles"]),
        context=payload["context"],
        milestones=milestones,
    )


@dataclass(frozen=True)
class Journal:
    """The journal of one VNF instance. Its head is written last and removed first: a journal whose
    head is not there was never complete, and nothing had been changed."""

    cluster: Cluster
    namespace: str
    instance_id: str | None

    def read(self) -> Record | None:
        """Return the update under way, None where there is none.

        :raises ContainerUpdateError: a part is missing or damaged.
        """
        head = self.cluster.get(self._key(0))
        if head is None:
            return None
        parts = [_part(head)]
        for number in range(1, int(_text(head, "parts"))):
            body = self.cluster.get(self._key(number))
            if body is None:
                raise ContainerUpdateError(
                    f"{self._key(number)}: this part of the journal is missing: correct the CNF by "
                    f"hand, then delete {self._key(0)}"
                )
            parts.append(_part(body))
        data = b"".join(parts)
        if hashlib.sha256(data).hexdigest() != _text(head, "sha256"):
            raise ContainerUpdateError(
                f"{self._key(0)}: the journal is damaged: correct the CNF by hand, then delete it"
            )
        milestones = frozenset(_text(head, "milestones").split())
        return decode(data, Phase(_text(head, "phase")), milestones)

    def write(self, record: Record) -> None:
        """Write the record, before anything is changed.

        :raises UpdateInProgressError: there is one already.
        """
        data = encode(record)
        parts = _parts(data)
        for number in range(len(parts) - 1, 0, -1):
            self.cluster.delete(self._key(number))  # of a journal that was never complete
            self.cluster.create(self._secret(number, {"part": parts[number]}))
        head = {
            "part": parts[0],
            "parts": str(len(parts)).encode(),
            "sha256": hashlib.sha256(data).hexdigest().encode(),
            "phase": record.phase.value.encode(),
            "operation": record.operation.encode(),
        }
        try:
            self.cluster.create(self._secret(0, head))
        except ClusterError as error:
            if error.status != 409:
                raise
            live = self.cluster.get(self._key(0))
            if live is None or _text(live, "operation") != record.operation:
                raise UpdateInProgressError(
                    f"another update of this VNF instance has begun: {self._key(0)} is its journal"
                ) from error

    def set_phase(self, record: Record, phase: Phase) -> Record:
        """Write the phase; return the record with it."""
        self._set("phase", phase.value)
        return replace(record, phase=phase)

    def pass_milestone(self, record: Record, milestone: str) -> Record:
        """Write that it was passed (a word without spaces); return the record with it."""
        milestones = record.milestones | {milestone}
        self._set("milestones", " ".join(sorted(milestones)))
        return replace(record, milestones=milestones)

    def _set(self, name: str, value: str) -> None:
        try:
            self._set_once(name, value)
        except ClusterError as error:
            if error.status != 409:
                raise
            self._set_once(name, value)  # written meanwhile, perhaps by us: look again

    def _set_once(self, name: str, value: str) -> None:
        head = self.cluster.get(self._key(0))
        if head is not None and _text(head, name) != value:
            head["data"][name] = base64.b64encode(value.encode()).decode()
            self.cluster.replace(head)

    def remove(self, record: Record) -> None:
        """Delete the journal: the update is finished or undone."""
        for number in range(len(_parts(encode(record)))):
            self.cluster.delete(self._key(number))

    def _key(self, number: int) -> ObjectKey:
        suffix = f".{number}" if number else ""
        return ObjectKey("", "Secret", self.namespace, name_of(self.instance_id) + suffix)

    def _secret(self, number: int, data: Mapping[str, bytes]) -> Json:
        key = self._key(number)
        labels = {"container-update/journal": "true"}
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": key.name, "namespace": key.namespace, "labels": labels},
            "type": "container-update/journal",
            "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
        }


def _parts(data: bytes) -> list[bytes]:
    return [data[i : i + _PART_BYTES] for i in range(0, len(data), _PART_BYTES)]


def _part(secret: Json) -> bytes:
    return base64.b64decode(secret["data"]["part"])


def _text(secret: Mapping[str, Any], name: str) -> str:
    return base64.b64decode((secret.get("data") or {}).get(name, "")).decode()
