# SPDX-License-Identifier: Apache-2.0
"""Keeps late requests of a run that lost its lease from taking effect.

A request may wait in a network for longer than a lease lasts. Every replacement and deletion names
the version of the object that it is meant for, so a run that goes on for another one first writes
each object of the plan: what the other run had sent meets a newer version (409). A late creation
cannot name a version; it names the journal as its owner instead, so that the garbage collector
deletes objects that are created after the journal was removed.

Source: API conventions, "Concurrency Control and Consistency"; garbage collection, "Owners and
dependents".
"""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from container_update.model import context_threads
from container_update.model.cluster import Cluster
from container_update.model.errors import ClusterError
from container_update.model.objects import Json, ObjectKey

LOG = logging.getLogger(__name__)

TAKEN_OVER = "container-update/taken-over"
"""On an object while a run goes on for another one: the id of this run. A label and no annotation,
because a Deployment's controller copies annotations to its ReplicaSets."""

Live = Mapping[ObjectKey, Json]
_ATTEMPTS = 10
_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.5
"""Between attempts, in seconds: while pods start and stop, their controller writes status often."""


@dataclass(frozen=True)
class Fence:
    """The fence around the objects of one journal, written by so many *workers*."""

    cluster: Cluster
    workers: int

    def raise_(self, keys: Iterable[ObjectKey], run: str) -> None:
        """Give each of these objects a new version.

        One that this account may not update is left without: its late requests take effect.

        :param run: the id of the run that goes on.
        """

        def mark(body: Json) -> None:
            body["metadata"]["labels"] = {**(body["metadata"].get("labels") or {}), TAKEN_OVER: run}

        self._edit_all(keys, mark, {})

    def lower(
        self,
        keys: Iterable[ObjectKey],
        owner: Json,
        released: Container[ObjectKey],
        known: Live = MappingProxyType({}),
    ) -> None:
        """Remove the label, and the owner that new objects were created with.

        :param owner: the ownerReference to the journal.
        :param released: which objects are to stay when the journal is removed. One that is none of
            them was created by a late request.
        :param known: objects as last seen, which saves reading those that have not changed since.
        """

        def release(body: Json) -> None:
            metadata = body["metadata"]
            (metadata.get("labels") or {}).pop(TAKEN_OVER, None)
            kept = list(metadata.get("ownerReferences") or ())
            if ObjectKey.of(body) in released:
                kept = [other for other in kept if other.get("uid") != owner["uid"]]
            for name, value in (("labels", metadata.get("labels")), ("ownerReferences", kept)):
                if value:
                    metadata[name] = value
                else:
                    metadata.pop(name, None)

        self._edit_all(keys, release, known)

    def _edit_all(
        self, keys: Iterable[ObjectKey], edit: Callable[[Json], None], known: Live
    ) -> None:
        with context_threads.pool(self.workers) as pool:
            list(pool.map(lambda key: self._edit(key, edit, known), dict.fromkeys(keys)))

    def _edit(self, key: ObjectKey, edit: Callable[[Json], None], known: Live) -> None:
        seen = known.get(key)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                if seen and seen["apiVersion"] == key.api_version and self._write(seen, edit):
                    return
                live = self.cluster.get(key)
                if live is not None:
                    self._write(live, edit)
                return
            except ClusterError as error:
                if error.status == 403:
                    LOG.warning("late requests for %s are not kept out: %s", key, error)
                    return
                if error.status not in (404, 409) or attempt == _ATTEMPTS:
                    raise
                seen = None
                time.sleep(min(_FIRST_PAUSE * 2 ** (attempt - 1), _LONGEST_PAUSE))

    def _write(self, live: Json, edit: Callable[[Json], None]) -> bool:
        """Write an object as it is after *edit*; return whether that changes anything."""
        changed = copy.deepcopy(live)
        edit(changed)
        if changed == live:
            return False
        self.cluster.replace(changed)
        return True
