"""How far an operation is, object by object, kept in the database for whoever looks on.

A plan is written before anything of it is done, together with what a rollback has to know if this
process dies later than the change and sooner than its record.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from container_update.drivers import v2_memory, v2_progress
from container_update.model.objects import Json
from container_update.model.outcome import Event, StepState
from container_update.operations.scripts.coordination import ScriptReport
from container_update.vnfm.store.database import Database
from container_update.vnfm.store.rows import Operation, Step

LOG = logging.getLogger(__name__)


class Steps:
    """The steps of one operation; implements :data:`container_update.model.outcome.Progress`.

    :param remember: what a plan brings is to be known to a rollback; not in a rollback itself.
    """

    def __init__(self, database: Database, operation_id: str, *, remember: bool) -> None:
        self._database = database
        self._id = operation_id
        self._remember = remember
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        """Write an event down."""
        self.take(v2_progress.as_line(event))

    def take(self, line: Json) -> None:
        """Write down an event: a value of :func:`v2_progress.as_line`."""
        with self._lock, self._database.writing() as session:
            if "brought" in line:
                self._begin(session, line)
            else:
                for step in line["steps"]:
                    self._result(session, step)

    def tell(
        self, text: str, action: str, state: str, message: str = "", seconds: float = 0.0
    ) -> None:
        """Write down something that no plan has: a create, a delete, a script."""
        step = {"object": text, "action": action, "state": state, "message": message}
        with self._lock, self._database.writing() as session:
            self._result(session, {**step, "seconds": round(seconds, 3)})

    def tell_scripts(self, reports: Iterable[ScriptReport]) -> None:
        """Write down what became of coordination scripts, with the end of what they printed."""
        for report in reports:
            text = f"Script {report.script} ({report.which} VNF, {report.vdu_id})"
            state = StepState.DONE if report.status == 0 else StepState.FAILED
            last = report.output.strip().rpartition("\n")[2]
            self.tell(text, "run", state.value, last, report.seconds)

    def _begin(self, session: Session, line: Json) -> None:
        session.execute(delete(Step).where(Step.operation_id == self._id))
        session.add_all(
            Step(operation_id=self._id, number=number, **step)
            for number, step in enumerate(line["steps"])
        )
        if not self._remember:
            return
        operation = session.get_one(Operation, self._id)
        before = (operation.kept or {}).get(v2_memory.OURS) or {}
        ours = {name: _joined(before.get(name), line["brought"][name]) for name in _BROUGHT}
        kept = {v2_memory.OURS: {"state": v2_memory.UNKNOWN, **ours}}
        operation.kept = {**(operation.kept or {}), **kept}

    def _result(self, session: Session, step: Json) -> None:
        told = {name: step[name] for name in ("state", "message", "seconds")}
        found = session.scalar(
            select(Step.number)
            .where(
                Step.operation_id == self._id,
                Step.object == step["object"],
                Step.action == step["action"],
            )
            .limit(1)
        )
        if found is not None:
            session.execute(
                update(Step)
                .where(Step.operation_id == self._id, Step.number == found)
                .values(**told)
            )
            return
        last = session.scalar(select(func.max(Step.number)).where(Step.operation_id == self._id))
        number = 0 if last is None else last + 1
        reasons = {"reasons": step.get("reasons", [])}
        session.add(Step(operation_id=self._id, number=number, **{**step, **reasons}))


_BROUGHT = ("images", "created")


def _joined(before: list[Any] | None, now: list[Any]) -> list[Any]:
    """Return what an earlier try brought counts too: this one finds it done already."""
    return [*(entry for entry in before or () if entry not in now), *now]


class Follower:
    """Reads the file that a script tells its progress to, line by line as they come."""

    def __init__(self, path: Path, steps: Steps) -> None:
        self._path = path
        self._steps = steps
        self._read = 0

    def catch_up(self) -> None:
        """Take in the lines that are complete by now."""
        for line in self._new_lines():
            try:
                self._steps.take(json.loads(line))
            except (ValueError, KeyError, TypeError):
                LOG.warning("%s: a line that tells no progress: left out", self._path)

    def _new_lines(self) -> Sequence[bytes]:
        if not self._path.exists():
            return ()
        with self._path.open("rb") as file:
            file.seek(self._read)
            text = file.read()
        complete = text[: text.rfind(b"\n") + 1]
        self._read += len(complete)
        return complete.splitlines()
