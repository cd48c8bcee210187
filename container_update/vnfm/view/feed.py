"""What all viewers of the page see, read from the database at most once a second for all of them.

A value has an id and is JSON text: two readings are compared by their texts.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from container_update.model.objects import Json
from container_update.vnfm import packages
from container_update.vnfm.api import representations
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.states import RUNNING, UNSETTLED
from container_update.vnfm.store.rows import Instance, Operation, Package, Step
from container_update.vnfm.view import summaries

PACE_SECONDS = 1.0
"""The least time between two readings."""
_LAST = 50
"""The number of operations that are shown beside those that are not settled."""
_MOST_LIVE = 8
"""The number of instances at work whose live resources are shown without being asked for."""

Sections = Mapping[str, Mapping[str, str]]
"""By the name of the section and the id of the value: 'packages', 'instances', 'operations', and
'progress', that of operations which are not settled."""


class Feed:
    """The latest reading."""

    def __init__(
        self, service: ServiceContext, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._service, self._clock = service, clock
        self._lock = threading.Lock()
        self._next = -math.inf
        self._version: Any = None
        self._sections: dict[str, dict[str, str]] = {}

    def read(self) -> Sections:
        """Return the sections as of now, or of a moment ago.

        :raises SQLAlchemyError: the database does not answer.
        """
        with self._lock:
            if self._clock() >= self._next:
                with self._service.database.reading() as session:
                    self._sections = self._read(session)
                self._next = self._clock() + PACE_SECONDS
            return self._sections

    def _read(self, session: Session) -> dict[str, dict[str, str]]:
        """Read what may have changed: everything only if :func:`_version` did."""
        version = _version(session)
        if version == self._version:
            running = _progress(session, [state.value for state in RUNNING])
            progress = {**self._sections["progress"], **running}
            return {**self._sections, "progress": progress}
        sections = {
            "packages": _texts(
                summaries.package(row, used=used)
                for row, used in session.execute(
                    select(Package, packages.IN_USE).order_by(Package.created)
                )
            ),
            "instances": _texts(
                summaries.instance(row)
                for row in session.scalars(select(Instance).order_by(Instance.created))
            ),
            "operations": _texts(summaries.operation(row) for row in _operations(session)),
            "progress": _progress(session, [state.value for state in UNSETTLED]),
        }
        self._version = version
        return sections


def at_work(sections: Sections) -> list[str]:
    """Return the ids of the instances with an operation that runs; of the first few."""
    operations = map(json.loads, sections["operations"].values())
    running = {state.value for state in RUNNING}
    ids = [each["instanceId"] for each in operations if each["state"] in running]
    return ids[:_MOST_LIVE]


def _version(session: Session) -> Any:
    """Return a value that differs if a package, an instance or an operation changed.

    An operation enters a state whenever something becomes of it or its instance. Those that are
    not settled count one by one, because the clocks of several services differ.
    """
    states = [state.value for state in UNSETTLED]
    unsettled = select(Operation.id, Operation.state, Operation.entered, Operation.due)
    onboarded = select(Package.id, Package.onboarding_state, Package.operational_state)
    return (
        session.scalar(select(func.max(Operation.entered))),
        session.execute(unsettled.where(Operation.state.in_(states)).order_by(Operation.id)).all(),
        session.execute(select(func.max(Instance.created), func.count(Instance.id))).all(),
        session.execute(onboarded.order_by(Package.id)).all(),
    )


def _operations(session: Session) -> Iterable[Operation]:
    states = [state.value for state in UNSETTLED]
    unsettled = session.scalars(select(Operation).where(Operation.state.in_(states)))
    last = session.scalars(select(Operation).order_by(Operation.started.desc()).limit(_LAST))
    return {row.id: row for row in (*unsettled, *last)}.values()


def _progress(session: Session, states: list[str]) -> dict[str, str]:
    rows = {
        row.id: row for row in session.scalars(select(Operation).where(Operation.state.in_(states)))
    }
    steps = session.scalars(
        select(Step).where(Step.operation_id.in_(rows)).order_by(Step.operation_id, Step.number)
    )
    found = {id_: list(each) for id_, each in groupby(steps, lambda step: step.operation_id)}
    return _texts(
        {"id": id_, **representations.progress(row, found.get(id_, ()))}
        for id_, row in rows.items()
    )


def _texts(values: Iterable[Json]) -> dict[str, str]:
    return {value["id"]: json.dumps(value) for value in values}
