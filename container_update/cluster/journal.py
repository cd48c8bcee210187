# SPDX-License-Identifier: Apache-2.0
"""What is needed to undo an update or to go on with it, kept in the cluster as Secrets.

Written before the first change and removed after the last: where there is one, an update is under
way or was interrupted, and any host can finish or undo it. A Secret, because it holds what the
CNF's own Secrets held. Nothing of that is ever in :meth:`OperationRecord.summary`.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from container_update.cluster import keeping
from container_update.cluster import operation_codec as codec
from container_update.cluster import operation_secrets as secrets
from container_update.cluster.lease import LeaseLock
from container_update.cluster.operation import Operation, Revision
from container_update.model import context_threads, errors
from container_update.model.cluster import Cluster, ReadOnlyCluster, WatchEvent, if_allowed
from container_update.model.objects import Collection, Json, ObjectKey
from container_update.model.operation import Phase, name_of
from container_update.model.packing import DAMAGED
from container_update.model.scripts import ScriptReport

LOG = logging.getLogger(__name__)

_ATTEMPTS = 5
_TYPE, _LABELS = "container-update/journal", {"container-update/journal": "true", **keeping.KEPT}
_WATCH_SECONDS = 5.0
"""For how long the event about a Secret that was just created is waited for."""


@dataclass
class JournalReader:
    """The journal of one VNF instance, to be read.

    Its head is created first, and is a journal only when all parts are there: until then nothing
    was changed, and it belongs to the lease of its run, so that the garbage collector removes what
    a late request creates. The operation has ended once the head is removed.
    """

    cluster: ReadOnlyCluster
    namespace: str
    instance_id: str | None
    read_at: str = field(default="", init=False)
    """The version of the collection when the journal was read; empty where it is unknown."""
    _head: Json | None = field(default=None, init=False)
    """As this run read or wrote it last."""

    def read(self) -> Operation | None:
        """Return the operation under way, None where there is none.

        :raises ContainerUpdateError: a part is missing or damaged, or the journal is not signed.
        """
        self._head = head = self._read_head()
        if head is None or not keeping.is_complete(head):
            return None
        self._refuse_unsigned(head)
        try:
            parts = secrets.read_parts(self.cluster, head)
            self._refuse_incomplete(head, parts)
            operation = codec.decode(head, parts)
        except DAMAGED as error:  # or another program's Secret of this name
            raise self._damaged from error
        if isinstance(operation, Revision):
            raise self._damaged
        return operation

    def _refuse_incomplete(self, head: Json, parts: Mapping[str, bytes]) -> None:
        lost = (keys for name, keys in codec.part_keys(head).items() if name not in parts)
        for key in itertools.chain.from_iterable(lost):
            if self.cluster.get(key) is None:
                raise errors.ContainerUpdateError(
                    f"{key}: this part of the journal is missing: {self._by_hand}"
                )
            raise self._damaged

    def _read_head(self) -> Json | None:
        """Read it as a list of one: only a list has a version where there is no journal."""
        listing = if_allowed(partial(self.cluster.list, self._collection), None)
        if listing is None:
            return self.cluster.get(self.key)
        self.read_at = listing.resource_version
        return listing.items[0] if listing.items else None

    @property
    def _collection(self) -> Collection:
        """The Secret of that name alone."""
        return replace(Collection.of(self.key), fields=f"metadata.name={self.key.name}")

    def phase_of(self, operation: str) -> Phase | None:
        """Return the phase of an operation; None where its journal is not there any more."""
        head = self.cluster.get(self.key)
        if head is None or not keeping.is_complete(head):
            return None
        self._refuse_unsigned(head)
        progress = self._progress(head)
        phase: Phase = progress["phase"]
        return phase if progress["operation"] == operation else None

    def _progress(self, head: Json) -> dict[str, Any]:
        """Return the attributes of an operation that its head says."""
        try:
            return codec.decode_progress(head)
        except DAMAGED as error:
            raise self._damaged from error

    def _refuse_unsigned(self, head: Json) -> None:
        if not keeping.is_trusted(head, self.cluster.journal_key):
            key = self.cluster.journal_key
            why = keeping.why_untrusted("a journal", keeping.signer(head), key)
            raise errors.ContainerUpdateError(
                f"{self.key}: {why}; or {self._by_hand}",
                next_step=errors.NextStep.FIX_AND_RETRY,
            )

    def refuse_copy(self) -> None:
        """Refuse a signed journal that is a copy: a signature has no time."""
        if self.cluster.journal_key and keeping.is_copy(self._written):
            raise errors.ContainerUpdateError(
                f"{self.key}: expected the journal of an operation in the Secret that it wrote, "
                "found a copy, perhaps of one that has ended since: nothing was written: "
                f"{keeping.WITHOUT_KEY}; or {self._by_hand}",
                next_step=errors.NextStep.FIX_AND_RETRY,
            )

    @property
    def _damaged(self) -> errors.ContainerUpdateError:
        return errors.ContainerUpdateError(f"{self.key}: the journal is damaged: {self._by_hand}")

    @property
    def _by_hand(self) -> str:
        """What a person can do, with the command that deletes it."""
        here = [self.key, *filter(self._is_here, secrets.parts_of(self._head or {}))]
        command = f"kubectl delete secret {' '.join(key.name for key in here)} -n {self.namespace}"
        how = "--cascade=orphan --ignore-not-found"
        return f"correct the CNF by hand, then run {command} {how}"

    def leftovers(self) -> tuple[ObjectKey, ...]:
        """Return what :meth:`clear` would delete."""
        head = self.cluster.get(self.key)
        if head is not None and keeping.is_complete(head):
            return ()
        parts = secrets.parts_of(head) if head else []
        return (*((self.key,) if head else ()), *(key for key in parts if self.cluster.get(key)))

    @property
    def key(self) -> ObjectKey:
        """The head."""
        return ObjectKey("", "Secret", self.namespace, name_of(self.instance_id))

    @property
    def _written(self) -> Json:
        assert self._head is not None, "the journal was read or written before"
        return self._head

    def _is_here(self, key: ObjectKey) -> bool:
        return key.namespace == self.namespace


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
        self, operation: Operation, lease: LeaseLock, confirm: Callable[[], object] = lambda: None
    ) -> None:
        """Write the operation, before anything is changed.

        :param lease: what this run holds.
        :param confirm: called when all is written and nothing is a journal yet; raises
            UpdateInProgressError where it must not become one.
        :raises UpdateInProgressError: there is one already.
        """
        encoded = codec.encode(operation, self.namespace)
        if encoded.size > keeping.MAX_PARTS:
            raise errors.PlanError(
                f"{self.key}: expected a journal of at most {keeping.MAX_PARTS} parts, found "
                f"{encoded.size}: change less at once"
            )
        owner = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "name": lease.key.name}
        # until all is written the lease owns it, and goes with it where this run is killed here
        data = {**encoded.head, "run": self.run.encode()}
        head = self._create(data, {**owner, "uid": lease.uid})
        try:
            secrets.write_parts(self.cluster, head, encoded)
            self._head = head
            confirm()
            is_journal = self._update(keeping.in_force)
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

    def _create(self, data: Mapping[str, bytes], owner: Json) -> Json:
        """Create the head, in place of one that is no journal."""
        body = keeping.secret(self.key, _TYPE, data, self.instance_id, _LABELS, owner=owner)
        body = keeping.sign(body, self.cluster.journal_key)
        try:
            return self.cluster.create(body)
        except errors.ClusterError as error:
            live = self.cluster.get(self.key) if error.status == 409 else None
            if live is None:
                raise
            if keeping.is_same(live, body):
                return live
            if keeping.is_complete(live):
                raise errors.UpdateInProgressError(
                    f"another update of this VNF instance has begun: {self.key} is its journal"
                ) from error
            self.clear()
            return self.cluster.create(body)

    def claim(self, operation: Operation) -> Operation | None:
        """Make this run, which holds the lease, the one that writes the journal.

        Late requests of the run before for the journal have no effect any more.

        :param operation: as it was read.
        :returns: its present state; None where the run before has removed it meanwhile.
        """
        run = {"run": self.run.encode()}
        if not self._update(lambda head: keeping.with_values(head, run), of_any_run=True):
            return None
        return replace(operation, **self._progress(self._written))

    def set_phase(self, operation: Operation, phase: Phase) -> Operation:
        """Write the phase; return the operation with it."""
        return self._note(replace(operation, phase=phase))

    def note(
        self, operation: Operation, ended: int, scripts: Sequence[ScriptReport] = ()
    ) -> Operation:
        """Write how many groups have ended, and their scripts' reports; return the operation."""
        scripts = (*operation.scripts, *scripts)
        return self._note(replace(operation, ended_groups=ended, scripts=scripts))

    def _note(self, operation: Operation) -> Operation:
        self._set(codec.encode_progress(operation))
        return operation

    def remove(self) -> None:
        """Delete the journal: the update is finished or undone."""
        self.remove_elsewhere()
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

    def _delete(self, head: Json) -> None:
        """Delete a head; before it its parts elsewhere, which nothing else names."""
        parts = secrets.parts_of(head)
        secrets.delete_parts(self.cluster, itertools.filterfalse(self._is_here, parts))
        secrets.delete(self.cluster, head)
        secrets.delete_parts(self.cluster, filter(self._is_here, parts))

    def remove_elsewhere(self) -> None:
        """Delete the parts of the journal in other namespaces, which only its head names."""
        if elsewhere := list(itertools.filterfalse(self._is_here, secrets.parts_of(self._written))):
            self._set({"ended": b"true"})
            secrets.delete_parts(self.cluster, elsewhere)

    def clear(self) -> None:
        """Delete the rest of a journal that was never complete, or was removed."""
        for attempt in range(1, _ATTEMPTS + 1):
            head = self.cluster.get(self.key)
            if head is None or keeping.is_complete(head):
                return
            try:
                self._delete(head)
                return
            except errors.ClusterError as error:
                if error.status != 409 or attempt == _ATTEMPTS:
                    raise  # 409: it was written meanwhile, and may be complete

    @property
    def is_being_removed(self) -> bool:
        """Whether it was deleted, and a finalizer keeps it."""
        return "deletionTimestamp" in self._written["metadata"]

    @property
    def owner(self) -> Json:
        """The ownerReference of Secrets that the garbage collector removes with the journal."""
        return keeping.as_owner(self._written)

    # --- one version after another --------------------------------------------------------------

    def _set(self, values: Mapping[str, bytes]) -> None:
        if not self._update(lambda head: keeping.with_values(head, values)):
            raise self._lost

    def _update(self, edit: Callable[[Json], Json], *, of_any_run: bool = False) -> bool:
        """Write the head as edited; on a conflict read it again.

        :param of_any_run: edit it also where another run has written it last.
        :returns: whether that was possible: it is there, and this run's.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            head = keeping.sign(edit(self._written), self.cluster.journal_key)
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
            if not keeping.is_trusted(live, self.cluster.journal_key):
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
