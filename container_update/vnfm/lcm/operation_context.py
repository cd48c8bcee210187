# SPDX-License-Identifier: Apache-2.0
"""What a lifecycle operation works with: request, the instance's record, VIM, and its progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from container_update.cluster.retry import RetryingCluster
from container_update.drivers import v2_memory
from container_update.drivers.vim import connect_to
from container_update.engine.cluster_instance import ClusterInstance
from container_update.model.cancellation import CancelToken
from container_update.model.errors import ContainerUpdateError, NextStep, PackageError
from container_update.model.objects import Json
from container_update.model.requests import DEF_FILES
from container_update.package import csar
from container_update.vnfm import packages, vims
from container_update.vnfm.lcm.steps import Steps
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.database import timestamp
from container_update.vnfm.store.rows import OperationRow, Package

Result = TypeVar("Result")


class ServiceEndsError(ContainerUpdateError):
    """The service ends before the operation has begun to change anything."""

    next_step = NextStep.RETRY


class NotYetError(ContainerUpdateError):
    """The operation goes on at a time, until which nothing is to be done: no worker waits for it.

    :param due: that time, as in the tables.
    """

    def __init__(self, due: datetime) -> None:
        super().__init__(f"the operation goes on at {timestamp(due)}", next_step=NextStep.WAIT)
        self.due = due


@dataclass(frozen=True)
class VnfRecord:
    """A VNF instance's record, as an operation finds or leaves it."""

    vnfd_id: str
    instantiated: bool
    body: Json
    """The VnfInstance's attributes, but for those that are columns."""
    vims: Any = field(default=None, repr=False)
    """vimConnectionInfo with credentials: a list in v1, a map in v2."""
    touched: frozenset[str] = frozenset()
    """Ids of resources that stay and run something else, such as rebuilt servers; not stored."""

    @property
    def state(self) -> str:
        """instantiationState."""
        return "INSTANTIATED" if self.instantiated else "NOT_INSTANTIATED"

    @property
    def info(self) -> Json:
        """instantiatedVnfInfo."""
        return dict(self.body.get("instantiatedVnfInfo") or {})

    @property
    def flavour_id(self) -> str | None:
        """The deployment flavour that it was instantiated with."""
        return self.info.get("flavourId")

    @property
    def namespace(self) -> str:
        """The namespace of its objects: v2 has it in instantiatedVnfInfo, v1 in metadata."""
        metadata = self.info.get("metadata") or self.body.get("metadata") or {}
        return str(metadata.get("namespace") or "default")

    @property
    def def_files(self) -> tuple[str, ...]:
        """The files it is made from: v2 has them in metadata, v1 in additionalParams."""
        holders = (self.info.get(name) or {} for name in ("metadata", "additionalParams"))
        return next((tuple(holder[DEF_FILES]) for holder in holders if holder.get(DEF_FILES)), ())

    def vnf_instance(self, instance_id: str) -> Json:
        """Return the VnfInstance as scripts get it, without its VIM."""
        named = {"id": instance_id, "vnfdId": self.vnfd_id, "instantiationState": self.state}
        return {**named, **self.body}


@dataclass
class OperationContext:
    """One operation of one instance, while it runs."""

    service: ServiceContext
    operation_id: str
    instance_id: str
    api: str
    request: Json = field(repr=False)
    record: VnfRecord
    """The record when the operation began; its VIMs as the request modifies them."""
    recorded_vims: Any = field(repr=False)
    """The VIMs before that."""
    cancel: CancelToken
    steps: Steps
    """Stores the progress."""
    kept: Json
    """user_script_err_handling_data: what Mgmt Drivers leave for a retry or a rollback."""
    again: bool = False
    """It was tried before: its results may be in the VIM, or its process may still run."""
    waited: bool = False
    """The time has come at which it was to go on (:class:`NotYetError`)."""

    def remember(self, state: str) -> None:
        """Keep how a try of our own driver ended, for another one or a rollback."""
        self.kept[v2_memory.OURS] = v2_memory.joined(self.kept.get(v2_memory.OURS) or {}, state)

    def keep(self, name: str, value: str) -> None:
        """Store a value for another try, also if this process dies; sealed if it is secret."""
        self.kept[name] = value
        database = self.service.database

        def store() -> None:
            with database.writing() as session:
                operation = session.get_one(OperationRow, self.operation_id)
                operation.kept = {**(operation.kept or {}), name: value}

        database.lasting(store)

    def read(self, query: Callable[[Session], Result]) -> Result:
        """Return what is read from the database, which may be away for a while."""
        database = self.service.database

        def read() -> Result:
            with database.reading() as session:
                return query(session)

        return database.lasting(read)

    def started(self) -> datetime:
        """Return when the operation was accepted, also by another service."""
        return self.read(lambda session: session.get_one(OperationRow, self.operation_id).started)

    @property
    def params(self) -> Json:
        """additionalParams of the request."""
        return dict(self.request.get("additionalParams") or {})

    def package(self, vnfd_id: str) -> Path:
        """Return the folder of an onboarded package.

        :raises PackageError: there is none.
        """
        query = select(Package).where(Package.vnfd_id == vnfd_id)
        package = self.read(lambda session: session.scalar(query))
        if package is None:
            raise PackageError(
                f"no package has the VNFD {vnfd_id}: upload it", next_step=NextStep.FIX_TARGET
            )
        return packages.unpacked(self.service, package.id)

    def opened(self, vnfd_id: str) -> AbstractContextManager[csar.Csar]:
        """Open an onboarded package for a ``with`` block.

        :raises PackageError: there is none.
        """
        return csar.open_package(str(self.package(vnfd_id)), options=self.service.options)

    @cached_property
    def connection(self) -> Json:
        """The VIM that the instance runs in, with credentials."""
        return self.read(lambda session: vims.connection(self.service, session, self.record.vims))

    @contextmanager
    def cluster(self) -> Iterator[RetryingCluster]:
        """Connect to the VIM's cluster for a ``with`` block; transient errors are retried."""
        with closing(connect_to(self.connection, self.service.options)) as cluster:
            yield RetryingCluster(cluster, self.service.options.retry_seconds)

    @property
    def namespace(self) -> str:
        """The namespace of the instance's objects; before it is recorded, the requested one."""
        if self.record.instantiated:
            return self.record.namespace
        return str(self.params.get("namespace") or "default")

    def journalled(self, cluster: RetryingCluster) -> ClusterInstance:
        """Return the instance in the cluster, with its Lease and its journal."""
        return ClusterInstance(
            cluster,
            self.namespace,
            self.instance_id,
            self.service.options,
            self.steps,
            leave_failed=True,
            cancel=self.cancel,
        )


def known_flavour(package: csar.Csar, flavour_id: str | None) -> str | None:
    """Return the deployment flavour if the package has it; None stands for all flavours."""
    return flavour_id if flavour_id in {flavour.id for flavour in package.flavours} else None
