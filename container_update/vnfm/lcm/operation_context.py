# SPDX-License-Identifier: Apache-2.0
"""What a lifecycle operation works with: request, the instance's record, VIM, and its progress."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import delete, func, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from container_update.cluster.retry import RetryingCluster
from container_update.drivers import v2_memory
from container_update.drivers.vim import connect_to
from container_update.engine.cluster_instance import ClusterInstance
from container_update.engine.progress import RUNNING, remarks, step_events
from container_update.model.cancellation import CancelToken
from container_update.model.errors import ContainerUpdateError, NextStep, PackageError
from container_update.model.objects import Json
from container_update.model.outcome import Event, StepState
from container_update.model.plan import Action, Plan
from container_update.model.requests import DEF_FILES
from container_update.package import csar
from container_update.planning.comparison.diff import printable_lines
from container_update.vnfm import packages, vims
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.database import Database, timestamp
from container_update.vnfm.store.rows import (
    Instance,
    OperationRow,
    Package,
    StepRow,
    lock_operation,
)

Result = TypeVar("Result")


class ServiceEndsError(ContainerUpdateError):
    """The service ends before the operation has begun to change anything."""

    next_step = NextStep.RETRY


class NotYetError(ContainerUpdateError):
    """The operation goes on at a later time (UTC, as in the tables): no worker waits for it."""

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

    @classmethod
    def of(cls, row: Instance, vims: Any = None) -> VnfRecord:
        """Return the record in a row."""
        return cls(row.vnfd_id, row.instantiated, row.body, vims)

    @property
    def state(self) -> str:
        """instantiationState."""
        return "INSTANTIATED" if self.instantiated else "NOT_INSTANTIATED"

    @property
    def info(self) -> Json:
        """instantiatedVnfInfo."""
        return dict(self.body.get("instantiatedVnfInfo") or {})

    def with_info(self, info: Json) -> VnfRecord:
        """Return the record with another instantiatedVnfInfo."""
        return replace(self, body={**self.body, "instantiatedVnfInfo": info})

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


# --- progress, object by object, in the database ------------------------------------------------
# A plan is stored before any of it is carried out, together with what a rollback needs if this
# process dies after the change and before its record.

WAIT = "wait"
"""The action of a step that is in no plan: a wait before the plan was made."""


class Steps:
    """The steps of one operation; implements :data:`container_update.model.outcome.Progress`.

    :param remember: store that a plan has begun, for a rollback; not in a rollback itself.
    """

    def __init__(self, database: Database, operation_id: str, *, remember: bool) -> None:
        self._database = database
        self._id = operation_id
        self.remember = remember
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        """Store an event; raise where a plan cannot be stored: without it there is no way back."""

        def store(session: Session) -> None:
            if isinstance(event, Plan):
                self._begin(session, event, steps)
            else:
                for step in steps:
                    self._result(session, step)

        steps = step_events(event)
        if not steps and not isinstance(event, Plan):
            return
        try:
            self._write(store)
        except SQLAlchemyError as error:
            raise ContainerUpdateError(
                f"the database cannot store the progress: {type(error).__name__}",
                next_step=NextStep.RETRY,
            ) from error

    def add(
        self, text: str, action: str, state: str, message: str = "", seconds: float = 0.0
    ) -> None:
        """Store something that is in no plan: a create, a delete, a script."""
        step = {"object": text, "action": action, "state": state, "message": message}
        self._write(lambda session: self._result(session, {**step, "seconds": round(seconds, 3)}))

    def stop_scripts(self) -> None:
        """Store that scripts have stopped that were running when their service died."""
        running = (StepRow.action == Action.RUN.value, StepRow.state == RUNNING)
        values = {"state": StepState.STOPPED.value, "message": "the service ended meanwhile"}
        mine = update(StepRow).where(StepRow.operation_id == self._id, *running)
        self._write(lambda session: session.execute(mine.values(**values)))

    def _write(self, store: Callable[[Session], object]) -> None:
        """Store something, however long the database is away: an update waits, it does not fail."""

        def write() -> None:
            with self._database.writing() as session:
                store(session)

        with self._lock:
            self._database.lasting(write)

    def _begin(self, session: Session, plan: Plan, steps: Sequence[Json]) -> None:
        self._forget(session, is_needless=plan.is_empty)
        session.add_all(
            StepRow(operation_id=self._id, number=number, **_row(step))
            for number, step in enumerate((*steps, *remarks(plan)), self._next_number(session))
        )
        if not self.remember:
            return
        operation = lock_operation(session, self._id)
        kept = operation.kept or {}
        operation.kept = {**kept, v2_memory.OURS: {"state": v2_memory.UNKNOWN}}

    def _forget(self, session: Session, *, is_needless: bool) -> None:
        """Forget the steps of an earlier try but its wait; a needless plan keeps what has ended."""
        old = delete(StepRow).where(StepRow.operation_id == self._id, StepRow.action != WAIT)
        ended = [StepState.DONE] if self.remember else list(StepState)
        kept = [state.value for state in ended] if is_needless else []
        session.execute(old.where(StepRow.state.not_in(kept)))

    def _next_number(self, session: Session) -> int:
        last = session.scalar(
            select(func.max(StepRow.number)).where(StepRow.operation_id == self._id)
        )
        return 0 if last is None else last + 1

    def _result(self, session: Session, step: Json) -> None:
        mine = StepRow.operation_id == self._id
        same = (mine, StepRow.object == step["object"], StepRow.action == step["action"])
        number = session.scalar(select(StepRow.number).where(*same).limit(1))
        if number is not None:
            result = {name: _row(step)[name] for name in ("state", "message", "seconds")}
            if step["state"] == StepState.FAILED.value:
                result["problem"] = result["message"]
            elif step["state"] == StepState.DONE.value:
                result["problem"] = ""
            session.execute(update(StepRow).where(mine, StepRow.number == number).values(**result))
            return
        number = self._next_number(session)
        session.add(StepRow(operation_id=self._id, number=number, **_row(step)))


def _row(step: Json) -> Json:
    """Return a step as the table takes it; others write its message: PostgreSQL takes no NUL."""
    return {"reasons": [], **step, "message": printable_lines(step["message"])}


# --- all of it ----------------------------------------------------------------------------------


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
    """The VIMs without the request's modifications."""
    cancel: CancelToken
    steps: Steps
    """Stores the progress."""
    kept: Json
    """user_script_err_handling_data: what Mgmt Drivers leave for a retry or a rollback."""
    why: str = ""
    """The reason that the user gave."""
    again: bool = False
    """It was tried before: its results may be in the VIM, or its process may still run."""
    waited: bool = False
    """It goes on after a wait (:class:`NotYetError`)."""

    def remember(self, state: str) -> None:
        """Keep how a try of our own driver ended, for another one or a rollback."""
        self.kept[v2_memory.OURS] = v2_memory.join(self.kept.get(v2_memory.OURS) or {}, state)

    def keep(self, name: str, value: Any) -> None:
        """Store a value for another try, also if this process dies; sealed if it is secret."""
        self.kept[name] = value
        database = self.service.database

        def store() -> None:
            with database.writing() as session:
                operation = lock_operation(session, self.operation_id)
                operation.kept = {**(operation.kept or {}), name: value}

        database.lasting(store)

    def read(self, query: Callable[[Session], Result]) -> Result:
        """Read from the database, which may be away for a while."""
        database = self.service.database

        def read() -> Result:
            with database.reading() as session:
                return query(session)

        return database.lasting(read)

    def start_time(self) -> datetime:
        """Return when the operation was accepted, also by another service."""
        return self.read(lambda session: session.get_one(OperationRow, self.operation_id).started)

    @property
    def params(self) -> Json:
        """additionalParams of the request."""
        return dict(self.request.get("additionalParams") or {})

    def package(self, vnfd_id: str) -> Path:
        """Return the folder of an onboarded package; PackageError where there is none."""
        query = select(Package).where(Package.vnfd_id == vnfd_id)
        package = self.read(lambda session: session.scalar(query))
        if package is None:
            raise PackageError(
                f"no package has the VNFD {vnfd_id}: upload it", next_step=NextStep.FIX_TARGET
            )
        return packages.unpack(self.service, package.id)

    def open_package(self, vnfd_id: str) -> AbstractContextManager[csar.Csar]:
        """Open an onboarded package for a ``with`` block; PackageError where there is none."""
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

    def with_journal(self, cluster: RetryingCluster) -> ClusterInstance:
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
