# SPDX-License-Identifier: Apache-2.0
"""Plans and outcomes as plain values, for programs. Pure; never a Secret's value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from container_update.engine.progress import step_events
from container_update.model.outcome import (
    Event,
    Outcome,
    ResumeStarted,
    StepResult,
    StepWait,
    UndoStarted,
)
from container_update.model.plan import (
    ConfigUse,
    FieldChange,
    ImageChange,
    KeyChange,
    Note,
    Plan,
    Reason,
    Step,
)
from container_update.planning.summary import content_diffs, pods_of

API_VERSION = "container-update/v1"
"""Of the documents; another one means that a field was removed or has another meaning. Their schema
is in ``schema.json``, beside this module."""


def document(kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with its version and its kind."""
    return {"apiVersion": API_VERSION, "kind": kind, **body}


def plan_dict(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON values: actions and reasons; of configuration what changes, of a Secret
    only the names of its keys."""
    body = {
        "namespace": plan.namespace,
        "instanceId": plan.instance_id,
        "packages": [asdict(package) for package in plan.packages],
        "steps": [step_dict(step) for step in plan.steps],
        "unchanged": [key.as_dict() for key in plan.unchanged],
        "ignored": [_note_dict(note) for note in plan.ignored],
        "notes": [_note_dict(note) for note in plan.notes],
        "defFiles": list(plan.def_files),
    }
    return document("Plan", body)


def _note_dict(note: Note) -> dict[str, Any]:
    values = {"object": note.key.as_dict(), "text": note.text}
    return values if note.change is None else {**values, **_field_dict(note.change)}


def step_dict(step: Step) -> dict[str, Any]:
    """Return a step as JSON values."""
    return {
        "object": step.key.as_dict(),
        "action": step.action.value,
        "pods": pods_of(step),
        "images": dict(step.images),
        "reasons": [entry for reason in step.reasons for entry in reason_dicts(reason)],
        "diff": [
            {
                "key": diff.change.key,
                "change": diff.change.how,
                "lines": list(diff.lines),
                "summary": diff.summary,
            }
            for diff in content_diffs(step)
        ],
    }


def reason_dicts(reason: Reason) -> Iterator[dict[str, Any]]:
    """Yield a reason as JSON values: one for each changed key of a ConfigMap or Secret."""
    cause = reason.cause
    if isinstance(cause, ConfigUse):
        named = {name: getattr(cause.object, name) for name in ("kind", "namespace", "name")}
        for key in cause.keys or (None,):
            yield {"text": str(reason), **named, "key": key, "path": cause.path}
    elif isinstance(cause, ImageChange):
        yield {
            "text": str(reason),
            "path": f"{cause.place}: image",
            "old": cause.old,
            "new": cause.new,
        }
    elif isinstance(cause, KeyChange):
        yield {"text": str(reason), "key": cause.key, "change": cause.how}
    elif isinstance(cause, FieldChange):
        yield {"text": str(reason), **_field_dict(cause)}
    else:
        yield {"text": str(reason)}


def _field_dict(change: FieldChange) -> dict[str, Any]:
    place = {"file": change.source.path, "line": change.source.line}
    return {"path": change.path, "old": change.old, "new": change.new, **place}


def event_dicts(event: Event) -> Iterator[dict[str, Any]]:
    """Yield an event of a running operation as JSON values, for a stream of lines."""
    common = document(
        "Event", {"time": datetime.now(timezone.utc).isoformat(timespec="milliseconds")}
    )
    if isinstance(event, Plan):
        yield {**common, "event": "plan", "plan": plan_dict(event)}
    elif isinstance(event, UndoStarted | ResumeStarted):
        name = "undo" if isinstance(event, UndoStarted) else "resume"
        yield {**common, "event": name, "cause": event.cause}
    elif isinstance(event, StepWait):
        yield {
            **common,
            "event": "waiting",
            "object": event.key.as_dict(),
            "message": event.message,
            "ready": event.ready,
            "desired": event.desired,
            "failsIn": event.gives_up_in,
            "trouble": event.trouble,
        }
    else:
        more: dict[str, Any]
        if isinstance(event, Step):
            name, more = "step", {"object": event.key.as_dict()}
        else:
            name = "result"
            more = {"object": event.step.key.as_dict(), "diagnosis": diagnosis_dict(event)}
        yield from ({**common, "event": name, **values, **more} for values in step_events(event))


def diagnosis_dict(result: StepResult) -> dict[str, Any] | None:
    """Return what the failing pod of a step reported as JSON values."""
    diagnosis = result.diagnosis
    if diagnosis is None:
        return None
    return {
        "pod": diagnosis.pod.name,
        "namespace": diagnosis.pod.namespace,
        "container": diagnosis.container,
        "reason": diagnosis.reason,
        "events": list(diagnosis.events),
        "log": list(diagnosis.log),
    }


def outcome_dict(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as JSON values: the plan, the result of each step, the VNFCs."""
    body = {
        "plan": plan_dict(outcome.plan),
        "results": [
            {
                "object": result.step.key.as_dict(),
                "state": result.state.value,
                "message": result.message,
                "seconds": round(result.seconds, 3),
                "pods": list(outcome.restarted.get(result.step.key, ())),
                "diagnosis": diagnosis_dict(result),
            }
            for result in outcome.results
        ],
        "vnfcs": [
            {
                "vduId": vnfc.vdu_id,
                "pod": vnfc.pod_name,
                "namespace": vnfc.namespace,
                "workload": f"{vnfc.workload_kind} {vnfc.workload_name}",
            }
            for vnfc in outcome.vnfcs
        ],
        "requests": outcome.requests,
        "seconds": round(outcome.seconds, 3),
        "revision": outcome.revision,
    }
    return document("Outcome", body)
