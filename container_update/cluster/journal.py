# SPDX-License-Identifier: Apache-2.0
"""What is needed to undo an update or to go on with it, kept in the cluster as Secrets.

Written before the first change and removed after the last: where there is one, an update is under
way or was interrupted, and any host can finish or undo it. A Secret, because it holds what the
CNF's own Secrets held. Nothing of that is ever in :meth:`OperationRecord.summary`.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from container_update.cluster import keeping
from container_update.cluster.history import revision, schemas
from container_update.cluster.lease import LeaseLock
from container_update.model import context_threads, errors
from container_update.model.cluster import Cluster, ReadOnlyCluster, WatchEvent, if_allowed
from container_update.model.objects import Collection, Json, Manifest, ObjectKey
from container_update.model.operation import OperationRecord, Phase, from_bytes, name_of, to_bytes
from container_update.model.packing import DAMAGED, packed, unpacked
from container_update.model.pauses import HoldStep
from container_update.model.plan import Action, Step
from container_update.model.scripts import ScriptReport
from container_update.planning.steps import ObjectStep

# --- what is kept -------------------------------------------------------------------------------

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
    :raises: one of :data:`DAMAGED`: written by another client.
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


LOG = logging.getLogger(__name__)

_ATTEMPTS = 5
_TYPE, _LABELS = "container-update/journal", {"container-update/journal": "true", **keeping.KEPT}
_MOST_SCRIPTS, _LONGEST_OUTPUT = 64, 4096
"""Of the reports of scripts: how many are kept, and characters of what each printed."""

_WATCH_SECONDS = 5.0
"""For how long the event about a Secret that was just created is waited for."""


@dataclass
class JournalReader:
    """The journal of one VNF instance, for whatever looks at it.

    A head and, where one Secret cannot hold it, parts. The head is created first, and is a journal
    only when all parts are there: until then nothing was changed, and it belongs to the lease of
    its run, so that the garbage collector removes what a late request creates. The parts belong to
    the head. The operation has ended once the head is removed.
    """

    cluster: ReadOnlyCluster
    namespace: str
    instance_id: str | None
    read_at: str = field(default="", init=False)
    """The version of the collection when the journal was read; empty where it is unknown."""
    _head: Json | None = field(default=None, init=False)
    """As this run read or wrote it last."""

    def read(self) -> Record | None:
        """Return the update under way, None where there is none.

        :raises ContainerUpdateError: a part is missing or damaged, or the journal is not signed.
        """
        self._head = head = self._read_head()
        if head is None or not keeping.is_complete(head):
            return None
        self._refuse_unsigned(head)
        try:
            data = {
                namespace: b"".join(self._read_part(key) for key in keys)
                for namespace, keys in self._keys(head).items()
            }
            if keeping.digest(data) != keeping.text(head, "sha256"):
                raise self._damaged
            return decode(data, self.namespace, *self._progress(head))
        except DAMAGED as error:  # or another program's Secret of this name
            raise self._damaged from error

    def _read_head(self) -> Json | None:
        """Read it as a list of one: only a list has a version where there is no journal."""
        listing = if_allowed(lambda: self.cluster.list(self._collection), None)
        if listing is None:
            return self.cluster.get(self.key)
        self.read_at = listing.resource_version
        return listing.items[0] if listing.items else None

    @property
    def _collection(self) -> Collection:
        """The Secret of that name alone."""
        return replace(Collection.of(self.key), fields=f"metadata.name={self.key.name}")

    def progress_of(self, operation: str) -> tuple[Phase, int] | None:
        """Return the phase of an operation, and how many of its groups of steps have ended, where
        they are counted; None where its journal is not there any more."""
        head = self.cluster.get(self.key)
        if (
            head is None
            or not keeping.is_complete(head)
            or keeping.text(head, "operation") != operation
        ):
            return None
        self._refuse_unsigned(head)
        phase, ended, _ = self._progress(head)
        return phase, ended

    def _progress(self, head: Json) -> tuple[Phase, int, tuple[ScriptReport, ...]]:
        """Return how far the operation is that a head says.

        :raises ContainerUpdateError: another client wrote it.
        """
        try:
            reports = json.loads(keeping.text(head, "scripts") or "[]")
            schemas.refuse_other(schemas.SCRIPTS, reports)
            phase, groups = (
                Phase(keeping.text(head, "phase")),
                int(keeping.text(head, "groups") or "0"),
            )
        except DAMAGED as error:
            raise self._damaged from error
        return phase, groups, tuple(map(ScriptReport.of, reports))

    def _refuse_unsigned(self, head: Json) -> None:
        if self.cluster.journal_key and not keeping.is_signed(head, self.cluster.journal_key):
            key = self.cluster.journal_key
            why = keeping.why_unbelieved("a journal", keeping.signer(head), key)
            raise errors.ContainerUpdateError(
                f"{self.key}: {why}; or {self._by_hand}",
                next_step=errors.NextStep.FIX_AND_RETRY,
            )

    def _read_part(self, key: ObjectKey) -> bytes:
        body = self._head if key == self.key else self.cluster.get(key)
        if body is None:
            raise errors.ContainerUpdateError(
                f"{key}: this part of the journal is missing: {self._by_hand}"
            )
        return base64.b64decode(body["data"]["part"])

    @property
    def _damaged(self) -> errors.ContainerUpdateError:
        return errors.ContainerUpdateError(f"{self.key}: the journal is damaged: {self._by_hand}")

    @property
    def _by_hand(self) -> str:
        return f"correct the CNF by hand, then run {self._removal}"

    @property
    def _removal(self) -> str:
        """The command that deletes it, for people."""
        try:
            number = keeping.part_numbers(self._head or {}, self.namespace)[self.namespace]
        except ValueError:
            number = 1
        names = " ".join(self._key(self.namespace, n).name for n in range(number))
        command = f"kubectl delete secret {names} -n {self.namespace} --cascade=orphan"
        return f"{command} --ignore-not-found"

    def leftovers(self) -> tuple[ObjectKey, ...]:
        """Return what :meth:`clear` would delete."""
        head = self.cluster.get(self.key)
        if head is not None and keeping.is_complete(head):
            return ()
        return (*((self.key,) if head is not None else ()), *self._stale_parts())

    @property
    def key(self) -> ObjectKey:
        """The head."""
        return self._key(self.namespace, 0)

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces in which it has a Secret: its writer may write Secrets there."""
        return tuple(self._keys(self._written))

    @property
    def _written(self) -> Json:
        assert self._head is not None, "the journal was read or written before"
        return self._head

    def _stale_parts(self) -> list[ObjectKey]:
        """Return the parts that are there without a head."""
        keys = (self._key(self.namespace, number) for number in range(1, keeping.MAX_PARTS))
        return list(itertools.takewhile(lambda key: self.cluster.get(key) is not None, keys))

    def _keys(self, head: Json) -> dict[str, list[ObjectKey]]:
        """Return what holds the record, by namespace; the head is the first of its own.

        :raises ContainerUpdateError: it does not say so.
        """
        try:
            numbers = keeping.part_numbers(head, self.namespace)
        except ValueError as error:
            raise self._damaged from error
        return {
            namespace: [self._key(namespace, n) for n in range(number)]
            for namespace, number in numbers.items()
        }

    def _key(self, namespace: str, number: int) -> ObjectKey:
        """Return a part's key; in another namespace its name says whose it is."""
        suffix = f".{number}" if number or namespace != self.namespace else ""
        if namespace != self.namespace:
            suffix = f".of.{self.namespace}{suffix}"
        return ObjectKey("", "Secret", namespace, name_of(self.instance_id) + suffix)


