"""The journal of a change: what is needed to undo it or to resume it, in a stack of its own.

A stack without resources holds the journal as one of its files. It is where the VNF is, so that
any host with access to the project can finish or undo what a lost host began; its name can be taken
only once, which keeps a second change of the same instance out; nothing of it is in ``stack show``.
It takes one stack of the project's quota while a change runs. Its tags name the holder and the time
of the last heartbeat: after ``lease_seconds`` of silence another host may take over.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from container_update.cluster.lease import held, utc_now
from container_update.model.errors import ClusterError, LeaseLostError, UpdateInProgressError
from container_update.model.objects import Json
from container_update.model.operation import OperationRecord, Phase, from_bytes, name_of, to_bytes
from container_update.model.plan import Action
from container_update.package.hot import Body, Place
from container_update.stacks.client import Heat, reference
from container_update.stacks.plan import AnyStep, ScriptStep, StackPlan, StackStep
from container_update.stacks.vnfcs import VnfcServer

LOG = logging.getLogger(__name__)

_NEVER = "1970-01-01T00:00:00Z"
_FILE = "container-update-journal"
_TEMPLATE: Json = {
    "heat_template_version": "2015-04-30",
    "description": "The journal of a change of the VNF's package that is under way",
    "resources": {"nothing": {"type": "OS::Heat::None"}},
}
_FORMAT = 2
_SETTLES_WITHIN = 120.0
"""Seconds in which Heat ends an action on the journal's stack."""


@dataclass(frozen=True)
class Record(OperationRecord):
    """One change that is under way."""

    plan: StackPlan
    done: int = 0
    """How many steps are done, from the first."""
    context: Mapping[str, Any] = field(default_factory=dict)
    """What a resume needs beside the plan, as plain values; no passwords."""

    @property
    def planned(self) -> tuple[AnyStep, ...]:
        """See :class:`OperationRecord`."""
        return self.plan.steps

    @property
    def progress(self) -> str:
        """See :class:`OperationRecord`."""
        return super().progress if self.phase is Phase.UNDO else f"{self.done} steps done"

    def overview(self) -> Iterator[str]:
        """Yield the lines of the plan."""
        yield str(self.plan)


@dataclass
class Journal:
    """The journal of one VNF instance."""

    service: Heat
    instance_id: str | None
    operation: str
    """The run that uses it: it takes over another run's journal only after that one's silence."""
    lease_seconds: float
    clock: Callable[[], datetime] = utc_now
    _renewed: datetime | None = field(default=None, init=False)

    @property
    def _name(self) -> str:
        return name_of(self.instance_id)

    # --- reading --------------------------------------------------------------------------------

    def read(self) -> Record | None:
        """Return the change that is under way; None where there is none, or it ends just now."""
        stack = self._settle()
        return None if stack is None else decode(self.service.files(reference(stack))[_FILE])

    def holder(self) -> tuple[str, float] | None:
        """Return who holds the journal, and the seconds since its last heartbeat.

        None where there is no journal, or where its run has ended and left it.
        """
        stack = self._stack()
        if stack is None or f"renewed={_NEVER}" in (stack.get("tags") or ()):
            return None
        return _held(stack, self.clock())

    def _stack(self) -> Json | None:
        return self.service.stack(self._name)

    def _is_held(self) -> bool:
        stack = self._stack()
        return stack is not None and _held(stack, self.clock())[0] == self.operation

    # --- writing --------------------------------------------------------------------------------

    def begin(self, record: Record) -> None:
        """Create the journal before anything is done.

        :raises UpdateInProgressError: another run has one already.
        """
        body = {"stack_name": self._name, "template": _TEMPLATE, **self._content(record)}
        try:
            self.service.create(body)
        except ClusterError as error:
            if error.status != 409:
                raise
            if not self._is_held():
                raise UpdateInProgressError(
                    f"another change of this VNF instance has begun: stack {self._name} is its "
                    "journal"
                ) from error
        self._settle()
        self._renewed = self.clock()

    def take_over(self) -> None:
        """Become the holder; nothing happens where the change has ended.

        :raises UpdateInProgressError: the holder's last heartbeat is less than the lease ago.
        """
        stack = self._settle()
        if stack is None:
            return
        name, silence = _held(stack, self.clock())
        if name != self.operation and silence < self.lease_seconds:
            raise UpdateInProgressError(held(name, silence, self.lease_seconds))
        try:
            self._write({"tags": self._tags()})
            self._check_held()
        except LeaseLostError:
            if self._stack() is not None:  # else the change ended in the meantime
                raise

    def write(self, record: Record) -> Record:
        """Replace the record; return it.

        :raises LeaseLostError: another run has taken over.
        """
        self._check_held()
        self._write(self._content(record))
        return record

    def renew(self) -> None:
        """Send a heartbeat if the last one is more than a third of the lease ago."""
        now, due = self.clock(), timedelta(seconds=self.lease_seconds / 3)
        if self._renewed and now - self._renewed > due:
            self._check_held()
            self._write({"tags": self._tags()})

    def release(self) -> None:
        """Let any other run take over at once: this one has ended and leaves its journal."""
        if not self._is_held():
            return
        try:
            self._write({"tags": f"holder={self.operation},renewed={_NEVER}"})
        except ClusterError as error:
            LOG.warning("the journal is free only after %.0f s: %s", self.lease_seconds, error)

    def remove(self) -> None:
        """Delete the journal: the change is finished or undone."""
        deadline = time.monotonic() + _SETTLES_WITHIN
        while (stack := self._settle()) is not None:
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"stack {self._name}, the journal of this change, is {stack['stack_status']}: "
                    "expected it to be deleted. The change itself has ended: delete this stack"
                )
            try:
                self.service.delete(reference(stack))
            except ClusterError as error:
                if error.status != 409:  # another action is in progress
                    raise
            time.sleep(0.02)

    def _check_held(self) -> None:
        if not self._is_held():
            raise LeaseLostError(
                f"This run stopped where it was: another run holds stack {self._name}, the journal "
                "of this change"
            )

    def _write(self, content: Json) -> None:
        stack = self._settle()
        if stack is None:
            raise LeaseLostError(
                f"This run stopped where it was: stack {self._name}, the journal of this change, "
                "is gone"
            )
        try:
            self.service.update(reference(stack), content, existing=True)
        except ClusterError as error:
            if error.status != 409:  # an answer was lost: the first request is being carried out
                raise
        self._settle()
        self._renewed = self.clock()

    def _settle(self) -> Json | None:
        deadline = time.monotonic() + _SETTLES_WITHIN
        pause = 0.02
        while (stack := self._stack()) is not None and stack["stack_status"].endswith(
            "_IN_PROGRESS"
        ):
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"stack {self._name} stays in {stack['stack_status']}: expected it to end this "
                    f"within {_SETTLES_WITHIN:.0f} s: check that Heat's engines run"
                )
            time.sleep(pause)
            pause = min(2 * pause, 1.0)
        return stack

    def _content(self, record: Record) -> Json:
        return {"files": {_FILE: encode(record)}, "tags": self._tags()}

    def _tags(self) -> str:
        renewed = self.clock().strftime("%Y-%m-%dT%H:%M:%SZ")
        return f"holder={self.operation},renewed={renewed}"


