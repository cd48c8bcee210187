# SPDX-License-Identifier: Apache-2.0
"""Live objects, kept fresh: one list and then one watch for each kind and namespace in use.

Events wake waiting threads; nothing polls. A watch that ends or breaks continues from the last
version; after a 410 (too old) it lists again. A silent one may have a dead connection: a waiting
thread then lists once. Source: API concepts, "Efficient detection of changes".
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter
from types import MappingProxyType

from container_update.cluster.scope import Scope
from container_update.model import context_threads
from container_update.model.cluster import Listing, ReadOnlyCluster, WatchEvent
from container_update.model.errors import ClusterError
from container_update.model.objects import Collection, Json, ObjectKey
from container_update.workloads import ownership
from container_update.workloads.kind import POD, REPLICA_SET
from container_update.workloads.registry import kind_of_body

LOG = logging.getLogger(__name__)

_RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)
"""How long a watch waits that did not last, however it ended, the last one over and over."""

_SILENT_SECONDS = 30.0
"""After that time without event or bookmark a collection is listed again, if an operation
waits for it. A server sends a bookmark each minute, roughly."""

_MOST_DROPPED = 500
"""How many foreign objects are read before a collection is read in parts."""

_READERS = 8
"""How many objects of kinds that are not listed are read at the same time."""

_NAME = attrgetter("name")

_HOPELESS = frozenset({401, 403, 404})
"""Statuses of a watch that another try will not change."""


class _CrowdedError(Exception):
    """A collection holds many foreign objects: it is not read to its end."""


@dataclass
class _Awaited:
    """The changes of a workload and of what it controls, for waiting threads."""

    changed: threading.Condition
    number: int = 0


class Informer:
    """A cache of the live objects of some collections.

    Hold ``lock`` while reading several things that belong together. Use as a context manager:
    leaving it ends the watches.

    :param scope: what the operation is about; all else is dropped.
    """

    def __init__(
        self,
        cluster: ReadOnlyCluster,
        scope: Scope,
        *,
        watch_seconds: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._scope = scope
        self._watch_seconds = watch_seconds
        self._objects: dict[ObjectKey, Json] = {}
        self._listed: defaultdict[Collection, set[ObjectKey]] = defaultdict(set)
        """The known objects by kind and namespace, without selectors."""
        self._owned: defaultdict[str | None, set[ObjectKey]] = defaultdict(set)
        """The known objects by the UID of their controller."""
        self._keys: dict[str, ObjectKey] = {}
        """Of the known objects, by UID."""
        self._above: dict[str, frozenset[ObjectKey]] = {}
        """By the UID of a controller that is gone: it and those above it. Its pods outlive it."""
        self._versions: dict[Collection, str] = {}
        self._selected: dict[Collection, Collection] = {}
        """What the server is asked for, of each collection that was read."""
        self._parts: dict[Collection, Sequence[Collection]] = {}
        """The parts in which a collection with many foreign objects is read instead; see Scope."""
        self._populated: set[str] = set()
        self._watched: dict[Collection, object] = {}
        """A token for each: a thread whose token is another one by now has nothing more to say."""
        self._clock = clock
        self._heard: dict[Collection, float] = {}
        """When each watch showed a sign of life, or its collection was listed, by the clock."""
        self._stopped = threading.Event()
        self._broken: ClusterError | None = None
        self.lock = threading.RLock()
        self._awaited: dict[ObjectKey | None, _Awaited] = {}
        """The workloads that are waited for; None: for any change."""

    def __enter__(self) -> Informer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def include(
        self, keys: Iterable[ObjectKey], manifests: Iterable[tuple[ObjectKey, Json]] = ()
    ) -> None:
        """Keep these objects too, before they are read or created; see Scope."""
        self._scope.include(keys, manifests)

    @property
    def live(self) -> Mapping[ObjectKey, Json]:
        """Every known object by identity, as it is now."""
        with self.lock:
            return MappingProxyType(dict(self._objects))

    @property
    def namespaces(self) -> frozenset[str]:
        """The namespaces in which an object was read, also one that was dropped."""
        return frozenset(self._populated)

    def get(self, key: ObjectKey) -> Json | None:
        """Return the object as last seen, None where there is none."""
        with self.lock:
            return self._objects.get(key)

    def all(self, collection: Collection) -> tuple[Json, ...]:
        """Return the objects of a collection, as last seen."""
        with self.lock:
            return self._by_name(self._listed.get(collection, ()))

    def pods_of(self, workload: Json) -> tuple[Json, ...]:
        """Return the pods that a workload controls, as last seen, by owner references."""
        kind = kind_of_body(workload)
        with self.lock:
            owners = [workload]
            if kind is not None and kind.replica_set_label is not None:
                owners = [self._objects[key] for key in self._owned_by(workload)]
            keys = [key for owner in owners for key in self._owned_by(owner)]
            return self._by_name(key for key in keys if (key.group, key.kind) == POD)

    def pods_or_itself(self, workload: Json) -> tuple[Json, ...]:
        """Return the pods that a workload controls; of a bare Pod the Pod."""
        kind = kind_of_body(workload)
        return (workload,) if kind is not None and kind.is_pod else self.pods_of(workload)

    def replica_sets_of(self, workload: Json) -> tuple[Json, ...]:
        """Return the ReplicaSets that a workload controls, as last seen, by owner references."""
        with self.lock:
            keys = self._owned_by(workload)
            return self._by_name(key for key in keys if (key.group, key.kind) == REPLICA_SET)

    def _owned_by(self, owner: Json) -> Set[ObjectKey]:
        return self._owned.get(owner["metadata"]["uid"], frozenset())

    def _by_name(self, keys: Iterable[ObjectKey]) -> tuple[Json, ...]:
        return tuple(self._objects[key] for key in sorted(keys, key=_NAME))

    def read(
        self, keys: Iterable[ObjectKey], listed: frozenset[Collection]
    ) -> Mapping[ObjectKey, Json]:
        """List these collections, and read objects elsewhere one by one; return all."""
        self.list(listed)
        others = [key for key in keys if Collection.of(key) not in listed]
        with context_threads.pool(_READERS) as pool:
            bodies = pool.map(self._cluster.get, others)
            one_by_one = {key: body for key, body in zip(others, bodies, strict=True) if body}
        return {**self.live, **one_by_one}

    def in_order(self, collections: Iterable[Collection]) -> Iterator[Collection]:
        """Yield collections in the order in which they are to be read; see Scope."""
        yield from chain.from_iterable(self._scope.rounds(collections))

    def list(self, collections: Iterable[Collection]) -> None:
        """Read the collections anew, several at a time; forget objects that are gone."""
        rounds = self._scope.rounds(collections)
        with context_threads.pool(8) as pool:
            for round_ in rounds:
                self._select(round_)  # here: the caller may hold the lock, those threads cannot
                self._read_all(pool, round_)
            for kind in (REPLICA_SET, POD):
                again = [c for c in chain(*rounds) if (c.group, c.kind) == kind and self._lacks(c)]
                self._read_all(pool, again)
        self._scope.forget_missed()

    def _read_all(self, pool: Executor, collections: Sequence[Collection]) -> None:
        for collection, listing in zip(collections, pool.map(self._read, collections), strict=True):
            self._replace(collection, listing)

    def _lacks(self, collection: Collection) -> bool:
        """Tell whether to read a collection again, now that its controllers are known."""
        before = self._selected[collection], self._parts[collection]
        self._select([collection])
        now = self._selected[collection], self._parts[collection]
        return now != before or self._scope.has_missed

    def _select(self, collections: Iterable[Collection]) -> None:
        live = self.live
        for each in collections:
            labels, self._parts[each] = self._scope.select(each, live)
            self._selected[each] = replace(each, labels=labels)

    def _read(self, collection: Collection) -> Listing:
        parts, dropped = self._parts[collection], 0

        def keep(body: Json) -> Json | None:
            nonlocal dropped
            self._populated.add(collection.namespace)
            kept = self._scope.keep(body)
            dropped += kept is None
            if parts and dropped > _MOST_DROPPED:
                raise _CrowdedError
            return kept

        try:
            return self._cluster.list(self._selected[collection], keep)
        except _CrowdedError:
            listings = [self._cluster.list(part, self._scope.keep) for part in parts]
            items = tuple(body for listing in listings for body in listing.items)
            return Listing(items, listings[0].resource_version)  # a watch from there misses nothing

    def changed_since_listed(self, keys: Iterable[ObjectKey]) -> tuple[ObjectKey, ...]:
        """List their collections again; return the objects that have changed since.

        To be called before the collections are watched. What a controller or an autoscaler writes
        (metadata, status, the number of replicas) is no change.
        """
        listed = [key for key in keys if Collection.of(key) in self._versions]
        before = {key: self.get(key) for key in listed}
        self.list({Collection.of(key) for key in listed})
        return tuple(key for key in listed if _content(before[key]) != _content(self.get(key)))

    def events_about(self, body: Json, **fields: str) -> tuple[Json, ...]:
        """Read the Events about an object with these fields; none where the account may not."""
        about = {"involvedObject.uid": body["metadata"]["uid"], **fields}
        selector = ",".join(f"{name}={value}" for name, value in about.items())
        events = Collection("", "Event", body["metadata"]["namespace"], selector)
        try:
            return self._cluster.list(events).items
        except ClusterError as error:
            LOG.info("%s", error)
            return ()

    def is_accepted(self, body: Json) -> bool:
        """Tell whether the server would create an object now, as far as this account may ask it."""
        try:
            self._cluster.dry_run("create", body)
        except ClusterError as error:
            LOG.info("%s", error)
            return False
        return True

    def everything(self, kind: tuple[str, str]) -> tuple[Json, ...]:
        """Return all objects of a (group, kind) in the collections that were read.

        What the scope has dropped is read again.

        :raises ClusterError: it cannot be read.
        """
        read = sorted(each for each in self._versions if (each.group, each.kind) == kind)
        return tuple(body for each in read for body in self._cluster.list(each).items)

    def observe(self, body: Json) -> None:
        """Store an object that a write returned: the watch delivers it only later."""
        with self.lock:
            key = ObjectKey.of(body)
            self._store(key, body)
            self._wake(self._with_owners(key, body))

    def watch(self, collections: Iterable[Collection]) -> None:
        """Keep these collections, listed before, fresh from now on."""
        for collection in sorted(set(collections) - self._watched.keys()):
            self._start(collection)

    def _start(self, collection: Collection) -> None:
        token = self._watched[collection] = object()
        self._heard[collection] = self._clock()
        name = f"watch {collection}"
        context_threads.daemon(self._follow, collection, token, name=name).start()

    def ask_silent(self, collections: Iterable[Collection]) -> None:
        """List anew where a watch was silent for long; begin another where that shows news."""
        now = self._clock()
        with self.lock:
            silent = [
                each
                for each in collections
                if each in self._watched and now - self._heard[each] >= _SILENT_SECONDS
            ]
            self._heard |= dict.fromkeys(silent, now)  # no other thread asks meanwhile
        for collection in silent:
            try:
                listing = self._read(collection)
            except ClusterError as error:
                LOG.info("%s: the watch goes on", error)
                continue
            with self.lock:
                if self._has_news(collection, listing):
                    LOG.info("the watch of %s was silent: it is begun again", collection)
                    self._replace(collection, listing)
                    self._start(collection)

    def _has_news(self, collection: Collection, listing: Listing) -> bool:
        """Tell whether a list shows a change that no event and no write has told."""
        listed = [(self._objects.get(ObjectKey.of(body)), body) for body in listing.items]
        return bool(self._find_gone(collection, listing)) or any(
            known is None or _version(known) < _version(body) for known, body in listed
        )

    def stop(self) -> None:
        """End the watches; their threads end with the next event or the end of the connection."""
        self._stopped.set()

    def changes(self, key: ObjectKey | None = None) -> int:
        """Return how many changes :meth:`wait` would have waited for since the first call."""
        with self.lock:
            return self._awaited.setdefault(key, _Awaited(threading.Condition(self.lock))).number

    def wait(self, seconds: float, key: ObjectKey | None = None, seen: int | None = None) -> None:
        """Wait until something changes, at most *seconds*; the caller holds ``lock``.

        :param key: of a workload: until it changes, or what it controls; None: until anything does.
        :param seen: the number of :meth:`changes` that the caller knows of; None: all.
        :raises ClusterError: a watch ended for good.
        """
        if self._broken is not None:
            raise self._broken
        number = self.changes(key)
        if seen in (None, number):
            self._awaited[key].changed.wait(seconds)

    def wake(self) -> None:
        """Wake all waiting threads."""
        with self.lock:
            self._wake(None)

    def _follow(self, collection: Collection, token: object) -> None:
        pauses = iter(_RETRY_SECONDS)
        while not self._stopped.is_set() and self._watched[collection] is token:
            began = self._clock()
            try:
                self._follow_once(collection, token)
            except ClusterError as error:
                self._hear(collection, token)  # it knows by itself
                if error.status in _HOPELESS:
                    self._broken = error
                    self.wake()
                    return
                LOG.debug("%s; trying again", error)
            if self._clock() - began >= _RETRY_SECONDS[-1]:
                pauses = iter(_RETRY_SECONDS)
            else:
                self._stopped.wait(next(pauses, _RETRY_SECONDS[-1]))

    def _hear(self, collection: Collection, token: object) -> None:
        if self._watched[collection] is token:
            self._heard[collection] = self._clock()

    def _follow_once(self, collection: Collection, token: object) -> None:
        selected, version = self._selected[collection], self._versions[collection]
        try:
            for event in self._cluster.watch(selected, version, self._watch_seconds):
                if self._stopped.is_set() or self._watched[collection] is not token:
                    return
                self._apply(collection, event, token)
        except ClusterError as error:
            if error.status != 410:
                raise
            self._select([collection])
            self._replace(collection, self._read(collection))

    def _apply(self, collection: Collection, event: WatchEvent, token: object) -> None:
        with self.lock:
            if self._watched[collection] is not token:
                return
            self._hear(collection, token)
            self._versions[collection] = str(event.object["metadata"]["resourceVersion"])
            if event.type == "BOOKMARK":
                return
            key = ObjectKey.of(event.object)
            known, body = self._objects.get(key), self._scope.keep(event.object)
            if known is not None and body is not None and _has_new_status(key, known, body):
                concerned = {key}
            else:
                concerned = self._with_owners(key, known, body)
            if event.type == "DELETED" or body is None:  # None also of a pod that was released
                self._forget(key, event.object)
            else:
                self._store(key, body)
            self._wake(concerned)

    def _replace(self, collection: Collection, listing: Listing) -> None:
        with self.lock:
            self._versions[collection] = listing.resource_version
            for body in self._find_gone(collection, listing):
                self._forget(ObjectKey.of(body), body)
            for body in listing.items:
                self._store(ObjectKey.of(body), body)
            self._wake(None)

    def _find_gone(self, collection: Collection, listing: Listing) -> Sequence[Json]:
        """Return the known objects of a collection that a list lacks and that no write changed."""
        listed, newest = {ObjectKey.of(b) for b in listing.items}, _number(listing.resource_version)
        gone = [self._objects[key] for key in self._listed.get(collection, set()) - listed]
        return [body for body in gone if _version(body) <= newest]

    def _with_owners(self, key: ObjectKey, *bodies: Json | None) -> set[ObjectKey]:
        """Return an object and the controllers above it.

        :param bodies: the object before and after a change, None where there is none.

        Of a controller that is not known yet nothing is judged by what it owns: its own event tells
        whom that concerns.
        """
        keys = {key}
        for owned in {ownership.controller_uid(body) for body in bodies if body is not None}:
            uid = owned
            while (owner := self._keys.get(uid or "")) is not None:
                keys.add(owner)
                uid = ownership.controller_uid(self._objects[owner])
            keys |= self._above.get(uid or "", frozenset())
        return keys

    def _wake(self, concerned: set[ObjectKey] | None) -> None:
        """Wake the threads that wait for one of these objects or for any; None: all."""
        for key in self._awaited if concerned is None else (None, *concerned):
            if (awaited := self._awaited.get(key)) is not None:
                awaited.number += 1
                awaited.changed.notify_all()

    def _store(self, key: ObjectKey, body: Json) -> None:
        known = self._objects.get(key)
        if known is not None:
            if _version(known) > _version(body):
                return
            if _place(known) == _place(body):
                self._objects[key] = body
                return
            self._forget(key, known)
        self._objects[key] = body
        self._listed[Collection.of(key)].add(key)
        self._keys[body["metadata"]["uid"]] = key
        self._owned[ownership.controller_uid(body)].add(key)

    def _forget(self, key: ObjectKey, body: Json) -> None:
        uid = body["metadata"]["uid"]
        known = self._objects.get(key)
        if known is None or known["metadata"]["uid"] != uid:
            return
        if (key.group, key.kind) != POD:
            self._above[uid] = frozenset(self._with_owners(key, known))
        del self._objects[key]
        self._listed[Collection.of(key)].discard(key)
        self._keys.pop(uid, None)
        self._owned[ownership.controller_uid(known)].discard(key)


def _place(body: Json) -> tuple[object, ...]:
    """Return by what an object is found, beside its identity."""
    return body["apiVersion"], body["metadata"]["uid"], ownership.controller_uid(body)


def _has_new_status(key: ObjectKey, known: Json, body: Json) -> bool:
    """Tell whether a ReplicaSet has only a new status: its controller counts the pods itself."""
    if (key.group, key.kind) != REPLICA_SET or _place(known) != _place(body):
        return False
    return _content(known) == _content(body)


def _content(body: Json | None) -> Json | None:
    """Return what people and operations decide about an object, None where there is none."""
    if body is None:
        return None
    content = {name: body[name] for name in body if name not in ("metadata", "status")}
    content["uid"] = body["metadata"]["uid"]
    if isinstance(body.get("spec"), dict):
        content["spec"] = {name: body["spec"][name] for name in body["spec"] if name != "replicas"}
    return content


def _version(body: Json) -> int:
    """Return the resourceVersion as a number, 0 where it is none (ordered since 1.35)."""
    return _number(str(body["metadata"].get("resourceVersion", "")))


def _number(version: str) -> int:
    return int(version) if version.isdigit() else 0
