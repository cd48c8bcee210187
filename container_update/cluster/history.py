# SPDX-License-Identifier: Apache-2.0
"""The history of a VNF instance: a Secret, with parts, for each operation that has ended.

It is in the namespace of the VNF instance. The oldest operations are deleted. What goes wrong here
never makes an operation fail that has succeeded.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from container_update.cluster import keeping, uninstalled
from container_update.cluster import operation_codec as codec
from container_update.cluster import operation_secrets as secrets
from container_update.cluster.instance_record import InstanceRecord
from container_update.cluster.operation import Result, Revision
from container_update.cluster.uninstalled import SECRET_TYPE
from container_update.model.cluster import Cluster, ReadOnlyCluster
from container_update.model.errors import (
    ClusterError,
    LeaseLostError,
    PlanError,
    UpdateInProgressError,
)
from container_update.model.objects import Collection, Json, ObjectKey
from container_update.model.operation import name_of

LOG = logging.getLogger(__name__)

_OPERATION = "container-update/operation"
"""The label with the id of the operation."""
_ATTEMPTS = 3
_LABELS = {"container-update/history": "true", **keeping.KEPT}


def kept_instances(cluster: ReadOnlyCluster, namespace: str) -> frozenset[tuple[str, str | None]]:
    """Return the namespace and the id of all instances that have a history or a journal.

    :param namespace: '': all of them.
    :returns: None in place of the id of one that has no id.
    :raises ClusterError: the account may not list Secrets.
    """
    kept = Collection("", "Secret", namespace, labels="=".join(*keeping.KEPT.items()))
    bodies = cluster.list(kept, lambda body: {"metadata": body["metadata"]}).items
    found = (body["metadata"] for body in bodies)
    return frozenset(
        (each["namespace"], each["annotations"][keeping.INSTANCE_ANNOTATION] or None)
        for each in found
        if keeping.INSTANCE_ANNOTATION in (each.get("annotations") or {})
    )


class UntrustedError(PlanError):
    """The newest revision is not signed with the key of this host; nothing was written."""


@dataclass(frozen=True)
class History:
    """The revisions of one VNF instance."""

    cluster: ReadOnlyCluster
    namespace: str
    instance_id: str | None

    def read(self, *, whole: bool = False) -> tuple[Revision, ...]:
        """Return all revisions that are kept, the newest first.

        An older one that is not signed with the key of this host is left out, with a warning.

        :param whole: refuse one that cannot be read; else it is left out, with a warning.
        :raises ClusterError: the account may not list Secrets.
        :raises UntrustedError: the newest is not signed with the key of this host.
        :raises PlanError: names the Secret that cannot be read.
        """
        return tuple(self._read(_decode if whole else _decode_if_valid))

    def _read(self, decode: Callable[..., Revision | None]) -> Iterator[Revision]:
        """Yield the trusted revisions, the newest first.

        :raises UntrustedError: the newest is not: an older one must not stand for it.
        """
        for position, body in enumerate(self._own(self.every())):
            if self._is_trusted(body):
                parts = secrets.read_parts(self.cluster, body) if secrets.parts_of(body) else {}
                if (revision := decode(body, parts)) is not None:
                    yield revision
            elif position == 0:
                raise UntrustedError(self._why_untrusted(body))
            else:
                LOG.warning("%s; it is left out", self._why_untrusted(body))

    def _is_trusted(self, body: Json) -> bool:
        return keeping.is_trusted(body, self.cluster.journal_key)

    def _why_untrusted(self, body: Json) -> str:
        key, name = ObjectKey.of(body), self.cluster.journal_key
        why = keeping.why_untrusted("a revision of the history", keeping.signer(body), name)
        return f"{key}: {why}; or {_without(key)}"

    def instance(self) -> InstanceRecord | None:
        """Return what the instance runs from; None where that is not kept.

        An older revision must not stand for a newer one that cannot be read.

        :raises ClusterError: the account may not list Secrets.
        :raises PlanError: names the Secret that says so and cannot be read.
        """
        for revision in self._read(_decode):
            if revision.result is Result.DONE:
                try:
                    return InstanceRecord.decode(revision.instance) if revision.instance else None
                except ValueError as error:
                    raise _unreadable(self._key(revision.number), str(error)) from error
        return None

    def every(self) -> Sequence[Json]:
        """Return all Secrets of this type in the namespace, of other instances too."""
        every = Collection("", "Secret", self.namespace, fields=f"type={SECRET_TYPE}")
        return self.cluster.list(every).items

    def _own(self, every: Sequence[Json]) -> Sequence[Json]:
        """Return the Secrets of this instance, the newest revision first."""
        return sorted(filter(self._number, every), key=self._number, reverse=True)

    def _number(self, body: Json) -> int:
        """Return the number in the name of a Secret; 0 where it is of another instance."""
        match = re.fullmatch(rf"{re.escape(self._name)}\.v([0-9]+)", body["metadata"]["name"])
        return int(match[1]) if match else 0

    @property
    def _name(self) -> str:
        return name_of(self.instance_id)

    def _key(self, number: int) -> ObjectKey:
        return ObjectKey("", "Secret", self.namespace, f"{self._name}.v{number}")


@dataclass(frozen=True)
class HistoryWriter(History):
    """The revisions of one VNF instance, for the run that keeps one."""

    cluster: Cluster

    def keep(
        self, revision: Revision, limit: int, before: Callable[[], Sequence[Json]] | None = None
    ) -> Revision | None:
        """Keep a revision under the next number, and delete those beyond the limit.

        One of an operation that is kept already takes that one's place: an operation may have been
        undone by another run after its own had kept it as carried out.

        :param limit: how many are kept; 0: none is written.
        :param before: returns what :meth:`every` did; only this operation may write here since.
        :returns: None where it is not kept.
        """
        if limit <= 0:
            return None
        try:
            return self._keep(revision, limit, before or self.every)
        except (ClusterError, LeaseLostError) as error:
            # an installation had created the namespace, and has taken it back
            is_ending = isinstance(error, ClusterError) and "NamespaceTerminating" in error.causes
            if getattr(error, "status", None) != 404 and not is_ending:
                LOG.warning("the history of the VNF instance could not be written: %s", error)
        except Exception:  # another client may have changed them, and the operation has succeeded
            LOG.exception("the history of the VNF instance could not be written")
        return None

    def clear(self, ended: Revision | None = None) -> None:
        """Delete all revisions; keep a summary of them and of *ended*, the uninstallation."""
        try:
            others = self.every()
            bodies = self._own(others)
            if ended is not None:
                number = self._next_number(others)
                earlier = filter(None, map(_decode_if_valid, filter(self._is_trusted, bodies)))
                revisions = (replace(ended, number=number), *earlier)
                uninstalled.keep(revisions, others, self.cluster, self.namespace, self.instance_id)
            for body in bodies:
                self._delete(body)
        except ClusterError as error:
            if error.status != 403:
                raise
            LOG.warning("the history of the VNF instance stays: %s", error)

    def forget(self, kept: Revision) -> None:
        """Delete a revision: another run has gone on with its operation, and keeps its own."""
        body = self.cluster.get(self._key(kept.number))
        if body is not None:
            self._delete(body)

    def _keep(
        self, revision: Revision, limit: int, before: Callable[[], Sequence[Json]]
    ) -> Revision:
        for attempt in range(1, _ATTEMPTS + 1):
            every = before() if attempt == 1 else self.every()
            bodies = self._own(every)
            for body in bodies[:1]:
                labels = body["metadata"].get("labels") or {}
                if labels.get(_OPERATION) == revision.operation:  # written before, and gone on with
                    return self._keep_instead(body, revision)
            kept, encoded = self._encode(replace(revision, number=self._next_number(every)))
            try:
                head = self.cluster.create(self._head(kept, encoded))
                break
            except ClusterError as error:
                if error.status != 409 or attempt == _ATTEMPTS:  # 409: others took the number
                    raise
        secrets.write_parts(self.cluster, head, encoded)
        room = keeping.MAX_PARTS - encoded.size
        for body in self._superfluous(bodies, limit - 1, room, kept.result):
            self._delete(body)
        return kept

    def _next_number(self, every: Sequence[Json]) -> int:
        """Return the number of the next revision.

        A signature has no time: revisions of an earlier instance of this id that are put back are
        to be older than any of this one.
        """
        last = max(map(self._number, every), default=0)
        return (last or uninstalled.last_number(every, self.cluster, self.instance_id)) + 1

    def _keep_instead(self, body: Json, revision: Revision) -> Revision:
        kept, encoded = self._encode(replace(revision, number=self._number(body)))
        before = _decode_if_valid(body) if self._is_trusted(body) else None
        if before is None or before.result is not kept.result or encoded.parts:
            head = self._head(kept, encoded)
            head["metadata"]["resourceVersion"] = body["metadata"]["resourceVersion"]
            self._delete_parts(body)
            secrets.write_parts(self.cluster, self.cluster.replace(head), encoded)
        return kept

    def _encode(self, revision: Revision) -> tuple[Revision, codec.Encoded]:
        """Return a revision to keep: without its steps where they are too large."""
        revision = codec.reduce_revision(revision)
        with contextlib.suppress(PlanError):
            encoded = codec.encode(revision, self.namespace)
            if encoded.size <= keeping.MAX_PARTS:
                return revision, encoded
        revision = replace(revision, steps=(), is_kept=False)
        return revision, codec.encode(revision, self.namespace)

    def _head(self, revision: Revision, encoded: codec.Encoded) -> Json:
        key, labels = self._key(revision.number), {**_LABELS, _OPERATION: revision.operation}
        body = keeping.secret(key, SECRET_TYPE, encoded.head, self.instance_id, labels)
        return keeping.sign(body, self.cluster.journal_key)

    def _superfluous(
        self, bodies: Sequence[Json], number: int, room: int, result: Result
    ) -> Sequence[Json]:
        """Return those of older revisions, the newest first, that are beyond a number or have parts
        for which there is no room; the newest one that was carried out stays, which says what the
        instance runs from. One that is not trusted takes no other one's place.

        :param result: of the newest revision, which is not among them.
        """
        numbers = itertools.accumulate(map(self._is_trusted, bodies))
        sizes = itertools.accumulate(len(self._parts(body)) for body in bodies)
        sums = zip(numbers, sizes, strict=True)
        fitting = sum(1 for count, size in sums if count <= number and size <= room)
        beyond = list(bodies[fitting:])
        if result is Result.DONE or any(map(self._is_done, bodies[:fitting])):
            return beyond
        last = next(filter(self._is_done, beyond), None)
        return [body for body in beyond if body is not last]

    def _is_done(self, body: Json) -> bool:
        revision = _decode_if_valid(body) if self._is_trusted(body) else None
        return revision is not None and revision.result is Result.DONE

    def _delete(self, body: Json) -> None:
        self._delete_parts(body)  # which only the head names
        self.cluster.delete(ObjectKey.of(body), uid=body["metadata"]["uid"])

    def _delete_parts(self, body: Json) -> None:
        secrets.delete_parts(self.cluster, self._parts(body))

    def _parts(self, body: Json) -> Sequence[ObjectKey]:
        return secrets.parts_of(body) if self._is_trusted(body) else ()


def _decode(body: Json, parts: Mapping[str, bytes] = MappingProxyType({})) -> Revision:
    """Return the revision of a head; without its *parts* it has no steps and no record."""
    try:
        revision = codec.decode(body, parts)
    except UpdateInProgressError as error:
        raise _unreadable(ObjectKey.of(body), "is of another version of this program") from error
    except ValueError as error:
        raise _unreadable(ObjectKey.of(body), str(error)) from error
    if not isinstance(revision, Revision):
        raise _unreadable(ObjectKey.of(body), "has not ended")
    return revision


def _decode_if_valid(
    body: Json, parts: Mapping[str, bytes] = MappingProxyType({})
) -> Revision | None:
    """Return the revision of a head; None, with a warning, where there is none in it."""
    try:
        return _decode(body, parts)
    except PlanError as error:
        LOG.warning("%s", error)
        return None


def _unreadable(key: ObjectKey, why: str) -> PlanError:
    return PlanError(
        f"{key} of the history {why}: what the operation did, and what the VNF runs from since,"
        f" is not known: {_without(key)}"
    )


def _without(key: ObjectKey) -> str:
    """Return how an operation goes on without a revision, for people."""
    return (
        f"delete it (kubectl delete secret {key.name} -n {key.namespace}), and name the old "
        "package too"
    )


def led_to(revision: Revision) -> InstanceRecord | None:
    """Return what the instance ran from after a revision; None where that is not kept."""
    if not revision.instance:
        return None
    try:
        return InstanceRecord.decode(revision.instance)
    except ValueError as error:
        LOG.warning("what the VNF ran from after revision %d %s", revision.number, error)
        return None
