"""Plans and outcomes as text for people and as JSON for programs. Pure; never a Secret's value."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from container_update.model.outcome import Outcome, StepResult, StepState
from container_update.model.plan import Action, Plan, Stage, Step
from container_update.planning.steps import ConfigStep, RestartStep

_SYMBOLS = {
    Action.CREATE: "+",
    Action.REPLACE: "~",
    Action.RECREATE: "±",
    Action.UPDATE: "~",
    Action.HOLD: "~",
    Action.SWITCH: "⇄",
    Action.DELETE: "-",
}
_RESTART = "↻"
NOTHING_TO_DO = "Nothing to do: the running objects already match the new package."
_SECTIONS = {
    Stage.OBJECTS: "Other objects",
    Stage.WORKLOADS: "Restarts",
    Stage.SWITCH: "When the new pods are ready",
    Stage.REMOVE: "At the end",
}


def plan_text(plan: Plan) -> str:
    """Return a plan as text: what changes, what restarts and why, what does not."""
    lines = [NOTHING_TO_DO] if plan.is_empty else []
    for title, steps in sections(plan):
        lines += [f"{title}:"]
        lines += [line for step in steps for line in _step_lines(step)]
    for title, notes in remarks(plan):
        lines += [f"{title}:", *(f"    {note}" for note in notes)]
    return "\n".join(lines)


def sections(plan: Plan) -> Iterator[tuple[str, list[Step]]]:
    """Yield each heading of a plan with its steps, in the order of execution."""
    config = [step for step in plan.steps if step.is_config and step.stage is Stage.OBJECTS]
    if config:
        yield "Configuration", config
    for stage in _SECTIONS:
        with_config = stage is Stage.REMOVE
        steps = [s for s in plan.steps if s.stage is stage and (with_config or not s.is_config)]
        if steps:
            yield _title(stage, steps), steps


def remarks(plan: Plan) -> Iterator[tuple[str, list[str]]]:
    """Yield each heading below the steps with its lines, each line once."""
    for title, entries in (
        ("Not applied (a heal of the whole VNF would apply it)", plan.ignored),
        ("Notes", plan.notes),
        ("Unchanged", plan.unchanged),
    ):
        if entries:
            yield title, [str(entry) for entry in dict.fromkeys(entries)]


def symbol(step: Step) -> str:
    """Return a symbol for the action of a step."""
    return _SYMBOLS.get(step.action, _RESTART)


def _title(stage: Stage, steps: Sequence[Step]) -> str:
    creates = any(step.action is Action.CREATE for step in steps)
    return "Workloads" if stage is Stage.WORKLOADS and creates else _SECTIONS[stage]


def _step_lines(step: Step) -> Iterator[str]:
    yield f"  {symbol(step)} {step.key}: {step.action.value}"
    prefix = "" if step.is_config else "because "
    yield from (f"      {prefix}{reason}" for reason in step.reasons)


def result_text(result: StepResult, pods: Sequence[str] = ()) -> str:
    """Return the result of a step as a line; its current pods, if given, as a second line."""
    step = result.step
    line = f"  {result.state.value}: {step.key}: {step.action.value}"
    line += f" ({result.seconds:.1f} s)" if result.seconds else ""
    if result.message:
        line += f": {result.message}"
    elif step.reasons and not step.is_config:
        line += f", because {step.reasons[0]}"
        more = len(step.reasons) - 1
        line += f" (and {more} more)" if more else ""
    return f"{line}\n      pods: {', '.join(pods)}" if pods else line


def _is_of_change(result: StepResult) -> bool:
    """Return whether a step is of a change of the package: more than content and images."""
    step = result.step
    return not isinstance(step, ConfigStep | RestartStep) or getattr(step, "with_metadata", False)


def summary_text(outcome: Outcome) -> str:
    """Return an outcome as one line; '' if a step failed."""
    if not outcome.results:
        return NOTHING_TO_DO
    if any(result.state is not StepState.DONE for result in outcome.results):
        return ""
    if any(map(_is_of_change, outcome.results)):
        return _change_summary(outcome)
    config = sum(1 for result in outcome.results if result.step.is_config)
    templates = sum(1 for result in outcome.results if result.step.action is Action.TEMPLATE)
    restarted = len(outcome.results) - config - templates
    replaced = f"{templates} templates replaced, " if templates else ""
    return (
        f"Updated in {outcome.seconds:.1f} s with {outcome.requests} requests: "
        f"{config} configuration objects written, {restarted} workloads restarted, {replaced}"
        f"{len(outcome.plan.unchanged)} objects unchanged."
    )


def _change_summary(outcome: Outcome) -> str:
    steps = [result.step for result in outcome.results]
    actions = [step.action for step in steps]
    created, deleted = actions.count(Action.CREATE), actions.count(Action.DELETE)
    changed = {step.key for step in steps} - {
        step.key for step in steps if step.action in (Action.CREATE, Action.DELETE)
    }
    return (
        f"Changed in {outcome.seconds:.1f} s with {outcome.requests} requests: {created} objects "
        f"created, {len(changed)} changed, {deleted} deleted, {len(outcome.plan.unchanged)} "
        "unchanged."
    )


def outcome_text(outcome: Outcome) -> str:
    """Return an outcome as text: a line for each step, then the summary."""
    lines = [
        result_text(result, outcome.restarted.get(result.step.key, ()))
        for result in outcome.results
    ]
    return "\n".join(filter(None, [*lines, summary_text(outcome)]))


# --- JSON ---------------------------------------------------------------------------------------


def plan_json(plan: Plan) -> str:
    """Return a plan as a JSON document; see :func:`plan_dict`."""
    return json.dumps(plan_dict(plan), indent=2)


def outcome_json(outcome: Outcome) -> str:
    """Return an outcome as a JSON document; see :func:`outcome_dict`."""
    return json.dumps(outcome_dict(outcome), indent=2)


def plan_dict(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON values: actions and reasons, never the content of an object."""
    return {
        "namespace": plan.namespace,
        "instanceId": plan.instance_id,
        "steps": [
            {
                "object": asdict(step.key),
                "action": step.action.value,
                "images": dict(step.images),
                "reasons": [str(reason) for reason in step.reasons],
            }
            for step in plan.steps
        ],
        "unchanged": [str(key) for key in plan.unchanged],
        "ignored": [{"object": str(note.key), "text": note.text} for note in plan.ignored],
        "notes": [{"object": str(note.key), "text": note.text} for note in plan.notes],
        "defFiles": list(plan.def_files),
    }


def outcome_dict(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as JSON values: the plan, the result of each step, the VNFCs."""
    return {
        "plan": plan_dict(outcome.plan),
        "results": [
            {
                "object": str(result.step.key),
                "state": result.state.value,
                "message": result.message,
                "seconds": round(result.seconds, 3),
                "pods": list(outcome.restarted.get(result.step.key, ())),
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
    }
