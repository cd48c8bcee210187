"""The output of the commands in the formats of ``-o``: text, JSON or an HTML page."""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import suppress
from typing import Any, TextIO, cast

from container_update.cli.reports import html_report, text_report
from container_update.model.errors import ContainerUpdateError, UpdateFailedError, with_advice
from container_update.model.outcome import Event, Progress, StepResult
from container_update.model.plan import Plan

DONE, NOTHING_TO_DO, CHANGES_PENDING = 0, 2, 3
"""Exit statuses; each class of error has its own."""

TEXT, JSON, HTML = "text", "json", "html"
FORMATS = (TEXT, JSON, HTML)
NOTHING_INTERRUPTED = "Nothing to do: no operation was interrupted."

PLAN = {TEXT: text_report.plan_text, JSON: text_report.plan_json, HTML: html_report.plan_html}
OUTCOME = {
    TEXT: text_report.outcome_text,
    JSON: text_report.outcome_json,
    HTML: html_report.outcome_html,
}


class _Results(io.TextIOBase):
    """A stream whose end, a full disk or a reader that is gone, ends the results only."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        if stream is None:
            self._lose("it is closed")

    def write(self, text: str) -> int:
        self._try("write", text)
        return len(text)

    def flush(self) -> None:
        self._try("flush")

    def _try(self, action: str, *arguments: str) -> None:
        if self._stream is not None:
            try:
                getattr(self._stream, action)(*arguments)
            except (OSError, ValueError) as error:
                self._lose(getattr(error, "strerror", None) or str(error))

    def _lose(self, why: str) -> None:
        """Say so once; what the stream still buffers is dropped, or the interpreter's end fails."""
        if self._stream is not None and self._stream is sys.stdout:
            drop(self._stream)
        self._stream = None
        complain(f"the results cannot be written ({why}); the command goes on without them")


def results(stream: TextIO | None) -> TextIO:
    """Return a stream for the results of a command that never raises an error.

    :param stream: where they go; None: there is no such stream, nobody wants them.
    """
    return cast(TextIO, _Results(stream))


def complain(sentence: str) -> None:
    """Write a sentence to standard error, if that is possible."""
    if sys.stderr is not None:
        try:
            sys.stderr.write(f"container-update: {sentence}\n")
            sys.stderr.flush()
        except (OSError, ValueError):
            drop(sys.stderr)


def drop(stream: TextIO) -> None:
    """Send what a stream of this process still holds, and gets from now on, nowhere."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def show_plan(plan: Plan, style: str, out: TextIO) -> int:
    """Write the plan of an operation that is not carried out; return the exit status."""
    out.write(PLAN[style](plan) + "\n")
    return NOTHING_TO_DO if plan.is_empty else CHANGES_PENDING


def progress(out: TextIO, style: str) -> Progress:
    """Return a function that as text writes the plan, and each step when it ends."""

    def show(event: Event) -> None:
        if isinstance(event, Plan):
            out.write(f"{text_report.plan_text(event)}\n")
        elif isinstance(event, StepResult):
            out.write(f"{text_report.result_text(event)}\n")
        out.flush()

    return show if style == TEXT else (lambda _: None)


def error(failure: ContainerUpdateError, style: str, advice: str) -> str:
    """Return the text of an error for standard output; standard error gets its message too.

    As text: the result of each step, '' if no step was started.

    :param style: one of :data:`FORMATS`.
    :param advice: what the operator can do next, a sentence without its full stop.
    """
    outcome = failure.outcome if isinstance(failure, UpdateFailedError) else None
    if style == HTML:
        message = with_advice(failure, advice)
        if outcome:
            return html_report.outcome_html(outcome, message)
        return html_report.sentence_html(message, failed=True)
    if style == JSON:
        body: dict[str, Any] = {
            "error": type(failure).__name__,
            "message": str(failure),
            "nextStep": failure.next_step.value,
            "advice": advice,
        }
        if outcome:
            body["outcome"] = text_report.outcome_dict(outcome)
        return json.dumps(body, indent=2)
    return text_report.outcome_text(outcome) if outcome else ""


def nothing(sentence: str, style: str) -> str:
    """Return the result of a command that had nothing to do.

    :param sentence: the text for people.
    :param style: one of :data:`FORMATS`.
    """
    return {TEXT: sentence, JSON: "{}", HTML: html_report.sentence_html(sentence)}[style]
