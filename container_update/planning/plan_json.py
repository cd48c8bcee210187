# SPDX-License-Identifier: Apache-2.0
"""A plan as plain values, for programs and for files. Pure; never a Secret's value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

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
is in ``reports/schema.json``."""


def document(kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with its version and its kind."""
    return {"apiVersion": API_VERSION, "kind": kind, **body}


def plan_dict(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON values; of a Secret only the names of its keys."""
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
