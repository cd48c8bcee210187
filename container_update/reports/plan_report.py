# SPDX-License-Identifier: Apache-2.0
"""A plan as lines for people: what changes, what restarts and why, what stays. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import attrgetter

from container_update.model.objects import ObjectKey
from container_update.model.plan import Action, ConfigUse, FieldChange, Note, Plan, Reason, Step
from container_update.planning import summary
from container_update.planning.comparison.diff import KeyDiff, printable
from container_update.reports import lines
from container_update.reports.lines import NONE, Line

_SYMBOLS = {
    Action.CREATE: ("+", lines.CREATE),
    Action.REPLACE: ("~", lines.CHANGE),
    Action.RECREATE: ("±", lines.CHANGE),
    Action.UPDATE: ("~", lines.CHANGE),
    Action.HOLD: ("~", lines.CHANGE),
    Action.SCALE: ("↕", lines.CHANGE),
    Action.SWITCH: ("⇄", lines.CHANGE),
    Action.RUN: ("»", lines.CHANGE),
    Action.CHECK: ("…", lines.CHANGE),
    Action.WAIT: ("…", lines.CHANGE),
    Action.DELETE: ("-", lines.DELETE),
    Action.HAND_OVER: ("⇒", lines.CHANGE),
}
_RESTART = ("↻", lines.RESTART)
_END = "At the end"
_RESTARTS = "Restarts"
_TITLES = {
    Action.CHECK: "Waits",
    Action.RUN: "Coordination scripts",
    Action.SCALE: "Numbers of pods",
    Action.WAIT: "Waits",
}
"""Headings of what says by its action alone where it belongs."""
_ALIKE = 4
"""From so many workloads on that restart for the same reasons, one line stands for all of them."""
_LISTED = 10
"""Unchanged objects that are listed; more are counted."""
_FIELDS = 20
"""Reasons of a step, and remarks about an object, that are shown; more are counted."""
_DIFF_LINES = 60
"""Lines of a key's diff that are shown; more are counted."""


def plan_lines(plan: Plan, *, every: bool = False) -> Iterator[Line]:
    """Yield a plan: what changes, what restarts and why, what does not, and the sum.

    :param every: list every workload, field and unchanged object, and every line of a diff.
    """
    if plan.is_empty:
        yield Line.of((summary.nothing_to_do(plan), lines.GOOD))
    yield from step_lines(plan, every=every)
    for title, notes in remarks(plan, None if every else _FIELDS):
        yield Line.of((f"{title}:", lines.HEADING))
        yield from (Line.of(f"    {note}") for note in notes)
    yield from _unchanged_lines(plan, every=every)
    if not plan.is_empty:
        yield Line.of(("Plan: ", lines.HEADING), summary.plan_sum(plan))


def summary_lines(plan: Plan) -> Iterator[Line]:
    """Yield a line for each step of a plan, and the sum."""
    for step in plan.steps:
        yield _head([step])
    if plan.is_empty:
        yield Line.of((summary.nothing_to_do(plan), lines.GOOD))
    else:
        yield Line.of(("Plan: ", lines.HEADING), summary.plan_sum(plan))
    if remarks_left := len({*plan.ignored, *plan.notes}):
        yield Line.of((f"{summary.count_noun(remarks_left, 'note')}: see the plan", lines.DIM))


def plan_text(plan: Plan) -> str:
    """Return a plan with all that it has, below its packages."""
    return lines.text_of([*NONE.lines(plan.packages), *plan_lines(plan, every=True)])


def step_lines(plan: Plan, *, every: bool = False) -> Iterator[Line]:
    """Yield the steps of a plan with their reasons."""
    for title, steps in sections(plan):
        yield Line.of((f"{title}:", lines.HEADING))
        for alike in [[step] for step in steps] if every else groups(steps):
            yield from _group_lines(alike, every=every)


def sections(plan: Plan) -> Iterator[tuple[str, list[Step]]]:
    """Yield each heading of a plan with its steps, in the order of execution."""
    for role, group in groupby(plan.steps, key=_role):
        steps = list(group)
        if role == _END and steps[0] is plan.steps[0] and len(steps) < len(plan.steps):
            yield "First", steps
        elif role is not None:
            restart = all(step.action not in _SYMBOLS for step in steps)
            yield role if restart or role != _RESTARTS else "Workloads", steps
        else:
            for title, is_config in (("Configuration", True), ("Other objects", False)):
                if part := [step for step in steps if step.is_config is is_config]:
                    yield title, part


def _role(step: Step) -> str | None:
    """Return the heading of a step; None for one that writes what its pods are to read."""
    if step.action in _TITLES:
        return _TITLES[step.action]
    if step.is_switch:
        return "When the new pods are ready"
    if step.is_removal or step.action is Action.HAND_OVER:
        return _END
    return _RESTARTS if step.starts_pods else None


def remarks(plan: Plan, most: int | None = None) -> Iterator[tuple[str, list[str]]]:
    """Yield each heading below the steps with its lines, each line once.

    :param most: the number of lines about one object; more are counted.
    """
    for title, entries in (
        ("Not applied (a change of the package would apply it)", plan.ignored),
        ("Notes", plan.notes),
    ):
        if entries:
            by_object = groupby(dict.fromkeys(entries), key=attrgetter("key"))
            yield title, [text for _, notes in by_object for text in _notes(list(notes), most)]


def _notes(notes: Sequence[Note], most: int | None) -> Iterator[str]:
    """Yield the lines about one object."""
    for note in notes[:most]:
        yield printable(f"{note.key}: {note.change}" if note.change else str(note))
    if most and len(notes) > most:
        yield f"{notes[0].key}: {len(notes) - most} more (--all)"


