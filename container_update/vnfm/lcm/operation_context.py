"""What a lifecycle operation works with: the request, the instance's record, the VIM, and a place
to tell how far it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from sqlalchemy import select

from container_update.cluster.execution.operation import Operation as Journalled
from container_update.cluster.retry import RetryingCluster
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import Cluster
from container_update.model.errors import NextStep, PackageError
from container_update.model.objects import Json
from container_update.model.requests import DEF_FILES
from container_update.vnfm import packages, vims
from container_update.vnfm.lcm.steps import Steps
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.rows import Package


@dataclass(frozen=True)
class Record:
    """A VNF instance's record, as an operation finds or leaves it."""

    vnfd_id: str
    instantiated: bool
    body: Json
    """The VnfInstance's attributes, but for those that are columns."""
    vims: Any = field(default=None, repr=False)
    """vimConnectionInfo with credentials: a list in v1, a map in v2."""
    touched: frozenset[str] = frozenset()
    """The resources that are what they were, and run something else: servers that were rebuilt. Of
    the operation, not kept."""

    @property
    def info(self) -> Json:
        """instantiatedVnfInfo."""
        return dict(self.body.get("instantiatedVnfInfo") or {})

    @property
    def flavour_id(self) -> str | None:
        """The deployment flavour it was instantiated with."""
        return self.info.get("flavourId")

    @property
    def namespace(self) -> str:
        """Where its objects are: in v1 a matter of its metadata, in v2 of the instantiation's."""
        recorded = self.info.get("metadata") or self.body.get("metadata") or {}
        return str(recorded.get("namespace") or "default")

    @property
    def def_files(self) -> tuple[str, ...]:
        """What it is made from: v1 has them in additionalParams, v2 in metadata."""
        for place in ("metadata", "additionalParams"):
            found = (self.info.get(place) or {}).get(DEF_FILES)
            if found:
                return tuple(found)
        return ()


@dataclass
class OperationContext:
    """One operation of one instance, while it runs."""

    service: ServiceContext
    operation_id: str
    instance_id: str
    api: str
    request: Json = field(repr=False)
    record: Record
    """The record when the operation began."""
    cancel: CancelToken
    steps: Steps
    """Where it is told how far the operation is."""
    kept: Json
    """user_script_err_handling_data: what Mgmt Drivers leave for a retry or a rollback."""
    again: bool = False
    """It was tried before: what that left may be in the VIM, or its process may run still."""

    def package(self, vnfd_id: str) -> Path:
        """Return the folder of an onboarded package.

        :raises PackageError: there is none.
        """
        with self.service.database.reading() as session:
            found = session.scalar(select(Package).where(Package.vnfd_id == vnfd_id))
        if found is None:
            raise PackageError(
                f"no package has the VNFD {vnfd_id}: upload it", next_step=NextStep.FIX_TARGET
            )
        return packages.unpacked(self.service, found.id)

    @cached_property
    def connection(self) -> Json:
        """The VIM that the instance runs in, with credentials."""
        with self.service.database.reading() as session:
            return vims.connection(self.service, session, self.record.vims)

    @contextmanager
    def cluster(self) -> Iterator[Cluster]:
        """Return the VIM's cluster; refusals that pass are tried again."""
        cluster = vims.cluster(self.service, self.connection)
        try:
            yield RetryingCluster(cluster, self.service.options.retry_seconds)
        finally:
            cluster.close()

    def journalled(self, cluster: Cluster, namespace: str) -> Journalled:
        """Return what may be under way in the cluster for the instance."""
        return Journalled(
            cluster,
            namespace,
            self.instance_id,
            self.service.options,
            self.steps,
            leave_failed=True,
        )


def merged(base: Any, patch: Any) -> Any:
    """Return a JSON merge patch (RFC 7396), applied."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(base) if isinstance(base, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result
