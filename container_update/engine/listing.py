# SPDX-License-Identifier: Apache-2.0
"""Which VNF instances a cluster has, by the Secrets that their operations have left there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from container_update.cluster import uninstalled
from container_update.cluster.history import History, kept_instances
from container_update.cluster.operation import Revision
from container_update.cluster.retry import RetryingReader
from container_update.engine import instances, resume
from container_update.engine.instances import WorkloadState
from container_update.model.cluster import ReadOnlyCluster
from container_update.model.errors import ClusterError, ContainerUpdateError
from container_update.model.objects import Json
from container_update.model.operation import Status
from container_update.model.options import Options
from container_update.model.plan import UNINSTALL
from container_update.model.requests import names
from container_update.model.times import time_of

LOG = logging.getLogger(__name__)
ValueT = TypeVar("ValueT")


@dataclass(frozen=True)
class InstanceState:
    """One VNF instance: its package, its workloads, its operation under way."""

    namespace: str
    instance_id: str | None
    workloads: tuple[WorkloadState, ...]
    last: Revision | None
    """The newest operation that has ended; None: none is kept."""
    package: str
    """The package that it runs from; '': not known."""
    current: Status | None
    """None: its history or its journal is not trusted."""

    @property
    def ready(self) -> int:
        """How many of its pods are ready."""
        return sum(each.ready for each in self.workloads)

    @property
    def desired(self) -> int:
        """How many pods it should have."""
        return sum(each.desired for each in self.workloads)

    @property
    def created(self) -> str | None:
        """When the oldest of its workloads was created, in UTC (RFC 3339); None: it has none."""
        times = [time_of(each.created) for each in self.workloads if each.created]
        return min(times).isoformat() if times else None

    @property
    def _is_uninstalled(self) -> bool:
        return self.last is not None and self.last.origin.kind == UNINSTALL

    @property
    def state(self) -> str:
        """In a word or two: the operation under way, else the state of the workloads."""
        current = self.current
        if self._is_uninstalled:
            return "uninstalled"
        if current is None:
            return "unknown"
        if current.is_held:
            return "waits for a person"
        if current.record is not None or current.holder:
            return "in progress" if current.is_running else "interrupted"
        is_ready = self.ready >= self.desired and not any(each.trouble for each in self.workloads)
        return "ready" if is_ready else "degraded"

    @property
    def under_way(self) -> str:
        """What is under way, or by whom it was uninstalled, for people; '': nothing."""
        if self.last and self._is_uninstalled:
            origin = self.last.origin
            return f"uninstalled by {origin.who}{f': {origin.why}' if origin.why else ''}"
        if self.current is None:
            return "not known: its records are not signed with the key of this host"
        record = self.current.record
        if record is None:
            held = f"held by {self.current.holder}" if self.current.holder else ""
            return held or str(self.current.frozen or "")
        return f"operation of {record.host}, {record.progress(runs=self.current.is_running)}"

    def as_dict(self) -> Json:
        """Return the same as plain values."""
        return {
            "namespace": self.namespace,
            "instanceId": self.instance_id,
            "package": self.package,
            "state": self.state,
            "created": self.created,
            "ready": self.ready,
            "desired": self.desired,
            "operation": self.last.origin.title if self.last else None,
            "result": self.last.result.value if self.last else None,
            "ended": self.last.ended if self.last else None,
            "underWay": self.under_way,
        }


def list_instances(
    cluster: ReadOnlyCluster,
    namespace: str = "",
    options: Options = Options(),  # noqa: B008
) -> tuple[InstanceState, ...]:
    """Return the installed VNF instances of a namespace, or of the whole cluster.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     for each in list_instances(cluster):
    ...         print(each.namespace, each.instance_id, f"{each.ready}/{each.desired}")
    core upf-1 12/12

    :param namespace: '': all of them.
    :raises ClusterError: the account may not list Secrets there.
    """
    reader = RetryingReader(cluster, options.retry_seconds)
    by_name = sorted(kept_instances(reader, namespace), key=lambda each: (each[0], each[1] or ""))
    with _warned_once() as refused:
        states = [_state(cluster, *each, options, refused) for each in by_name]
    return tuple(
        each
        for each in states
        if each.package
        or each.workloads
        or not instances.was_never_there(reader, each.namespace, each.instance_id)
    )


def list_histories(
    cluster: ReadOnlyCluster,
    namespace: str = "",
    options: Options = Options(),  # noqa: B008
) -> tuple[tuple[str, str | None, Revision], ...]:
    """Return the operations of all instances that have ended, each with the namespace and the id of
    its instance; the newest is the first.

    :param namespace: '': all of them.
    :raises ClusterError: the account may not list Secrets there.
    """
    reader = RetryingReader(cluster, options.retry_seconds)
    with _warned_once() as refused:
        found = [
            (*instance, revision)
            for instance in kept_instances(reader, namespace)
            for revision in _if_trusted(History(reader, *instance).read, refused) or ()
        ]
    return tuple(sorted(found, key=lambda each: time_of(each[2].ended), reverse=True))


def list_uninstalled(
    cluster: ReadOnlyCluster,
    namespace: str = "",
    options: Options = Options(),  # noqa: B008
) -> tuple[tuple[InstanceState, ...], tuple[tuple[str, str | None, Revision], ...]]:
    """Return the instances that were uninstalled and their operations, the newest first."""
    found = sorted(
        uninstalled.read(RetryingReader(cluster, options.retry_seconds), namespace),
        key=lambda each: time_of(each[2][0].ended),
        reverse=True,
    )
    gone = [
        InstanceState(place, name, (), all_[0], names(all_[0].origin.packages), Status(None))
        for place, name, all_ in found
    ]
    return tuple(gone), tuple((place, name, each) for place, name, all_ in found for each in all_)


def _state(
    cluster: ReadOnlyCluster,
    namespace: str,
    instance_id: str | None,
    options: Options,
    refused: list[ContainerUpdateError],
) -> InstanceState:
    history = History(RetryingReader(cluster, options.retry_seconds), namespace, instance_id)
    kept = _if_trusted(lambda: (history.read(), history.instance()), refused)
    revisions, record = kept or ((), None)
    return InstanceState(
        namespace,
        instance_id,
        (kept and instances.workloads(cluster, namespace, instance_id, options)) or (),
        revisions[0] if revisions else None,
        names([record.package]) if record and record.package else "",
        _if_trusted(
            lambda: resume.status(cluster, options, namespace=namespace, instance_id=instance_id),
            refused,
        )
        if kept
        else None,
    )


@contextmanager
def _warned_once() -> Iterator[list[ContainerUpdateError]]:
    """Yield a list for the errors of untrusted records; log the first one, and their number."""
    refused: list[ContainerUpdateError] = []
    yield refused
    if refused:
        more = f"; {len(refused) - 1} more instances have untrusted records" if refused[1:] else ""
        LOG.warning("%s%s", refused[0], more)


def _if_trusted(read: Callable[[], ValueT], refused: list[ContainerUpdateError]) -> ValueT | None:
    """Return a record; None where it is not trusted: the list goes on."""
    try:
        return read()
    except ClusterError:
        raise
    except ContainerUpdateError as error:
        refused.append(error)
        return None
