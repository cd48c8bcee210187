# SPDX-License-Identifier: Apache-2.0
"""Retries: an API server that is away for a while fails no good update.

Source: API conventions (429, 500, 503, 504 and Retry-After); pauses grow and have jitter, so that
many clients do not come back at once. Every write of an update is safe to send twice.
"""

from __future__ import annotations

import copy
import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ParamSpec, TypeVar, cast

from container_update.cluster.rights import missing_rights
from container_update.model import context_threads
from container_update.model.cluster import (
    Cluster,
    DryRun,
    DryRunVerb,
    Keep,
    Listing,
    ReadOnlyCluster,
    Right,
    WatchEvent,
)
from container_update.model.errors import ClusterError, ConversionError
from container_update.model.objects import Collection, Json, ObjectKey

LOG = logging.getLogger(__name__)

Answer = TypeVar("Answer")
P = ParamSpec("P")

CONCURRENT_REQUESTS = 16
"""Of one operation, watches and the lease aside: the next one is sent when one is answered, so that
a slow server gets no more than it can do."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
_SILENT_SECONDS = 10.0
"""For how long it is not said that a request is tried again: a server that restarts is back."""

_CONVERSION_SECONDS = 15.0
"""For how long a request is tried again whose object a webhook does not convert: its pods may have
just been replaced."""


class Retries:
    """Requests to a server, each repeated for *seconds* once the server has answered one."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._slots = threading.BoundedSemaphore(CONCURRENT_REQUESTS)
        self._answered = threading.Event()
        self._told: set[str] = set()
        """The errors that were logged as warnings: each of them once."""

    def send(self, request: Callable[P, Answer], *args: P.args, **kwargs: P.kwargs) -> Answer:
        """Return what *request* returns, in the end, or raise its last ClusterError."""
        began = time.monotonic()
        deadline, pause = began + self._seconds, _FIRST_PAUSE
        while True:
            try:
                with self._slots:
                    answer = request(*args, **kwargs)
            except ClusterError as error:
                if error.status is not None:
                    self._answered.set()
                wait = max(error.retry_after or 0.0, pause * random.uniform(0.5, 1.0))  # noqa: S311
                helps = error.transient and self._answered.is_set()
                if isinstance(error, ConversionError):  # the server is there
                    deadline = min(deadline, began + _CONVERSION_SECONDS)
                if not helps or time.monotonic() + wait > deadline:
                    raise
                LOG.info("%s; trying again in %.1f s", error, wait)
                if time.monotonic() - began >= _SILENT_SECONDS and str(error) not in self._told:
                    self._told.add(str(error))
                    LOG.warning("%s; trying again for %.0f s", error, deadline - time.monotonic())
                time.sleep(wait)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                self._answered.set()
                return answer


class RetryingReader:
    """A cluster that can only be read, with retries; implements ReadOnlyCluster.

    What plans is given one: none of its methods writes.

    :param cluster: where the requests go.
    :param seconds: for how long a request is retried; see :class:`Retries`.
    """

    def __init__(self, cluster: ReadOnlyCluster, seconds: float) -> None:
        self._cluster = cluster
        self.access, self.journal_key = cluster.access, cluster.journal_key
        self._retries = Retries(seconds)
        self._rights: dict[str, Callable[[], Callable[[Right], bool]]] = {}
        """Those that were asked for, by namespace."""

    @property
    def requests(self) -> int:
        """How many requests were sent so far."""
        return self._cluster.requests

    @property
    def unretried(self) -> ReadOnlyCluster:
        """The cluster without retries, for a caller that repeats a request itself."""
        inner = self._cluster
        return inner.unretried if isinstance(inner, RetryingReader) else inner

    def list(self, collection: Collection, keep: Keep | None = None) -> Listing:
        """See Cluster."""
        return self._retries.send(self._cluster.list, collection, keep)

    def watch(
        self, collection: Collection, resource_version: str, seconds: float
    ) -> Iterator[WatchEvent]:
        """See Cluster; not retried, the watcher does that."""
        return self._cluster.watch(collection, resource_version, seconds)

    def get(self, key: ObjectKey) -> Json | None:
        """See Cluster."""
        return self._retries.send(self._cluster.get, key)

    def log(self, pod: ObjectKey, container: str, *, previous: bool, lines: int, limit: int) -> str:
        """See Cluster; not retried, nothing depends on it."""
        return self._cluster.log(pod, container, previous=previous, lines=lines, limit=limit)

    def look_up_versions(self, group: str, kind: str) -> frozenset[str]:
        """See Cluster."""
        return self._retries.send(self._cluster.look_up_versions, group, kind)

    def dry_run(self, verb: DryRunVerb, body: Json) -> DryRun:
        """See Cluster."""
        return self._retries.send(self._cluster.dry_run, verb, body)

    def ask_rights(self, namespace: str) -> None:
        """Begin to ask for the rights in a namespace, which :meth:`missing_rights` tells then."""
        self._rights[namespace] = context_threads.in_background(lambda: self.rights_in(namespace))

    def rights_in(self, namespace: str) -> Callable[[Right], bool]:
        """See Cluster."""
        return self._retries.send(self._cluster.rights_in, namespace)

    def missing_rights(self, rights: Sequence[Right]) -> tuple[Right, ...]:
        """See Cluster."""
        return missing_rights(rights, self._rights_asked_in)

    def _rights_asked_in(self, namespace: str) -> Callable[[Right], bool]:
        asked = self._rights.pop(namespace, None)
        return asked() if asked else self.rights_in(namespace)

    def close(self) -> None:
        """See Cluster."""
        self._cluster.close()


class RetryingCluster(RetryingReader):
    """A Cluster that retries; implements :class:`container_update.model.cluster.Cluster`."""

    _cluster: Cluster
    _may_write: Callable[[], object] = staticmethod(lambda: None)

    def __init__(self, cluster: Cluster, seconds: float) -> None:
        super().__init__(cluster, seconds)

    @property
    def unretried(self) -> Cluster:
        """See RetryingReader."""
        return cast("Cluster", super().unretried)

    def with_guard(self, may_write: Callable[[], object]) -> RetryingCluster:
        """Return a client that calls *may_write*, which may raise, before every try of a write."""
        guarded = copy.copy(self)
        guarded._may_write = may_write
        return guarded

    def _write(self, write: Callable[P, Answer], *args: P.args, **kwargs: P.kwargs) -> Answer:
        def write_guarded() -> Answer:
            self._may_write()
            return write(*args, **kwargs)

        return self._retries.send(write_guarded)

    def create(self, body: Json) -> Json:
        """See Cluster."""
        return self._write(self._cluster.create, body)

    def replace(self, body: Json) -> Json:
        """See Cluster."""
        return self._write(self._cluster.replace, body)

    def delete(self, key: ObjectKey, **how: Any) -> None:
        """See Cluster."""
        self._write(self._cluster.delete, key, **how)

    def evict(self, key: ObjectKey, *, uid: str | None = None) -> None:
        """See Cluster."""
        self._write(self._cluster.evict, key, uid=uid)
