# SPDX-License-Identifier: Apache-2.0
"""Plans and outcomes as plain values, for programs. Pure; never a Secret's value."""

from __future__ import annotations

from collections.abc import Iterator
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
from container_update.model.plan import Plan, Step
from container_update.planning.plan_json import document, plan_dict


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
