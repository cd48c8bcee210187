# SPDX-License-Identifier: Apache-2.0
"""What the viewers of the page see, as it is now: read at most once a second for all of them.

A value has an id and is JSON text: two readings are compared by their texts. Of the instances, and
of the steps of operations, a viewer gets those that he looks at.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby, islice
from typing import Any

from cachetools import TTLCache, cached
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from container_update.model.context_threads import daemon
from container_update.model.objects import Json
from container_update.vnfm import packages
from container_update.vnfm.api import representations
from container_update.vnfm.lcm.live.resources import BAD, MISSING, resources_of
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.states import RUNNING, UNSETTLED, State
from container_update.vnfm.store.rows import Instance, OperationRow, Package, StepRow
from container_update.vnfm.view import summaries
from container_update.vnfm.view.summaries import TableRow, Wanted, page_of, rows_of
from container_update.workloads.pod_state import Tone

LOG = logging.getLogger(__name__)

PACE_SECONDS = 1.0
"""The least time between two readings, for all viewers together."""
_LAST = 50
"""The number of operations that are shown beside those that are not settled."""
_FAR = ("id", "done", "total")

Sections = Mapping[str, Mapping[str, str]]
"""By the name of the section and the id of the value."""


@dataclass(frozen=True)
class FeedReading:
    """What there is, for all viewers."""

    sections: Sections
    """'packages', 'instances', 'operations', and of operations that are not settled 'progress'."""
    rows: tuple[TableRow, ...]
    unsettled: Mapping[str, str]
    """By the id of an instance the id of its operation that is not settled."""
    steps: Mapping[str, str]
    """By the id of such an operation its steps."""

    def sections_for(self, wanted: Wanted) -> Sections:
        """Return what a viewer sees of it: a page of the table, and the instance that is open."""
        page = page_of(self.rows, wanted)
        ids = dict.fromkeys([*page["ids"], wanted.instance])
        operation = self.unsettled.get(wanted.instance, "")
        return {
            **self.sections,
            "instances": _pick(self.sections["instances"], ids),
            "table": _texts([page]),
            "steps": _pick(self.steps, [operation]),
        }


def _pace(size: int) -> Callable[[Any], Any]:
    """Have a function read at most once in :data:`PACE_SECONDS` for all who ask for the same."""
    paced: Callable[[Any], Any] = cached(
        TTLCache(size, PACE_SECONDS), condition=threading.Condition()
    )
    return paced


class Feed:
    """The latest reading."""

    def __init__(self, service: ServiceContext) -> None:
        self._service = service
        self._version: Any = None
        self._reading = FeedReading({}, (), {}, {})
        self._patrol = Patrol(partial(resources_of, service))
        self.read: Callable[[], FeedReading] = _pace(1)(self._read_now)
        """Returns the current state, at most a moment old; SQLAlchemyError: there is no answer."""

    def _read_now(self) -> FeedReading:
        with self._service.database.reading() as session:
            self._reading = self._read(session)
        return self._reading

    def _read(self, session: Session) -> FeedReading:
        """Read what may have changed: everything only if :func:`_version` did."""
        version = (_version(session), dict(self._patrol.troubles))
        if version == self._version:
            self._patrol.look_at_next()
            progress, steps = _progress(session, RUNNING)
            before = self._reading
            progress = {**before.sections["progress"], **progress}
            sections = {**before.sections, "progress": progress}
            return replace(before, sections=sections, steps={**before.steps, **steps})
        last = select(OperationRow.instance_id, func.max(OperationRow.entered))
        ended = session.execute(last.group_by(OperationRow.instance_id))
        since = {row[0]: row[1] for row in ended}
        instances = [
            summaries.instance(row, since.get(row.id), self._patrol.troubles.get(row.id, ""))
            for row in session.scalars(select(Instance).order_by(Instance.created))
        ]
        names = {each["id"]: each["name"] for each in instances}
        operations = [summaries.operation(row, names) for row in _operations(session)]
        unsettled = {each["instanceId"]: each for each in operations if each["state"] in UNSETTLED}
        progress, steps = _progress(session, UNSETTLED)
        sections = {
            "packages": _texts(
                summaries.package(row, used=used)
                for row, used in session.execute(
                    select(Package, packages.IN_USE).order_by(Package.created)
                )
            ),
            "instances": _texts(instances),
            "operations": _texts(operations),
            "progress": progress,
        }
        self._version = version
        self._patrol.follow({e["id"] for e in instances if e["isInstantiated"]} - unsettled.keys())
        rows = rows_of(instances, unsettled)
        return FeedReading(sections, rows, {id_: op["id"] for id_, op in unsettled.items()}, steps)


def _version(session: Session) -> Any:
    """Return a value that differs if a package, an instance or an operation changed."""
    unsettled = select(OperationRow.id, OperationRow.state, OperationRow.entered, OperationRow.due)
    onboarded = select(Package.id, Package.onboarding_state, Package.operational_state)
    return (
        session.scalar(select(func.max(OperationRow.entered))),
        session.execute(
            unsettled.where(OperationRow.state.in_(UNSETTLED)).order_by(OperationRow.id)
        ).all(),
        session.execute(select(func.max(Instance.created), func.count(Instance.id))).all(),
        session.execute(onboarded.order_by(Package.id)).all(),
    )


def _operations(session: Session) -> Iterable[OperationRow]:
    unsettled = session.scalars(select(OperationRow).where(OperationRow.state.in_(UNSETTLED)))
    last = session.scalars(select(OperationRow).order_by(OperationRow.started.desc()).limit(_LAST))
    return {row.id: row for row in (*unsettled, *last)}.values()


def _progress(session: Session, states: frozenset[State]) -> tuple[dict[str, str], dict[str, str]]:
    """Return how far the operations in these states are, and their steps."""
    rows = {
        row.id: row
        for row in session.scalars(select(OperationRow).where(OperationRow.state.in_(states)))
    }
    steps = session.scalars(
        select(StepRow)
        .where(StepRow.operation_id.in_(rows))
        .order_by(StepRow.operation_id, StepRow.number)
    )
    by_operation = {id_: list(each) for id_, each in groupby(steps, lambda step: step.operation_id)}
    whole = [
        {"id": id_, **representations.progress(row, by_operation.get(id_, ()))}
        for id_, row in rows.items()
    ]
    return _texts({name: each[name] for name in _FAR} | _at_work(each) for each in whole), _texts(
        whole
    )


def _at_work(progress: Json) -> Json:
    """Return the first step that runs, in words."""
    running = (f"{s['action']} {s['object']}" for s in progress["steps"] if s["state"] == "running")
    return {"step": next(running, "")}


def _texts(values: Iterable[Json]) -> dict[str, str]:
    return {value["id"]: json.dumps(value) for value in values}


def _pick(texts: Mapping[str, str], ids: Iterable[str]) -> dict[str, str]:
    return {id_: texts[id_] for id_ in ids if id_ in texts}


# --- live resources -----------------------------------------------------------------------------


class Patrol:
    """Looks at the resources of settled instances, one after another, while a user views the page:
    one look in :data:`PACE_SECONDS` at most, however many instances and viewers there are."""

    def __init__(self, read: Callable[[str], Json]) -> None:
        self._read, self._waiting, self._looks = read, deque[str](), threading.Lock()
        self.troubles: dict[str, str] = {}
        """By the id of an instance what the last look saw."""

    def follow(self, settled: AbstractSet[str]) -> None:
        """Look at these from now on, at new ones first."""
        waiting = [id_ for id_ in self._waiting if id_ in settled]
        self._waiting = deque([*(settled - set(waiting)), *waiting])
        for id_ in set(self.troubles) - settled:
            self.troubles.pop(id_, None)

    def look_at_next(self) -> None:
        """Begin the next look, unless the last one has not ended."""
        if self._waiting and self._looks.acquire(blocking=False):
            self._waiting.rotate(-1)
            daemon(self._look, self._waiting[-1], name="patrol").start()

    def _look(self, instance_id: str) -> None:
        text = ""
        try:
            text = trouble_of(self._read(instance_id)["vdus"])
        except (ProblemError, SQLAlchemyError) as error:  # no trouble of the instance is known
            LOG.debug("VNF instance %s: not looked at: %s", instance_id, error)
        finally:
            self._looks.release()
        if text:
            self.troubles[instance_id] = text
        else:
            self.troubles.pop(instance_id, None)


def trouble_of(vdus: Iterable[Json]) -> str:
    """Return the first workload that is missing or fails, with what a pod of it says; '' where
    none is or does."""
    for workload in chain.from_iterable(vdu["workloads"] for vdu in vdus):
        if workload["state"] == MISSING:
            return f"{workload['object']}: missing"
        if workload["state"] == BAD:
            bad = (pod for pod in workload["vnfcs"] if pod["tone"] == Tone.BAD.value)
            problems = (pod["problem"] or pod["state"] for pod in bad)
            return ": ".join([workload["object"], *islice(problems, 1)])
    return ""


_KEPT = 256
"""The number of instances whose last reading is kept."""


def live_resources(service: ServiceContext) -> Callable[[str], str]:
    """Return a function that returns the resources of an instance, or the 'problem', as JSON."""

    def read(instance_id: str) -> str:
        try:
            live = resources_of(service, instance_id)
        except ProblemError as error:
            live = {"problem": error.detail, "vdus": []}
        return json.dumps({"id": instance_id, **live})

    reading: Callable[[str], str] = _pace(_KEPT)(read)
    return reading