def _held(stack: Json, time_now: datetime) -> tuple[str, float]:
    tags = dict(tag.split("=", 1) for tag in stack.get("tags") or () if "=" in tag)
    renewed = tags.get("renewed", _NEVER).replace("Z", "+00:00")
    silence = (time_now - datetime.fromisoformat(renewed)).total_seconds()
    return tags.get("holder", ""), silence


# --- bytes ----------------------------------------------------------------------------------------


def encode(record: Record) -> str:
    """Return a record as text, with one copy of a body that several steps share."""
    bodies: dict[str, Json] = {}

    def store(body: Body | None) -> str | None:
        if body is None:
            return None
        content = body.as_request()
        text = json.dumps(content, sort_keys=True)
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        bodies[name] = content
        return name

    plan = record.plan
    content = {
        "done": record.done,
        "context": dict(record.context),
        "phase": record.phase.value,
        "upgradeType": plan.upgrade_type,
        "stack": plan.stack,
        "steps": [_step_to_dict(step, store) for step in plan.steps],
        "members": [asdict(member) for member in plan.members],
        "places": {vdu_id: asdict(place) for vdu_id, place in plan.places.items()},
        "bodies": bodies,
    }
    return base64.b64encode(to_bytes(record, _FORMAT, content)).decode()


def decode(text: str) -> Record:
    """Return the record of a text that :func:`encode` returned.

    :raises UpdateInProgressError: another version of this program wrote it.
    """
    common, content = from_bytes(base64.b64decode(text), _FORMAT)
    bodies = {name: Body(**body) for name, body in content["bodies"].items()}
    plan = StackPlan(
        namespace="",
        instance_id=common["instance_id"],
        steps=tuple(_step_from_dict(step, bodies) for step in content["steps"]),
        upgrade_type=content["upgradeType"],
        stack=content["stack"],
        members=tuple(VnfcServer(**member) for member in content["members"]),
        places={vdu_id: Place(**place) for vdu_id, place in content["places"].items()},
    )
    return Record(
        **common,
        plan=plan,
        done=content["done"],
        context=content["context"],
        phase=Phase(content["phase"]),
    )


def _step_to_dict(step: AnyStep, store: Callable[[Body | None], str | None]) -> Json:
    values: Json = {"stack": step.stack, "member": step.member and asdict(step.member)}
    if isinstance(step, ScriptStep):
        return {**values, "role": step.role}
    return {
        **values,
        "action": step.action.name,
        "before": store(step.before),
        "after": store(step.after),
        "reasons": [reason.text for reason in step.reasons],
    }


def _step_from_dict(values: Mapping[str, Any], bodies: Mapping[str, Body]) -> AnyStep:
    member = VnfcServer(**values["member"]) if values["member"] else None
    if "role" in values:
        return ScriptStep.of(values["role"], values["stack"], member)
    before, after = (bodies.get(values[side]) for side in ("before", "after"))
    action = Action[values["action"]]
    return StackStep.of(action, values["stack"], before, after, member, values["reasons"])
