# SPDX-License-Identifier: Apache-2.0
"""What a change of stacks needs to be undone or resumed, and how its journal writes it down."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from container_update.model.objects import Json
from container_update.model.operation import (
    OperationRecord,
    Phase,
    StepProgress,
    from_values,
    to_values,
)
from container_update.model.packing import pack, unpack
from container_update.model.plan import Action
from container_update.model.scripts import ScriptStep
from container_update.openstack.plan import INSTANTIATE, AnyStep, StackPlan, StackStep
from container_update.openstack.software import Software
from container_update.openstack.vnfcs import VnfcServer
from container_update.package.hot import Place, StackBody
from container_update.planning.steps.codec import step_from_dict, step_to_dict

_FORMAT = 7
MARK = "container-update-"
"""What every tag begins with that this program sets."""


@dataclass(frozen=True)
class StackRecord(OperationRecord):
    """One change that is under way."""

    plan: StackPlan
    done: int = 0
    """How many steps are done, from the first."""
    committed: bool = False
    """What nothing brings back may have been sent, and may arrive late: there is no way back."""
    context: Mapping[str, Any] = field(default_factory=dict)
    """What a resume needs beside the plan, as plain values; no passwords."""

    def concerns(self, stack: str) -> bool:
        """Return whether it changes a stack, given by name, id or ``name/id``, old or new."""
        old, new = self.plan.stack, self.plan.new_stack
        return stack in (old, *old.split("/"), new) or stack.partition("/")[0] == new

    @property
    def mark(self) -> str:
        """What the tags begin with that this operation sets on the stacks that it changes."""
        return f"{MARK}{self.operation[:8]}"

    def tag(self, body: StackBody | None) -> str:
        """Return the tag that shows that a stack was sent this body."""
        content = body and _body_to_note(body, self.plan.kind).as_request()
        text = json.dumps(content, sort_keys=True)
        return f"{self.mark}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    @property
    def planned(self) -> tuple[AnyStep, ...]:
        """See :class:`OperationRecord`."""
        return self.plan.steps

    def progress(self, *, runs: bool = False) -> str:
        """See :class:`OperationRecord`."""
        return (
            super().progress(runs=runs) if self.phase is Phase.UNDO else f"{self.done} steps done"
        )

    def overview(self, states: Sequence[StepProgress] = ()) -> Iterator[str]:
        """Yield the lines of the plan."""
        yield self.plan.overview(states)

    def states_of_steps(self, *, runs: bool) -> tuple[StepProgress, ...]:
        """Return how far each step is: they are carried out one after another. Empty while they are
        undone: nothing notes how far that is.

        :param runs: a process carries the operation out.
        """
        if self.phase is Phase.UNDO:
            return ()
        begun = "running" if runs else "interrupted"
        words = ["done"] * self.done + [begun] + ["not started"] * len(self.plan.steps)
        return tuple(map(StepProgress, words[: len(self.plan.steps)]))


def _body_to_note(body: StackBody, kind: str) -> StackBody:
    """Return a body without an instantiation's hidden values, which its digest would let guess."""
    if kind != INSTANTIATE:
        return body
    hidden = body.hidden
    return replace(body, parameters={n: v for n, v in body.parameters.items() if n not in hidden})


# --- bytes ----------------------------------------------------------------------------------------


def encode(record: StackRecord) -> str:
    """Return a record as text, with one copy of a body that several steps share."""
    bodies: dict[str, Json] = {}

    def store(body: StackBody | None) -> str | None:
        if body is None:
            return None
        content = _body_to_note(body, record.plan.kind).as_request()
        text = json.dumps(content, sort_keys=True)
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        bodies[name] = content
        return name

    plan = record.plan
    content = {
        **to_values(record, _FORMAT),
        "done": record.done,
        "committed": record.committed,
        "context": dict(record.context),
        "phase": record.phase.value,
        "kind": plan.kind,
        "stack": plan.stack,
        "steps": [_step_to_dict(step, store) for step in plan.steps],
        "members": [asdict(member) for member in plan.members],
        "places": {vdu_id: asdict(place) for vdu_id, place in plan.places.items()},
        "timeoutMins": plan.timeout_mins,
        "tags": plan.tags,
        "bodies": bodies,
    }
    return base64.b64encode(pack(content)).decode()


def decode(text: str) -> StackRecord:
    """Return the record of a text; UpdateInProgressError: it is of another version of this
    program."""
    content = unpack(base64.b64decode(text))
    common = from_values(content, _FORMAT)
    bodies = {name: StackBody(**body) for name, body in content["bodies"].items()}
    plan = StackPlan(
        namespace="",
        instance_id=common["instance_id"],
        steps=tuple(_step_from_dict(step, bodies) for step in content["steps"]),
        kind=content["kind"],
        stack=content["stack"],
        members=tuple(_member_from_dict(member) for member in content["members"]),
        places={vdu_id: Place(**place) for vdu_id, place in content["places"].items()},
        timeout_mins=content["timeoutMins"],
        tags=tuple(content["tags"]),
    )
    return StackRecord(
        **common,
        plan=plan,
        done=content["done"],
        committed=content["committed"],
        context=content["context"],
        phase=Phase(content["phase"]),
    )


def _step_to_dict(step: AnyStep, store: Callable[[StackBody | None], str | None]) -> Json:
    if isinstance(step, ScriptStep):
        return step_to_dict(step)
    return {
        "stack": step.stack,
        "member": step.member and asdict(step.member),
        "action": step.action.name,
        "before": store(step.before),
        "after": store(step.after),
        "reasons": [reason.text for reason in step.reasons],
        "updated": step.updated,
        "doomed": step.replaced,
    }


def _step_from_dict(values: Mapping[str, Any], bodies: Mapping[str, StackBody]) -> AnyStep:
    if "role" in values:
        script = step_from_dict(values)
        assert isinstance(script, ScriptStep)
        return script
    member = _member_from_dict(values["member"]) if values["member"] else None
    before, after = (bodies.get(values[side]) for side in ("before", "after"))
    step = StackStep.of(
        Action[values["action"]],
        values["stack"],
        before,
        after,
        member,
        values["reasons"],
        values["updated"],
    )
    resources = tuple((stack, name, id_) for stack, name, id_ in values["doomed"])
    return replace(step, replaced=resources)


def _member_from_dict(values: Mapping[str, Any]) -> VnfcServer:
    software = values["software"]
    return VnfcServer(**{**values, "software": software and Software(**software)})
