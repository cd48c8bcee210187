# SPDX-License-Identifier: Apache-2.0
"""The API server as the rest of the code sees it: the :class:`Cluster` protocol and its values."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from container_update.model.errors import ClusterError
from container_update.model.objects import Collection, Json, ObjectKey

LOG = logging.getLogger(__name__)

T = TypeVar("T")
U = TypeVar("U")

Keep = Callable[[Json], Json | None]
"""Returns the part of an object to keep while a list is read; None: none of it."""


@dataclass(frozen=True)
class Listing:
    """What is kept of the complete answer to a list, joined from its pages."""

    items: tuple[Json, ...]
    resource_version: str
    """Where a watch continues."""


@dataclass(frozen=True)
class WatchEvent:
    """ADDED, MODIFIED, DELETED, BOOKMARK, and the object it is about."""

    type: str
    object: Json


@dataclass(frozen=True)
class ClusterContext:
    """Which cluster it is and who asks, as the configuration calls them; nothing secret.

    >>> with connect("admin.conf") as cluster:  # doctest: +SKIP
    ...     print(cluster.context.name, cluster.context.namespace)
    site-1 cnf
    """

    server: str
    """The URL of the API server."""
    name: str | None = None
    """Of the kubeconfig's context. None, as are the next two: there is no kubeconfig."""
    cluster: str | None = None
    """The name of the context's cluster in the kubeconfig."""
    user: str | None = None
    """The name of the context's user in the kubeconfig; None also where it names none."""
    namespace: str = "default"
    """The namespace of commands that name none, as for ``kubectl``."""


DryRunVerb = Literal["create", "replace"]
"""Never a deletion: an API server takes a dry run of one for a deletion wherever the request has a
body, and what it would say of one, access reviews say too."""


@dataclass(frozen=True)
class DryRun:
    """What the server says of a write that is only tried."""

    body: Json
    """What it would store; empty where the server said only that the name is taken."""
    warnings: tuple[str, ...] = ()
    """For the client that sends such a write, in its own words."""


def if_allowed(read: Callable[[], T], otherwise: U, *, if_missing: bool = False) -> T | U:
    """Return what *read* returns; *otherwise* where the account may not read it (403).

    :param if_missing: also where the API server has no such collection (404).
    :raises ClusterError: another reason why it cannot be read.
    """
    try:
        return read()
    except ClusterError as error:
        if error.status != 403 and not (if_missing and error.status == 404):
            raise
        LOG.debug("%s", error)
        return otherwise


@dataclass(frozen=True, order=True)
class Right:
    """A permission of an account, as a rule of a Role grants it."""

    namespace: str
    group: str
    kind: str
    verb: str
    """'get', 'create', 'update', ..."""
    name: str = ""
    """Of the object; '': whatever its name."""
    subresource: str = ""
    """'eviction' for pods/eviction."""

    def __str__(self) -> str:
        kind = f"{self.kind}/{self.subresource}" if self.subresource else self.kind
        namespace = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {kind} {self.name}".rstrip() + namespace


class ReadOnlyCluster(Protocol):
    """An API server, to be read: there is no way to write.

    Every method may raise ClusterError; nothing is retried behind its back.

    >>> def is_current(cluster: ReadOnlyCluster, request: UpdateRequest) -> bool:
    ...     return plan_update(request, cluster).is_empty
    """

    @property
    def requests(self) -> int:
        """How many requests were sent so far."""

    @property
    def access(self) -> Mapping[str, str]:
        """How a coordination script reaches it: ``kubeconfig`` and ``context``; perhaps empty."""

    @property
    def journal_key(self) -> str:
        """The secret text that journals and the history are signed with; empty: they are not."""

    def list(self, collection: Collection, keep: Keep | None = None) -> Listing:
        """Return the objects of the collection, read in pages.

        :param keep: called with every object as soon as its page is read; None: all is kept.
        """

    def watch(
        self, collection: Collection, resource_version: str, seconds: float
    ) -> Iterator[WatchEvent]:
        """Yield the events after *resource_version*, for at most *seconds*.

        It ends earlier if the connection ends.

        :raises ClusterError: with status 410: the version is too old, list again.
        """

    def get(self, key: ObjectKey) -> Json | None:
        """Return the object; None if it does not exist."""

    def log(self, pod: ObjectKey, container: str, *, previous: bool, lines: int, limit: int) -> str:
        """Return the end of a container's log: at most *lines* lines and *limit* bytes.

        :param previous: of the run before the present one.
        """

    def look_up_versions(self, group: str, kind: str) -> frozenset[str]:
        """Ask anew in which apiVersions the server serves a kind: a definition was written."""

    def dry_run(self, verb: DryRunVerb, body: Json) -> DryRun:
        """Return what the server would do with a write, which it does not do.

        A field that the object's kind does not have is an error (``fieldValidation=Strict``).
        """

    def rights_in(self, namespace: str) -> Callable[[Right], bool]:
        """Return what tells whether this account has a right in a namespace, which is so where the
        server cannot tell; one request."""

    def missing_rights(self, rights: Sequence[Right]) -> tuple[Right, ...]:
        """Return the rights that this account does not have."""

    def close(self) -> None:
        """Close the connections."""


def items_if_allowed(
    cluster: ReadOnlyCluster, collection: Collection, *, if_missing: bool = False
) -> tuple[Json, ...]:
    """Return the objects of a collection; none as :func:`if_allowed`."""
    return if_allowed(lambda: cluster.list(collection).items, (), if_missing=if_missing)


class Cluster(ReadOnlyCluster, Protocol):
    """An API server that an operation may also write to.

    >>> def bring(cluster: Cluster, request: UpdateRequest) -> Outcome:
    ...     return update(request, cluster)
    """

    def create(self, body: Json) -> Json:
        """Create an object; return it as the server stored it."""

    def replace(self, body: Json) -> Json:
        """Replace the object of that name; with a resourceVersion, only that version (else 409)."""

    def delete(
        self,
        key: ObjectKey,
        *,
        uid: str | None = None,
        version: str | None = None,
        orphans: bool = False,
    ) -> None:
        """Delete an object, if it exists.

        :param uid: delete only the object with this UID (else 409).
        :param version: delete only this resourceVersion (else 409).
        :param orphans: what it owns stays, without an owner; otherwise it goes too.
        """

    def evict(self, key: ObjectKey, *, uid: str | None = None) -> None:
        """Request the eviction of a Pod, if it exists; with a UID, only of the Pod with this UID.

        :raises ClusterError: with status 429: a disruption budget forbids it now.
        """
