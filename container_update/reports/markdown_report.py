# SPDX-License-Identifier: Apache-2.0
"""Plans and outcomes as Markdown, for a merge request or a ticket. Pure; never a Secret's value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from container_update.model.outcome import Outcome
from container_update.model.plan import Plan, Step
from container_update.planning.comparison.diff import printable
from container_update.planning.summary import content_diffs, nothing_to_do, plan_sum
from container_update.reports import lines as headers
from container_update.reports import plan_report
from container_update.reports.lines import Header
from container_update.reports.outcome_report import diagnosis_lines, summary_text

_FENCE = "```"


def plan_markdown(plan: Plan, header: Header = headers.NONE) -> str:
    """Return a plan: its sum, what changes and why, with diffs to unfold, what stays."""
    text = ["## Plan of an update", "", *_about(plan, header), *_plan(plan)]
    return "\n".join(text).rstrip("\n")


def outcome_markdown(
    outcome: Outcome,
    error: str = "",
    scripts: Sequence[str] = (),
    header: Header = headers.NONE,
) -> str:
    """Return an outcome: the result of each step, then the plan.

    :param error: the message of the error, '' if there was none.
    """
    text = ["## Report of an update", "", *_about(outcome.plan, header)]
    if summary := summary_text(outcome):
        text += [f"**{_escape(summary)}**", ""]
    if error:
        text += [f"**Failed:** {_escape(error)}", ""]
    if outcome.results:
        text += ["| Object | Action | Result | Seconds |", "| --- | --- | --- | ---: |"]
        for result in outcome.results:
            state = ": ".join(filter(None, (result.state.value, result.message)))
            cells = (_escape(str(result.step.key)), result.step.action.value, _escape(state))
            text.append(f"| {' | '.join(cells)} | {result.seconds:.1f} |")
        text.append("")
    for result in outcome.results:
        if diagnosis := [str(line) for line in diagnosis_lines(result)]:
            text += [*_fence("text", diagnosis), ""]
    for script in scripts:
        text += [*_fence("text", script.splitlines()), ""]
    if not outcome.plan.is_empty:
        text += ["### Plan", "", *_plan(outcome.plan)]
    return "\n".join(text).rstrip("\n")


def revision_page(
    title: str,
    facts: Iterable[tuple[str, str]],
    result: str,
    report: Sequence[str],
    plan: Plan,
) -> str:
    """Return an operation that has ended: facts about it, what failing pods reported, its steps."""
    text = [f"## {_escape(title)}", "", *(f"- {word}: {_escape(value)}" for word, value in facts)]
    text += ["", f"**{_escape(result)}**", ""]
    if report:
        text += [*_fence("text", report), ""]
    return "\n".join([*text, *_sections(plan)]).rstrip("\n")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    cells = [head, ["---"] * len(head), *([_escape(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def sentence_markdown(sentence: str, *, failed: bool = False) -> str:
    """Return a sentence, for an operation that started no step."""
    return f"**Failed:** {_escape(sentence)}" if failed else _escape(sentence)


def _about(plan: Plan, header: Header) -> Iterator[str]:
    for word, value in header.facts(plan):
        yield f"- {word}: {_escape(value)}"
    yield ""


def _plan(plan: Plan) -> Iterator[str]:
    yield from (nothing_to_do(plan) if plan.is_empty else f"**{plan_sum(plan)}**", "")
    yield from _sections(plan)
    for title, notes in plan_report.remarks(plan):
        yield from (f"**{title}**", "", *(f"- {_escape(note)}" for note in notes), "")
    if plan.unchanged:
        yield from ("<details><summary>Unchanged</summary>", "")
        yield from (f"- {_escape(str(key))}" for key in plan.unchanged)
        yield from ("", "</details>", "")


def _sections(plan: Plan) -> Iterator[str]:
    for title, steps in plan_report.sections(plan):
        yield from (f"**{title}**", "")
        for alike in plan_report.groups(steps):
            yield from _steps(alike)
        yield ""


def _steps(alike: Sequence[Step]) -> Iterator[str]:
    """Yield steps that do the same for the same reasons, mostly one."""
    step = alike[0]
    name = _escape(plan_report.group_name(alike))
    yield f"- `{plan_report.symbol(step)}` {name}: {step.action.value}"
    yield from (f"  - {_escape(text)}" for text in plan_report.reason_texts(*alike))
    if len(alike) > 1:
        names = ", ".join(each.key.name for each in alike)
        yield from ("", f"  <details><summary>names</summary>{_escape(names)}</details>", "")
    for diff in content_diffs(step):
        if diff.lines:
            yield from ("", "  <details><summary>diff</summary>", "")
            yield from (f"  {line}" for line in _fence("diff", diff.lines))
            yield from ("", "  </details>", "")


def _fence(language: str, content: Sequence[str]) -> Iterator[str]:
    """Yield a block of code; its fence is longer than any in the content."""
    fence = _FENCE
    while any(fence in line for line in content):
        fence += "`"
    yield from (f"{fence}{language}", *map(printable, content), fence)


def _escape(text: str) -> str:
    """Return a text in which nothing is markup, on one line."""
    one_line = " ".join(printable(text).split())
    return "".join(f"\\{c}" if c in r"\`*_[]<>|#" else c for c in one_line)
