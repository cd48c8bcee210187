"""The API server as the rest of the code sees it: the :class:`Cluster` protocol and its values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from container_update.model.objects import Collection, Json, ObjectKey


@dataclass(frozen=True)
class Listing:
    """The answer to a list: complete, whatever number of pages it took."""

    items: tuple[Json, ...]
    resource_version: str
    """Where a watch goes on from."""


@dataclass(frozen=True)
class WatchEvent:
    """ADDED, MODIFIED, DELETED, BOOKMARK, and the object it is about."""

    type: str
    object: Json


@dataclass(frozen=True, order=True)
class Right:
    """Something that an account may be allowed to do, as the rules of a Role have it."""

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
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {kind} {self.name}".rstrip() + where


class Cluster(Protocol):
    """An API server. Every method may raise ClusterError; nothing is retried behind its back."""

    @property
    def requests(self) -> int:
        """How many requests were sent so far."""

    def list(self, collection: Collection) -> Listing:
        """Every object of the collection, in pages."""

    def watch(
        self, collection: Collection, resource_version: str, seconds: float
    ) -> Iterator[WatchEvent]:
        """Events after *resource_version*, for at most *seconds*; ends early when the connection
        does. ClusterError with status 410: the version is too old, list again."""

    def get(self, key: ObjectKey) -> Json | None:
        """The object, or None where there is none."""

    def create(self, body: Json) -> Json:
        """The object as created."""

    def replace(self, body: Json) -> Json:
        """Replace the object of that name. With a resourceVersion: only that version (else 409)."""

    def delete(self, key: ObjectKey, *, uid: str | None = None) -> None:
        """Delete it, only the one with this UID if given. Gone already: nothing happens."""

    def evict(self, key: ObjectKey, *, uid: str | None = None) -> None:
        """Ask for a Pod's eviction. ClusterError with status 429: a disruption budget forbids it
        now. Gone already: nothing happens."""

    def refused(self, rights: Sequence[Right]) -> tuple[Right, ...]:
        """Those that this account does not have; none where the server cannot tell."""

    def close(self) -> None:
        """Give the connections back."""
