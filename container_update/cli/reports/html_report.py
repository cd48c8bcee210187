"""Plans and outcomes as one HTML page, to attach to a change request or a mail.

The page has no scripts and loads nothing; text from packages and clusters is escaped.
Pure; never a Secret's value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from container_update.cli.reports.lines import text_of
from container_update.cli.reports.outcome_report import diagnosis_lines, summary_text
from container_update.cli.reports.plan_report import (
    NOTHING_TO_DO,
    reason_texts,
    remarks,
    sections,
    symbol,
)
from container_update.model.outcome import Outcome, StepResult, StepState
from container_update.model.plan import Plan, Step

_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-top: 1px solid #8886; padding: .4rem .8rem .4rem 0; text-align: left;
  vertical-align: top; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; }
ul { margin: 0; padding-left: 1.2rem; }
.failed { color: #c22; font-weight: 600; }
.sum, .error { border-left: 4px solid #2a8; padding: .2rem 1rem; }
.error { border-color: #c22; }
"""
_FAILED = frozenset({StepState.FAILED, StepState.UNDO_FAILED})


def plan_html(plan: Plan) -> str:
    """Return a plan as a page: what changes, what restarts and why, what does not."""
    return _page("Plan of an update", [_about(plan), *_plan(plan)])


def outcome_html(outcome: Outcome, error: str = "", scripts: Sequence[str] = ()) -> str:
    """Return an outcome as a page: the result of each step, then the plan.

    :param error: the message of the error, '' if there was none.
    :param scripts: the reports of the coordination scripts.
    """
    summary = summary_text(outcome)
    body = [_about(outcome.plan)]
    body += [f'<p class="sum">{escape(summary)}</p>'] if summary else []
    body += [f'<p class="error">{escape(error)}</p>'] if error else []
    if outcome.results:
        columns = ("Object", "Action", "Result", "Pods", "Seconds")
        rows = (_result(outcome, result) for result in outcome.results)
        body += ["<h2>Results</h2>", *_table(columns, rows)]
        diagnoses = (text_of(diagnosis_lines(result)) for result in outcome.results)
        body += [f"<pre>{escape(text)}</pre>" for text in diagnoses if text]
    if scripts:
        body += ["<h2>Coordination scripts</h2>", *(f"<pre>{escape(t)}</pre>" for t in scripts)]
    if not outcome.plan.is_empty:
        body += ["<h2>Plan</h2>", *_plan(outcome.plan, level=3)]
    return _page("Report of an update", body)


def sentence_html(sentence: str, *, failed: bool = False) -> str:
    """Return a page with one sentence, for an operation that started no step."""
    style = "error" if failed else "sum"
    return _page("Report of an update", [f'<p class="{style}">{escape(sentence)}</p>'])


def _page(title: str, body: Sequence[str]) -> str:
    head = [
        "<!doctype html>",
        '<html lang="en">',
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title>",
        f"<style>{_STYLE}</style>",
        f"<h1>{title}</h1>",
    ]
    return "\n".join([*head, *body, "</html>"])


def _about(plan: Plan) -> str:
    instance = f"VNF instance {plan.instance_id}, " if plan.instance_id else ""
    return f"<p>{escape(instance)}namespace {escape(plan.namespace)}</p>"


def _plan(plan: Plan, level: int = 2) -> Iterator[str]:
    if plan.is_empty:
        yield f"<p>{escape(NOTHING_TO_DO)}</p>"
    for title, steps in sections(plan):
        yield f"<h{level}>{escape(title)}</h{level}>"
        rows = ([_named(step), step.action.value, _list(reason_texts(step))] for step in steps)
        yield from _table(("Object", "Action", "Reasons"), rows)
    for title, texts in remarks(plan):
        yield f"<h{level}>{escape(title)}</h{level}>"
        yield _list(texts)


def _result(outcome: Outcome, result: StepResult) -> list[str]:
    text = escape(result.state.value + (f": {result.message}" if result.message else ""))
    return [
        _named(result.step),
        result.step.action.value,
        f'<span class="failed">{text}</span>' if result.state in _FAILED else text,
        escape(", ".join(outcome.restarted.get(result.step.key, ()))),
        f"{result.seconds:.1f}",
    ]


def _named(step: Step) -> str:
    return f"{symbol(step)} {escape(str(step.key))}"


def _list(entries: Sequence[object]) -> str:
    items = "".join(f"<li>{escape(str(entry))}</li>" for entry in entries)
    return f"<ul>{items}</ul>" if items else ""


def _table(columns: Sequence[str], rows: Iterator[list[str]]) -> Iterator[str]:
    """Yield a table; the cells are HTML, already escaped."""
    yield "<table><tr>" + "".join(f"<th>{column}</th>" for column in columns) + "</tr>"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>"
    yield "</table>"
