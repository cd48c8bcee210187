# SPDX-License-Identifier: Apache-2.0
"""Plans and outcomes as one HTML page, to attach to a change request or a mail.

The page has no scripts and loads nothing; text from packages and clusters is escaped. It can be
read on a phone and printed. Pure; never a Secret's value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from html import escape

from container_update.cli.reports import header as headers
from container_update.cli.reports.header import Header
from container_update.cli.reports.html_style import STYLE
from container_update.cli.reports.lines import text_of
from container_update.cli.reports.outcome_report import diagnosis_lines, summary_text
from container_update.cli.reports.plan_report import (
    LEGEND,
    SYMBOL_STYLES,
    group_name,
    groups,
    reason_texts,
    remarks,
    sections,
    symbol,
)
from container_update.model.outcome import Outcome, StepResult, StepState
from container_update.model.plan import Plan, Step
from container_update.planning.comparison.content_diff import KeyDiff, printable
from container_update.planning.summary import (
    content_diffs,
    counted,
    nothing_to_do,
    plan_sum,
    pods_of,
)

_FAILED = frozenset({StepState.FAILED, StepState.UNDO_FAILED})
_COLUMNS = ("Object", "Action", "Result", "Pods", "Seconds")
_DIFF_CLASSES = {"+": "added", "-": "removed", "@": "hunk", "\\": "dim"}


def plan_html(plan: Plan, header: Header = headers.NONE) -> str:
    """Return a plan as a page: what changes, what restarts and why, what does not.

    :param header: says what the plan is about.
    """
    return _page("Plan of an update", [_facts([_date(), *header.facts(plan)]), *_plan(plan)])


def outcome_html(
    outcome: Outcome,
    error: str = "",
    scripts: Sequence[str] = (),
    header: Header = headers.NONE,
) -> str:
    """Return an outcome as a page: the result of each step, then the plan.

    :param error: the message of the error, '' if there was none.
    :param scripts: the reports of the coordination scripts.
    :param header: says what the operation is about.
    """
    summary = summary_text(outcome)
    body = [_facts([_date(), *header.facts(outcome.plan)])]
    body += [_sentence(error, failed=True)] if error else []
    body += [_sentence(summary)] if summary else []
    if outcome.results:
        body += ["<h2>Results</h2>", *_results(outcome)]
        diagnoses = (text_of(diagnosis_lines(result)) for result in outcome.results)
        body += [f"<pre>{_text(text)}</pre>" for text in diagnoses if text]
    if scripts:
        body += ["<h2>Coordination scripts</h2>", *(f"<pre>{_text(t)}</pre>" for t in scripts)]
    if not outcome.plan.is_empty:
        body += ["<h2>Plan</h2>", *_plan(outcome.plan, level=3)]
    return _page("Report of an update", body)


def sentence_html(sentence: str, *, failed: bool = False) -> str:
    """Return a page with one sentence, for an operation that started no step."""
    return _page("Report of an update", [_facts([_date()]), _sentence(sentence, failed=failed)])


def _page(title: str, body: Iterable[str]) -> str:
    head = [
        "<!doctype html>",
        '<html lang="en">',
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title>",
        f"<style>{STYLE}</style>",
        f"<h1>{title}</h1>",
    ]
    return "\n".join([*head, *body, "</html>"])


# --- head ---------------------------------------------------------------------------------------


def _date() -> tuple[str, str]:
    return "Date", f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC"


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    rows = "".join(f"<dt>{word}</dt><dd>{_text(value)}</dd>" for word, value in facts)
    return f"<dl>{rows}</dl>"


def _sentence(text: str, *, failed: bool = False) -> str:
    return f'<p class="{"error" if failed else "sum"}">{_text(text)}</p>'


# --- plan ---------------------------------------------------------------------------------------


def _plan(plan: Plan, level: int = 2) -> Iterator[str]:
    yield _sentence(nothing_to_do(plan) if plan.is_empty else f"Plan: {plan_sum(plan)}")
    if not plan.is_empty:
        yield _legend(plan)
    for title, steps in sections(plan):
        yield f"<h{level}>{_text(title)}</h{level}>"
        for alike in groups(steps):
            yield from _steps(alike)
    for title, texts in remarks(plan):
        yield f"<h{level}>{_text(title)}</h{level}>"
        yield _list(texts)
    if plan.unchanged:
        yield f"<h{level}>Unchanged</h{level}>"
        yield _list(dict.fromkeys(plan.unchanged), "names")


def _legend(plan: Plan) -> str:
    used = {symbol(step) for step in plan.steps}
    entries = (
        f"<li>{_marked(sign)} {_text(meaning)}</li>"
        for sign, meaning in LEGEND.items()
        if sign in used
    )
    return f'<ul class="legend">{"".join(entries)}</ul>'


def _steps(alike: Sequence[Step]) -> Iterator[str]:
    """Yield steps that do the same for the same reasons, mostly one."""
    step, pods = alike[0], sum(map(pods_of, alike))
    is_one = len(alike) == 1
    number = f", {counted(pods, 'pod')}" if pods else ""
    yield f'<div class="step"><p>{_marked(symbol(step))} <b>{_text(group_name(alike))}</b>: '
    yield f"{step.action.value}{number}</p>"
    if not is_one:
        yield _list([each.key for each in alike], "names")
    diffs = content_diffs(step)
    in_diffs = {printable(str(diff.change)) for diff in diffs}
    yield _list(text for text in reason_texts(*alike) if text not in in_diffs)
    yield from map(_diff, diffs)
    yield "</div>"


def _diff(diff: KeyDiff) -> str:
    summary = f" ({diff.summary})" if diff.summary else ""
    title = f'<p class="key">{_text(f"{diff.change}{summary}")}</p>'
    rows = "".join(
        f'<span class="{_DIFF_CLASSES.get(line[:1], "same")}">{escape(line)}</span>'
        for line in diff.lines
    )
    return f'{title}<pre class="diff">{rows}</pre>' if rows else title


# --- results ------------------------------------------------------------------------------------


def _results(outcome: Outcome) -> Iterator[str]:
    """Yield a table; on a narrow screen each row of it is a block with its column's words."""
    head = "".join(f"<th>{column}</th>" for column in _COLUMNS)
    yield f"<table><thead><tr>{head}</tr></thead><tbody>"
    for result in outcome.results:
        cells = zip(_COLUMNS, _result(outcome, result), strict=True)
        row = "".join(f'<td data-label="{column}">{cell}</td>' for column, cell in cells)
        yield f"<tr>{row}</tr>"
    yield "</tbody></table>"


def _result(outcome: Outcome, result: StepResult) -> tuple[str, ...]:
    step = result.step
    text = _text(result.state.value + (f": {result.message}" if result.message else ""))
    return (
        f"{_marked(symbol(step))} {_text(step.key)}",
        step.action.value,
        f'<span class="failed">{text}</span>' if result.state in _FAILED else text,
        _text(", ".join(outcome.restarted.get(step.key, ()))),
        f"{result.seconds:.1f}" if result.seconds else "",
    )


# --- parts --------------------------------------------------------------------------------------


def _marked(sign: str) -> str:
    return f'<b class="sign {SYMBOL_STYLES[sign]}">{sign}</b>'


def _list(entries: Iterable[object], style: str = "reasons") -> str:
    items = "".join(f"<li>{_text(entry)}</li>" for entry in entries)
    return f'<ul class="{style}">{items}</ul>' if items else ""


def _text(value: object) -> str:
    """Return a text in which nothing is markup, on as many lines as it has."""
    return "\n".join(escape(printable(line)) for line in str(value).splitlines())
