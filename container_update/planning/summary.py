# SPDX-License-Identifier: Apache-2.0
"""A plan in short, for every front end: its numbers, and what its steps change in lines. Pure.

Of a Secret only the names of its keys leave this module.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from container_update.model.plan import (
    INSTALL,
    UNDO,
    UNINSTALL,
    Action,
    ConfigUse,
    FieldChange,
    ImageChange,
    Plan,
    Step,
)
from container_update.model.requests import names
from container_update.planning.comparison.diff import KeyDiff, content_diff, printable
from container_update.planning.steps import ConfigStep, ManifestStep, RestartStep, WorkloadStep
from container_update.planning.steps.workload import CHANGE_CAUSE
from container_update.workloads.registry import kind_of

_MATCH = "Nothing to do: the cluster already matches the new package."
_MATCH_IN_PART = "Nothing to do: images and configuration already match the new package."
_MATCH_AS_NOTED = "Nothing to do: no changes; the notes say what differs and stays."
_NOTHING_TO_DO = {
    INSTALL: "Nothing to do: the cluster already has everything that the package describes.",
    UNDO: "Nothing to undo: the history of {} has no finished update.",
    UNINSTALL: "Nothing to do: no object to delete belongs to {}.",
}
_NONE_INSTALLED = (
    "Nothing to do: no VNF instance is installed in namespace {}, and only objects with the label "
    "of an instance are deleted."
)
_RESTARTS = "to restart"
_VERBS = {
    Action.CREATE: "to create",
    Action.REPLACE: "to replace",
    Action.RECREATE: "to recreate",
    Action.UPDATE: "to update",
    Action.SCALE: "to scale",
    Action.TEMPLATE: "to give another template",
    Action.SWITCH: "to switch to the new pods",
    Action.DELETE: "to delete",
    Action.HAND_OVER: "to hand over",
    Action.RUN: "to coordinate",
    Action.CHECK: "to check",
    Action.WAIT: "to wait for",
}
"""The words for actions; for all others they are :data:`_RESTARTS`."""

_MOST_LINES, _LONGEST_LINE = 200, 500
"""Lines of what a step changes that are kept or sent, and characters of each."""


# --- numbers ------------------------------------------------------------------------------------


def plan_sum(plan: Plan) -> str:
    """Return the number of objects for each action: '2 to replace, 3 to restart (9 pods), ...'."""
    steps = {step.place: step for step in plan.steps if step.action is not Action.HOLD}.values()
    counts = Counter(_VERBS.get(step.action, _RESTARTS) for step in steps)
    words = [f"{number} {verb}" for verb, number in counts.items() if verb != _RESTARTS]
    if number := counts[_RESTARTS]:
        restarts = [step for step in steps if step.action not in _VERBS]
        pods = sum(map(pods_of, restarts))
        words.append(f"{number} {_RESTARTS}" + (f" ({count_noun(pods, 'pod')})" if pods else ""))
    if plan.unchanged:
        words.append(f"{len(plan.unchanged)} unchanged")
    return f"{', '.join(words)}."


def pods_of(step: Step) -> int:
    """Return how many pods of its workload a step concerns; 0 where that is not known."""
    if not isinstance(step, WorkloadStep) or step.before is None:
        return 0
    kind = kind_of(step.key)
    if kind is not None and step.action is Action.ROLL:
        return kind.number_to_replace(step.with_change(step.before))
    return 0 if kind is None else kind.counts(step.before).desired


def count_noun(number: int, noun: str) -> str:
    """Return a number with its noun, a kind too: '1 pod', '2 pods', '2 NetworkPolicies'."""
    if number != 1 and not noun.endswith("ts"):  # Endpoints is a plural
        noun = re.sub(r"(?<=[^aeiou])y$", "ie", noun)
        noun += "es" if noun.endswith(("s", "x", "ch")) else "s"
    return f"{number} {noun}"


def nothing_to_do(plan: Plan) -> str:
    """Say that a plan has no steps."""
    match = _MATCH_AS_NOTED if plan.notes else _MATCH_IN_PART if plan.ignored else _MATCH
    if plan.kind == UNINSTALL and not plan.instance_id:
        return _NONE_INSTALLED.format(plan.namespace)
    instance = f"VNF instance {plan.instance_id}" if plan.instance_id else "the VNF instance"
    return _NOTHING_TO_DO.get(plan.kind, match).format(instance)


# --- what changes -------------------------------------------------------------------------------


def content_diffs(step: Step) -> tuple[KeyDiff, ...]:
    """Return what a step changes in a ConfigMap or Secret, key by key; nothing for other steps."""
    if not isinstance(step, ConfigStep) or step.action is Action.DELETE:
        return ()
    return content_diff(step.before, step.after)


def change_lines(step: Step) -> list[str]:
    """Return what a step changes as lines of a diff, bounded: '@@ ... @@', '-old', '+new', ' same'.

    Of configuration these are the lines of each key, of other objects their images and fields.
    """
    lines = [*_config_lines(step), *_field_lines(step)]
    shown = [
        line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"
        for line in islice(lines, _MOST_LINES)
    ]
    more = len(lines) - len(shown)
    return [*shown, f"... {more} more lines"] if more else shown


def _config_lines(step: Step) -> Iterator[str]:
    for diff in content_diffs(step):
        key = printable(diff.change.key)
        if not diff.lines:
            summary = f" ({diff.summary})" if diff.summary else ""
            yield f"@@ {printable(str(diff.change))}{summary} @@"
        for line in diff.lines:
            yield f"{line} {key}" if line.startswith("@@") else line


def _field_lines(step: Step) -> Iterator[str]:
    """Yield the changes of images and fields by the causes of the reasons."""
    for reason in step.reasons:
        cause = reason.cause
        if isinstance(cause, ImageChange):
            yield f"@@ {printable(cause.place)} @@"
            yield from _pair("image", cause.old, cause.new)
        elif isinstance(cause, FieldChange):
            yield from _pair(cause.path, cause.old, cause.new)


def _pair(name: str, old: str | None, new: str | None) -> Iterator[str]:
    for sign, value in (("-", old), ("+", new)):
        if value is not None:
            yield printable(f"{sign}{name}: {value}")


# --- why a workload was changed last ------------------------------------------------------------

_KINDS = frozenset({"DaemonSet", "Deployment", "StatefulSet"})
"""Those whose controllers keep revisions."""


def with_change_causes(plan: Plan) -> Plan:
    """Return a plan with the cause of each change, for workloads that were there before."""
    if plan.kind == INSTALL:
        return plan
    return replace(plan, steps=tuple(_with_cause(plan, step) for step in plan.steps))


def _with_cause(plan: Plan, step: Step) -> Step:
    if step.key.kind not in _KINDS or step.action is Action.DELETE:
        return step
    cause = f"{names(plan.packages) or 'update'}: {', '.join(dict.fromkeys(_words(step)))}"
    if isinstance(step, RestartStep):
        return replace(step, change_cause=cause)
    if isinstance(step, ManifestStep) and step.content is not None:
        content = copy.deepcopy(step.content)
        annotations = content["metadata"].get("annotations") or {}
        content["metadata"]["annotations"] = {**annotations, CHANGE_CAUSE: cause}
        return replace(step, content=content)
    return step


def _words(step: Step) -> Iterator[str]:
    """Yield what changed: 'image', 'ConfigMap settings'; 'create' where that is all."""
    causes = [reason.cause for reason in step.reasons]
    if step.images or any(isinstance(cause, ImageChange) for cause in causes):
        yield "image"
    is_new = step.action is Action.CREATE
    if any(isinstance(cause, FieldChange | None) for cause in causes) and not is_new:
        yield "manifest"
    for cause in causes:
        if isinstance(cause, ConfigUse):
            yield f"{cause.object.kind} {cause.object.name}"
    if is_new:
        yield "created"
