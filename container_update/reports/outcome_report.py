# SPDX-License-Identifier: Apache-2.0
"""What became of a plan, and how the workloads are, as lines for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from container_update.model.outcome import Outcome, StepResult, StepState
from container_update.model.pauses import GateStep, HoldStep
from container_update.model.plan import INSTALL, UNINSTALL, Action, Plan
from container_update.model.scripts import ScriptStep
from container_update.planning.comparison.diff import printable
from container_update.planning.steps import ConfigStep, RestartStep
from container_update.planning.summary import count_noun, nothing_to_do
from container_update.reports import lines
from container_update.reports.lines import Line
from container_update.reports.plan_report import plan_text

_STYLES = {
    StepState.DONE: lines.GOOD,
    StepState.FAILED: lines.BAD,
    StepState.UNDO_FAILED: lines.BAD,
    StepState.STOPPED: lines.WARNING,
    StepState.UNDONE: lines.WARNING,
}


def describe(value: Plan | Outcome) -> str:
    """Return a plan or an outcome as the command shows it, complete, without a Secret's value.

    >>> print(describe(Plan(namespace="cnf", instance_id=None, steps=())))
    Nothing to do: the cluster already matches the new package.

    :returns: lines without styles; an outcome has the last log lines of failing pods too.
    """
    return plan_text(value) if isinstance(value, Plan) else outcome_text(value)


def outcome_text(outcome: Outcome) -> str:
    """Return an outcome with all that it has."""
    return lines.text_of(outcome_lines(outcome))


def outcome_lines(outcome: Outcome) -> Iterator[Line]:
    """Yield what failing pods reported, a line for each step, then the sum."""
    for result in outcome.results:
        yield from diagnosis_lines(result)
    for result in outcome.results:
        yield _result_line(result)
        pods = outcome.restarted.get(result.step.key, ())
        if pods and result.state is StepState.DONE:
            yield Line.of(f"      pods: {', '.join(pods)}")
    if summary_text(outcome):
        yield summary_line(outcome)


def result_lines(result: StepResult) -> Iterator[Line]:
    """Yield the result of a step, then what its failing pod reported."""
    yield _result_line(result)
    yield from diagnosis_lines(result)


def diagnosis_lines(result: StepResult) -> Iterator[Line]:
    """Yield what the failing pod of a step reported; nothing of any other step."""
    diagnosis = result.diagnosis
    if diagnosis is None:
        return
    name = diagnosis.pod.name
    if name not in result.message:
        yield Line.of(
            f"  {result.step.key}: pod {name}, container {diagnosis.container}: ",
            (printable(diagnosis.reason), lines.BAD),
        )
    for event in diagnosis.events:
        yield Line.of("      Event: ", printable(event))
    if diagnosis.log:
        yield Line.of("      the last lines of its log:")
    for line in diagnosis.log:
        yield Line.of(("      | ", lines.DIM), printable(line))


def _result_line(result: StepResult) -> Line:
    step = result.step
    text = f": {step.key}: {step.action.value}"
    text += f" ({result.seconds:.1f} s)" if result.seconds else ""
    text += f": {printable(result.message)}" if result.message else ""
    return Line.of("  ", (result.state.value, _STYLES.get(result.state, lines.DIM)), text)


def summary_line(outcome: Outcome) -> Line:
    """Return :func:`summary_text` as a line."""
    return Line.of((summary_text(outcome), lines.GOOD))


def summary_text(outcome: Outcome) -> str:
    """Return an outcome as one line; '' if a step failed."""
    if not outcome.results:
        return nothing_to_do(outcome.plan)
    results = _of_the_plan(outcome)
    states = {result.state for result in results}
    if StepState.UNDONE in states and states <= {StepState.UNDONE, StepState.NOT_STARTED}:
        wrote = [result for result in results if not isinstance(result.step, _WRITES_NOTHING)]
        undone = sum(result.state is StepState.UNDONE for result in wrote)
        steps = f"{count_noun(undone, 'step')}{outcome.exceptions}"
        return f"Undone {_cost(outcome)}: everything is as before ({steps})."
    if outcome.held:
        done = len(outcome.of_state(StepState.DONE))
        what = f"{done} of {count_noun(len(outcome.plan.steps), 'step')} done {_cost(outcome)}"
        return f"{outcome.held.key.name}: waits for a person ({what})."
    return _ended_text(outcome, results) if states == {StepState.DONE} else ""


def _ended_text(outcome: Outcome, results: Sequence[StepResult]) -> str:
    if outcome.plan.kind in _ENDS:
        what = count_noun(len(results), "object")
        return f"{_ENDS[outcome.plan.kind]} {_cost(outcome)}: {what}."
    verb, sum_of = ("Changed", _change_sum) if is_change(outcome) else ("Updated", _update_sum)
    return f"{verb} {_cost(outcome)}: {sum_of(outcome, results)}."


_WRITES_NOTHING = (GateStep, HoldStep, ScriptStep)
"""There is nothing of it to be undone."""
_ENDS = {INSTALL: "Installed", UNINSTALL: "Uninstalled"}


def is_change(outcome: Outcome) -> bool:
    """Return whether it is no update, of content and images alone: what undoes one undoes less."""
    steps = [result.step for result in _of_the_plan(outcome)]
    others = any(not isinstance(step, ConfigStep | RestartStep) for step in steps)
    return others or outcome.plan.kind in _ENDS


def _of_the_plan(outcome: Outcome) -> Sequence[StepResult]:
    """Return the results of the plan's steps, without those of an interrupted operation before it;
    its results where there was nothing else to do."""
    own = {id(step) for step in outcome.plan.steps}
    return [result for result in outcome.results if id(result.step) in own] or outcome.results


def _cost(outcome: Outcome) -> str:
    """Return the time and the requests that an operation took, as far as they are known."""
    seconds = outcome.seconds or sum(result.seconds for result in outcome.results)
    with_requests = f" with {count_noun(outcome.requests, 'request')}" if outcome.requests else ""
    return f"in {seconds:.1f} s{with_requests}"


def _update_sum(outcome: Outcome, results: Sequence[StepResult]) -> str:
    config = sum(1 for result in results if result.step.is_config)
    templates = sum(1 for result in results if result.step.action is Action.TEMPLATE)
    restarted = len(results) - config - templates
    unchanged = len(outcome.plan.unchanged)  # none where only a journal tells of the plan
    counts = (
        (config, "configuration object", "written"),
        (restarted, "workload", "restarted"),
        (templates, "template", "replaced"),
        (unchanged, "object", "unchanged"),
    )
    return ", ".join(f"{count_noun(n, noun)} {verb}" for n, noun, verb in counts if n)


def _change_sum(outcome: Outcome, results: Sequence[StepResult]) -> str:
    steps = [result.step for result in results]
    actions = [step.action for step in steps]
    created, deleted = actions.count(Action.CREATE), actions.count(Action.DELETE)
    changed = {step.key for step in steps} - {
        step.key for step in steps if step.action in (Action.CREATE, Action.DELETE)
    }
    kept = len(outcome.plan.unchanged)
    counts = {"created": created, "changed": len(changed), "deleted": deleted, "unchanged": kept}
    (verb, number), *others = [(verb, n) for verb, n in counts.items() if n] or [("changed", 0)]
    first = f"{count_noun(number, 'object')} {verb}"
    return ", ".join([first, *(f"{n} {verb}" for verb, n in others)])


# --- how the workloads are ----------------------------------------------------------------------

if TYPE_CHECKING:
    from container_update.engine.instances import WorkloadState

_HEAD = ("WORKLOAD", "READY", "NEW", "AGE", "IMAGE")


def workload_lines(workloads: Sequence[WorkloadState], now: datetime) -> Iterator[Line]:
    """Yield a table of the workloads at a time in UTC; below one that has trouble, what it is."""
    texts = lines.align([_HEAD, *(_row(workload, now) for workload in workloads)])
    for text, workload in zip(texts, (None, *workloads), strict=True):
        short = workload is not None and workload.ready < workload.desired
        yield Line.of((text, lines.DIM if workload is None else lines.BAD if short else ""))
        if workload is not None and workload.trouble:
            yield Line.of("    ", (printable(workload.trouble), lines.BAD))


def _row(workload: WorkloadState, now: datetime) -> tuple[str, ...]:
    return (
        printable(str(workload.key)),
        f"{workload.ready}/{workload.desired}",
        str(workload.updated),
        lines.age(workload.created, now),
        printable(", ".join(workload.images)),
    )