@dataclass
class Journal(JournalReader):
    """The journal of one VNF instance, as one run reads and writes it.

    Every write and deletion is for the version that this run wrote or claimed: one that arrives
    after another run has claimed the journal meets another version, and is refused.

    :param run: the id of the run that writes.
    """

    cluster: Cluster
    run: str = ""

    def write(
        self, record: Record, lease: LeaseLock, confirm: Callable[[], object] = lambda: None
    ) -> None:
        """Write the record, before anything is changed.

        :param lease: what this run holds.
        :param confirm: called when all is written and nothing is a journal yet; raises
            UpdateInProgressError where the record must not become one.
        :raises UpdateInProgressError: there is one already.
        """
        data = encode(record, self.namespace)
        parts = {namespace: keeping.split(content) for namespace, content in data.items()}
        numbers = {namespace: len(chunks) for namespace, chunks in parts.items()}
        if (number := sum(numbers.values())) > keeping.MAX_PARTS:
            raise errors.PlanError(
                f"{self.key}: expected a journal of at most {keeping.MAX_PARTS} Secrets, found "
                f"{number}: change less at once"
            )
        content = {
            "part": parts[self.namespace][0],
            "parts": json.dumps(numbers).encode(),
            "sha256": keeping.digest(data).encode(),
            "phase": record.phase.value.encode(),
            "operation": record.operation.encode(),
            "run": self.run.encode(),
        }
        owner = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "name": lease.key.name}
        # until all is written the lease owns it, and goes with it where this run is killed here
        head = self._create(self.key, content, {**owner, "uid": lease.uid})
        try:
            for namespace, keys in self._keys(head).items():
                # it cannot own what is in another namespace
                owns = keeping.as_owner(head) if namespace == self.namespace else None
                for key, part in zip(keys, parts[namespace], strict=True):
                    if key != self.key:
                        self._create(key, {"part": part}, owns)
            self._head = head
            confirm()
            is_journal = self._update(keeping.without_owners)
        except (errors.ClusterError, errors.UpdateInProgressError):
            self._discard()
            raise
        if not is_journal:
            raise self._lost

    def first_since(self, version: str) -> Callable[[], bool]:
        """Return what tells whether this head is the first that any run writes after a version.

        Every run writes one before it changes anything: then none has changed anything since. The
        server is asked before the head is written, so that nothing waits for the answer.

        :param version: of the collection, see :attr:`read_at`.
        :returns: tells False also where it cannot be known: the account may not watch Secrets, or
            the version is too old (410), or not known.
        """
        seen = context_threads.in_background(lambda: self._first_event(version))

        def is_first() -> bool:
            event = seen()
            if event is None or event.type != "ADDED":
                return False
            return bool(event.object["metadata"]["uid"] == self._written["metadata"]["uid"])

        return is_first

    def _first_event(self, version: str) -> WatchEvent | None:
        if not version:
            return None
        try:
            events = self.cluster.watch(self._collection, version, _WATCH_SECONDS)
            return next((event for event in events if event.type != "BOOKMARK"), None)
        except errors.ClusterError as error:
            LOG.info("%s", error)
            return None

    def _discard(self) -> None:
        try:
            self.clear()
        except errors.ClusterError as error:
            LOG.warning("%s is left to the garbage collector: %s", self.key, error)

    def _create(self, key: ObjectKey, content: Mapping[str, bytes], owner: Json | None) -> Json:
        """Create the head or a part, in place of one that belongs to no journal."""
        body = keeping.secret(key, _TYPE, content, self.instance_id, _LABELS, owner=owner)
        if key == self.key:
            body = keeping.signed(body, self.cluster.journal_key)
        try:
            return self.cluster.create(body)
        except errors.ClusterError as error:
            live = self.cluster.get(key) if error.status == 409 else None
            if live is None:
                raise
            if (live.get("data"), keeping.owners(live)) == (body["data"], keeping.owners(body)):
                return live  # our own, whose response was lost
            if key == self.key and keeping.is_complete(live):
                raise errors.UpdateInProgressError(
                    f"another update of this VNF instance has begun: {self.key} is its journal"
                ) from error
            if key == self.key:
                self.clear()
            else:
                self._delete(live)
            return self.cluster.create(body)

    def claim(self, record: Record) -> Record | None:
        """Make this run, which holds the lease, the one that writes the journal.

        What the run before sent for the journal and has not arrived yet has no effect any more.

        :param record: as it was read.
        :returns: the record as it is now; None where the run before has removed it meanwhile.
        """
        if not self._update(
            lambda head: keeping.with_values(head, {"run": self.run}), of_any_run=True
        ):
            return None
        phase, ended, scripts = self._progress(self._written)
        return replace(record, phase=phase, ended=ended, scripts=scripts)

    def set_phase(self, record: Record, phase: Phase) -> Record:
        """Write the phase; return the record with it.

        :raises LeaseLostError: another run has the journal by now.
        """
        self._set({"phase": phase.value})
        return replace(record, phase=phase)

    def note(self, record: Record, ended: int, scripts: Sequence[ScriptReport] = ()) -> Record:
        """Write how many groups of steps have ended, and what their scripts reported; return the
        record with it.

        :param scripts: of the group that ended last.
        :raises LeaseLostError: another run has the journal by now.
        """
        record = replace(record, ended=ended, scripts=(*record.scripts, *scripts))
        reports = [report.as_dict() for report in record.scripts[-_MOST_SCRIPTS:]]
        for report in reports:
            report["output"] = report["output"][-_LONGEST_OUTPUT:]
        self._set({"groups": str(ended), "scripts": json.dumps(reports)})
        return record

    def remove(self) -> None:
        """Delete the journal: the update is finished or undone.

        :raises LeaseLostError: another run has the journal by now.
        """
        self.remove_elsewhere()
        here, _ = self._parts_of(self._written)
        try:
            self._delete(self._written)
        except errors.ClusterError as error:
            if error.status != 409:
                raise
            live = self.cluster.get(self.key)
            if live is not None:
                same_object = live["metadata"]["uid"] == self._written["metadata"]["uid"]
                if not same_object or keeping.text(live, "run") != self.run:
                    raise self._lost from error
                self._delete(live)
        self._delete_all(here)

    def remove_elsewhere(self) -> None:
        """Delete the parts of the journal that are in other namespaces, which only its head names.

        :raises LeaseLostError: another run has the journal by now.
        """
        _, elsewhere = self._parts_of(self._written)
        if elsewhere:
            self._set({"ended": "true"})
            self._delete_all(elsewhere)

    def _parts_of(self, head: Json) -> tuple[list[ObjectKey], list[ObjectKey]]:
        """Return the parts that belong to the head, and those in other namespaces."""
        keys = self._keys(head)
        return keys.pop(self.namespace)[1:], [key for others in keys.values() for key in others]

    def _delete_all(self, keys: Sequence[ObjectKey]) -> None:
        for key in reversed(keys):  # what is left of them begins with the first one
            part = self.cluster.get(key)
            if part is not None:  # the garbage collector may have been faster
                self._delete(part)

    def clear(self) -> None:
        """Delete what is there of a journal that was never complete, or of a removed one."""
        for attempt in range(1, _ATTEMPTS + 1):
            head = self.cluster.get(self.key)
            if head is None:
                break
            if keeping.is_complete(head):
                return
            try:
                self._delete_all(self._parts_of(head)[1])
                self._delete(head)
            except errors.ClusterError as error:
                if error.status != 409 or attempt == _ATTEMPTS:
                    raise  # 409: it was written meanwhile, and may be complete
        self._delete_all(self._stale_parts())

    @property
    def is_being_removed(self) -> bool:
        """Whether it was deleted, and a finalizer keeps it."""
        return "deletionTimestamp" in self._written["metadata"]

    @property
    def owner(self) -> Json:
        """The ownerReference of what is removed with the journal, should it stay behind."""
        return keeping.as_owner(self._written)

    # --- one version after another --------------------------------------------------------------

    # --- one version after another --------------------------------------------------------------

    def _set(self, values: Mapping[str, str]) -> None:
        if not self._update(lambda head: keeping.with_values(head, values)):
            raise self._lost

    def _update(self, edit: Callable[[Json], Json], *, of_any_run: bool = False) -> bool:
        """Write the head as edited; on a conflict read it again.

        :param of_any_run: edit it also where another run has written it last.
        :returns: whether that was possible: it is there, and this run's.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            head = keeping.signed(edit(self._written), self.cluster.journal_key)
            if head == self._written:
                return True
            try:
                self._head = self.cluster.replace(head)
                return True
            except errors.ClusterError as error:
                if error.status not in (404, 409) or attempt == _ATTEMPTS:
                    raise
            live = self.cluster.get(self.key)
            if live is None or live["metadata"]["uid"] != head["metadata"]["uid"]:
                return False
            if self.cluster.journal_key and not keeping.is_signed(live, self.cluster.journal_key):
                # what others put there is not to get our signature: it is written over
                live = {**live, "data": self._written.get("data")}
            if not of_any_run and keeping.text(live, "run") != self.run:
                return False
            self._head = live
        return False

    @property
    def _lost(self) -> errors.LeaseLostError:
        return errors.LeaseLostError(
            f"This run stopped where it was: {self.key}, its journal, is another run's by now"
        )

    def _delete(self, body: Json) -> None:
        key, metadata = ObjectKey.of(body), body["metadata"]
        self.cluster.delete(key, uid=metadata["uid"], version=metadata["resourceVersion"])
