# SPDX-License-Identifier: Apache-2.0
"""The progress of an operation, object by object, in the database.

A plan is stored before any of it is carried out, together with what a rollback needs if this
process dies after the change and before its record.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from sqlalchemy import delete, func, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from container_update.drivers import v2_memory
from container_update.engine.progress import RUNNING, remarks, step_events
from container_update.model.errors import ContainerUpdateError, NextStep
from container_update.model.objects import Json
from container_update.model.outcome import Event, StepState
from container_update.model.plan import Action, Plan
from container_update.vnfm.store.database import Database
from container_update.vnfm.store.rows import OperationRow, StepRow

WAIT = "wait"
"""The action of a step that is in no plan: what was waited for before the plan was made."""


class Steps:
    """The steps of one operation; implements :data:`container_update.model.outcome.Progress`.

    :param remember: store what a plan adds, for a rollback; not in a rollback itself.
    """

    def __init__(self, database: Database, operation_id: str, *, remember: bool) -> None:
        self._database = database
        self._id = operation_id
        self.remember = remember
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        """Store an event.

        :raises ContainerUpdateError: a plan cannot be stored: without it there is no way back.
        """

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
        """Store of scripts that were running when their service died that they run no more."""
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
            StepRow(operation_id=self._id, number=number, **{"reasons": [], **step})
            for number, step in enumerate((*steps, *remarks(plan)), self._next_number(session))
        )
        if not self.remember:
            return
        operation = session.get_one(OperationRow, self._id)
        kept = operation.kept or {}
        operation.kept = {**kept, v2_memory.OURS: {"state": v2_memory.UNKNOWN}}

    def _forget(self, session: Session, *, is_needless: bool) -> None:
        """Forget the steps of a try before; the time that was waited for stays.

        :param is_needless: the new plan has no steps, because those before are done, or, in a
            rollback, undone: they stay.
        """
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
            result = {name: step[name] for name in ("state", "message", "seconds")}
            session.execute(update(StepRow).where(mine, StepRow.number == number).values(**result))
            return
        number = self._next_number(session)
        session.add(StepRow(operation_id=self._id, number=number, **{"reasons": [], **step}))
