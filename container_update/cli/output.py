"""What the command line shows: as text, as JSON or as an HTML page, by the word after ``-o``."""

from __future__ import annotations

import json
from typing import Any, TextIO

from container_update.cli import report, report_html
from container_update.model.errors import ContainerUpdateError, UpdateFailedError, with_advice
from container_update.model.outcome import Event, Progress, StepResult
from container_update.model.plan import Plan

TEXT, JSON, HTML = "text", "json", "html"
FORMATS = (TEXT, JSON, HTML)

PLAN = {TEXT: report.plan_text, JSON: report.plan_json, HTML: report_html.plan_html}
OUTCOME = {TEXT: report.outcome_text, JSON: report.outcome_json, HTML: report_html.outcome_html}


def progress(out: TextIO) -> Progress:
    """Shows the plan, and each step when it has ended."""

    def show(event: Event) -> None:
        if isinstance(event, Plan):
            out.write(f"{report.plan_text(event)}\n")
        elif isinstance(event, StepResult):
            out.write(f"{report.result_text(event)}\n")
        out.flush()

    return show


def error(found: ContainerUpdateError, style: str, advice: str) -> str:
    """What standard output gets of an error; its sentence goes to standard error besides.

    For text: what became of each step, empty where nothing was begun.

    :param advice: what the operator can do next, a sentence without its full stop.
    """
    outcome = found.outcome if isinstance(found, UpdateFailedError) else None
    if style == HTML:
        told = with_advice(found, advice)
        return (
            report_html.outcome_html(outcome, told)
            if outcome
            else report_html.sentence_html(told, failed=True)
        )
    if style == JSON:
        body: dict[str, Any] = {
            "error": type(found).__name__,
            "message": str(found),
            "nextStep": found.next_step.value,
            "advice": advice,
        }
        if outcome:
            body["outcome"] = report.outcome_dict(outcome)
        return json.dumps(body, indent=2)
    return report.outcome_text(outcome) if outcome else ""


def nothing(sentence: str, style: str) -> str:
    """That there was nothing to do."""
    return {TEXT: sentence, JSON: "{}", HTML: report_html.sentence_html(sentence)}[style]
