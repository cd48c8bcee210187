"""What is needed to undo a change or to go on with it: a stack of its own, beside the VNF's.

A stack without resources holds the journal as one of its files. It is where the VNF is, so that
any host with access to the project can finish or undo what a lost host began; its name can be taken
only once, which keeps a second change of the same instance out; nothing of it is in ``stack show``.
It takes one stack of the project's quota while a change runs. Who holds it says so in its tags
every now and then: after ``lease_seconds`` of silence another host may go on.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from typing import Any

from container_update.cluster.lease import held
from container_update.model.errors import (
    ClusterError,
    LeaseLostError,
    UpdateInProgressError,
)
from container_update.model.objects import Json
from container_update.model.operation import (
    OperationRecord,
    Phase,
    from_bytes,
    name_of,
    to_bytes,
)
from container_update.model.plan import Action
from container_update.package.hot import Body, Place
from container_update.stacks.client import StackService, reference
from container_update.stacks.plan import StackPlan
from container_update.stacks.steps import AnyStep, ScriptStep, StackStep
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
        """How far it is, for people."""
        return super().progress if self.phase is Phase.UNDO else f"{self.done} steps done"

    def overview(self) -> Iterator[str]:
        """Yield the lines of the plan."""
        yield str(self.plan)


def now() -> datetime:
    """Return the time, in UTC."""
    return datetime.now(timezone.utc)


class Journal:
    """The journal of one VNF instance.

    :param holder: who asks; another's journal is touched only after its silence.
    """

    def __init__(  # noqa: PLR0913
        self,
        service: StackService,
        instance_id: str | None,
        holder: str,
        lease_seconds: float,
        *,
        clock: Callable[[], datetime] = now,
        pause: Callable[[float], object] | None = None,
    ) -> None:
        self._service = service
        self._name = name_of(instance_id)
        self._holder = holder
        self._lease = lease_seconds
        self._clock = clock
        self._pause = pause or threading.Event().wait
        self._renewed: datetime | None = None

    # --- reading --------------------------------------------------------------------------------

    def read(self) -> Record | None:
        """Return the change that is under way; None where there is none, or it ends just now."""
        stack = self._settle()
        if stack is None:
            return None
        return decode(self._service.files(reference(stack))[_FILE])

    def holder(self) -> tuple[str, float] | None:
        """Return who holds the journal, and for how many seconds nothing was heard.

        None where there is no journal, or where its run has ended and left it.
        """
        stack = self._stack()
        if stack is None or f"renewed={_NEVER}" in (stack.get("tags") or ()):
            return None
        return _held(stack, self._clock())

    def _stack(self) -> Json | None:
        return self._service.stack(self._name)

    # --- writing --------------------------------------------------------------------------------

    def begin(self, record: Record) -> None:
        """Write it down before anything is done. UpdateInProgressError: there is one already."""
        body = {"stack_name": self._name, "template": _TEMPLATE, **self._content(record)}
        try:
            self._service.create(body)
        except ClusterError as error:
            if error.status != 409:
                raise
            stack = self._stack()
            if stack is None or _held(stack, self._clock())[0] != self._holder:
                raise UpdateInProgressError(
                    f"another change of this VNF instance has begun: stack {self._name} is its "
                    "journal"
                ) from error
        self._settle()
        self._renewed = self._clock()

    def take_over(self) -> None:
        """Become the holder; nothing happens where the change has ended.

        :raises UpdateInProgressError: the holder's last heartbeat is less than the lease ago.
        """
        stack = self._settle()
        if stack is None:
            return
        name, silence = _held(stack, self._clock())
        if name != self._holder and silence < self._lease:
            raise UpdateInProgressError(held(name, silence, self._lease))
        try:
            self._write({"tags": self._tags()})
            self._check_held()
        except LeaseLostError:
            if self._stack() is not None:  # else the change ended in the meantime
                raise

    def write(self, record: Record) -> Record:
        """Write down how far it is. LeaseLostError: another host has taken over."""
        self._check_held()
        self._write(self._content(record))
        return record

    def renew(self) -> None:
        """Let it be known that somebody is here, now and then."""
        if self._renewed and (self._clock() - self._renewed).total_seconds() > self._lease / 3:
            self._check_held()
            self._write({"tags": self._tags()})

    def release(self) -> None:
        """Let anybody go on at once, where a run ends and its journal stays."""
        stack = self._stack()
        if stack is None or _held(stack, self._clock())[0] != self._holder:
            return
        try:
            self._write({"tags": f"holder={self._holder},renewed={_NEVER}"})
        except ClusterError as error:
            LOG.warning("the journal is free only after %.0f s: %s", self._lease, error)

    def remove(self) -> None:
        """End: the change is finished or undone."""
        deadline = time.monotonic() + _SETTLES_WITHIN
        while (stack := self._settle()) is not None:
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"stack {self._name}, the journal of this change, is {stack['stack_status']}: "
                    "expected it to be deleted. The change itself has ended: delete this stack"
                )
            try:
                self._service.delete(reference(stack))
            except ClusterError as error:
                if error.status != 409:  # somebody else is at it
                    raise
            self._pause(0.02)

    def _check_held(self) -> None:
        stack = self._stack()
        if stack is None or _held(stack, self._clock())[0] != self._holder:
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
            self._service.update(reference(stack), content, existing=True)
        except ClusterError as error:
            if error.status != 409:  # a lost answer was sent again: it is being done
                raise
        self._settle()
        self._renewed = self._clock()

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
            self._pause(pause)
            pause = min(2 * pause, 1.0)
        return stack

    def _content(self, record: Record) -> Json:
        return {"files": {_FILE: encode(record)}, "tags": self._tags()}

    def _tags(self) -> str:
        renewed = self._clock().strftime("%Y-%m-%dT%H:%M:%SZ")
        return f"holder={self._holder},renewed={renewed}"


def _held(stack: Json, time_now: datetime) -> tuple[str, float]:
    tags = dict(tag.split("=", 1) for tag in stack.get("tags") or () if "=" in tag)
    renewed = tags.get("renewed", _NEVER).replace("Z", "+00:00")
    silence = (time_now - datetime.fromisoformat(renewed)).total_seconds()
    return tags.get("holder", ""), silence


# --- bytes ----------------------------------------------------------------------------------------


def encode(record: Record) -> str:
    """Return a record as text. A body that several steps share is in it once."""
    bodies: dict[str, Json] = {}

    def kept(body: Body | None) -> str | None:
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
        "steps": [_step_to_dict(step, kept) for step in plan.steps],
        "members": [asdict(member) for member in plan.members],
        "places": {vdu_id: asdict(place) for vdu_id, place in plan.places.items()},
        "bodies": bodies,
    }
    return base64.b64encode(to_bytes(record, _FORMAT, content)).decode()


def decode(text: str) -> Record:
    """Return the record that :func:`encode` made a text of.

    :raises UpdateInProgressError: another version of this program wrote it.
    """
    common, content = from_bytes(base64.b64decode(text), _FORMAT)
    bodies = {name: _body(body) for name, body in content["bodies"].items()}
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


def _body(content: Mapping[str, Any]) -> Body:
    return Body(
        content["template"], content["parameters"], content["files"], content["environment"]
    )


def _step_to_dict(step: AnyStep, kept: Callable[[Body | None], str | None]) -> Json:
    values: Json = {"stack": step.stack, "member": step.member and asdict(step.member)}
    if isinstance(step, ScriptStep):
        return {**values, "role": step.role}
    return {
        **values,
        "action": step.action.name,
        "before": kept(step.before),
        "after": kept(step.after),
        "reasons": [reason.text for reason in step.reasons],
    }


def _step_from_dict(values: Mapping[str, Any], bodies: Mapping[str, Body]) -> AnyStep:
    member = VnfcServer(**values["member"]) if values["member"] else None
    if "role" in values:
        return ScriptStep.of(values["role"], values["stack"], member)
    before, after = (bodies.get(values[side]) for side in ("before", "after"))
    action = Action[values["action"]]
    return StackStep.of(action, values["stack"], before, after, member, values["reasons"])