def reason_texts(step: Step, *others: Step) -> tuple[str, ...]:
    """Return why a step is in the plan, with both values of a field that changes; all uses of a
    ConfigMap or Secret are one reason.

    :param others: the steps that are alike: what has another name for each is "their" object.
    """
    columns = zip(*(_why(each).items() for each in (step, *others)), strict=True)
    return tuple(_text(place, uses, len({p for p, _ in same}) > 1) for same in columns
                 for place, uses in same[:1])  # fmt: skip


def _why(step: Step) -> Mapping[object, list[Reason]]:
    """Return the reasons of a step; those about one ConfigMap or Secret together."""
    by_cause: dict[object, list[Reason]] = {}
    for why in step.reasons:
        place = why.cause.object if isinstance(why.cause, ConfigUse) else str(why)
        by_cause.setdefault(place, []).append(why)
    return by_cause


def _text(place: object, why: Sequence[Reason], is_of_each: bool) -> str:
    uses = [each.cause for each in why if isinstance(each.cause, ConfigUse)]
    if isinstance(place, ObjectKey) and (len(uses) > 1 or is_of_each):
        keys = dict.fromkeys(key for use in uses for key in use.keys)
        what = f"{', '.join(keys)} of " if keys else ""
        whose = f"their {place.kind}" if is_of_each else str(place)
        paths = dict.fromkeys(use.path for use in uses)
        verb = "uses" if len(paths) == 1 else "use"
        return printable(f"{what}{whose} changed, which {' and '.join(paths)} {verb}")
    cause = why[0].cause
    return printable(str(cause if isinstance(cause, FieldChange) else why[0]))


def symbol(step: Step) -> str:
    """Return a symbol for the action of a step."""
    return _SYMBOLS.get(step.action, _RESTART)[0]


# --- steps --------------------------------------------------------------------------------------


def groups(steps: Iterable[Step]) -> Iterator[list[Step]]:
    """Yield the steps in order, those together that do the same to many objects of a kind."""
    groups: dict[object, list[Step]] = {}
    for step in steps:
        groups.setdefault(_alike(step), []).append(step)
    for group in groups.values():
        yield from [group] if len(group) >= _ALIKE else [[step] for step in group]


def _alike(step: Step) -> Hashable:
    """Return what is the same of steps that do the same, each perhaps with objects of its own."""
    why = tuple(tuple(map(_same, reasons)) for reasons in _why(step).values())
    return step.key.kind, step.key.namespace, step.action, why, summary.content_diffs(step)


def _same(reason: Reason) -> Hashable:
    cause = reason.cause
    if isinstance(cause, ConfigUse):
        return cause.object.kind, cause.keys, cause.path
    return (cause.path, cause.old, cause.new) if isinstance(cause, FieldChange) else str(reason)


def group_name(group: Sequence[Step]) -> str:
    """Return what steps that are alike are about: an object, or how many of which kind."""
    key = group[0].key
    if len(group) == 1:
        return str(key)
    where = f" of namespace {key.namespace}" if key.namespace else ""
    return f"{summary.count_noun(len(group), key.kind)}{where}"


def _head(group: Sequence[Step]) -> Line:
    """Return what steps that are alike do."""
    step, pods = group[0], sum(map(summary.pods_of, group))
    sign, style = _SYMBOLS.get(step.action, _RESTART)
    words = step.action.value
    if step.action not in _SYMBOLS and pods and (pods > 1 or len(group) > 1):
        words += f", {summary.count_noun(pods, 'pod')}"
    if len(group) > 1:
        words += " (--all lists them)"
    return Line.of((f"  {sign} ", style), (group_name(group), lines.HEADING), f": {words}")


def _group_lines(group: Sequence[Step], *, every: bool) -> Iterator[Line]:
    step = group[0]
    yield _head(group)
    diffs = summary.content_diffs(step)
    because = "" if step.is_config and not step.is_removal else "because "
    in_diffs = {printable(str(diff.change)) for diff in diffs}
    texts = [text for text in reason_texts(*group) if text not in in_diffs]
    most = len(texts) if every else _FIELDS
    yield from (Line.of(f"      {because}{text}") for text in texts[:most])
    if len(texts) > most:
        yield Line.of((f"      {len(texts) - most} more (--all)", lines.DIM))
    for diff in diffs:
        yield from diff_lines(diff, every=every)


def diff_lines(diff: KeyDiff, *, every: bool) -> Iterator[Line]:
    """Yield what changes in a key of a ConfigMap or Secret."""
    sizes = f" ({diff.summary})" if diff.summary else ""
    yield Line.of(f"      {printable(str(diff.change))}{sizes}")
    limit = None if every else _DIFF_LINES
    for text in islice(diff.lines, limit):
        style = {"+": lines.ADDED, "-": lines.REMOVED, "@": lines.HUNK}.get(text[:1], lines.PLAIN)
        yield Line.of("        ", (text, style), is_content=True)
    if limit is not None and len(diff.lines) > limit:
        yield Line.of((f"        {len(diff.lines) - limit} more lines (--all)", lines.DIM))


def _unchanged_lines(plan: Plan, *, every: bool) -> Iterator[Line]:
    if not plan.unchanged:
        return
    yield Line.of(("Unchanged:", lines.HEADING))
    if every or len(plan.unchanged) <= _LISTED:
        yield from (Line.of(f"    {key}") for key in dict.fromkeys(plan.unchanged))
    else:
        kinds = Counter(key.kind for key in plan.unchanged)
        words = ", ".join(summary.count_noun(number, kind) for kind, number in kinds.items())
        yield Line.of(f"    {words} (--all lists them)")
