# SPDX-License-Identifier: Apache-2.0
"""The output of the commands in the formats of ``-o``."""

from __future__ import annotations

import argparse
import io
import json
import logging
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TextIO, cast

from container_update.cli.arguments.parser import hide
from container_update.cli.terminal import advice as next_steps
from container_update.cli.terminal import approval
from container_update.cli.terminal import progress as progress_views
from container_update.cli.terminal.screen import ENCODING_ERRORS, Screen
from container_update.model.errors import (
    ContainerUpdateError,
    NextStep,
    UpdateFailedError,
    with_advice,
)
from container_update.model.outcome import Outcome, Progress
from container_update.model.plan import Plan
from container_update.model.scripts import ScriptReport
from container_update.planning import plan_json
from container_update.planning.comparison.diff import printable_lines
from container_update.planning.summary import count_noun
from container_update.reports import json_report, lines
from container_update.reports.lines import NONE as NO_HEADER
from container_update.reports.lines import Header, Line
from container_update.reports.markdown_report import (
    outcome_markdown,
    plan_markdown,
    sentence_markdown,
)
from container_update.reports.outcome_report import is_change, outcome_lines, summary_line
from container_update.reports.plan_report import plan_lines, summary_lines

DONE, NOTHING_TO_DO, CHANGES_PENDING = 0, 2, 3
"""Exit statuses; each class of error has its own."""
DETAILS = frozenset({NOTHING_TO_DO, CHANGES_PENDING})
"""They are DONE, unless ``--detailed-exitcode`` asks for them."""

TEXT, JSON, YAML, MARKDOWN = FORMATS = ("text", "json", "yaml", "markdown")
DOCUMENTS = (TEXT, JSON, YAML)
"""The formats that are not for a ticket."""


class _Results(io.TextIOBase):
    """A stream whose end, a full disk or a reader that is gone, ends the results only."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        if stream is None:
            self._lose("it is closed")
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=ENCODING_ERRORS)

    def write(self, text: str) -> int:
        self._try("write", text)
        return len(text)

    def flush(self) -> None:
        self._try("flush")

    def close(self) -> None:
        """Leave the stream open: others write to it too."""

    def isatty(self) -> bool:
        return self._stream is not None and self._stream.isatty()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(self._stream, "encoding", None) or "utf-8"

    def _try(self, action: str, *arguments: str) -> None:
        if self._stream is not None:
            try:
                getattr(self._stream, action)(*arguments)
            except BrokenPipeError:  # the reader has seen enough, as with 'history | head -1'
                self._lose("")
            except (OSError, ValueError) as error:
                self._lose(getattr(error, "strerror", None) or str(error))

    def _lose(self, why: str) -> None:
        """Say so once; what the stream still buffers is dropped, or the interpreter's end fails."""
        if self._stream is not None and self._stream is sys.stdout:
            drop(self._stream)
        self._stream = None
        if why:
            complain(f"the results cannot be written ({why}); the command goes on without them")


class _Printable:
    """Results in which what would control a terminal is an escape sequence of Python."""

    def __init__(self, styled: _Results) -> None:
        self.styled = styled

    def write(self, text: str) -> int:
        self.styled.write(printable_lines(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        """Return what the stream has: only what is written is another text."""
        return getattr(self.styled, name)


def results(stream: TextIO | None) -> TextIO:
    """Return a stream for the results of a command that never raises an error.

    Nothing that comes from a cluster or a package controls the terminal through it.
    """
    return cast(TextIO, _Printable(_Results(stream)))


def complain(sentence: str) -> None:
    """Write a sentence to standard error, if that is possible."""
    if sys.stderr is not None:
        try:
            screen = Screen(sys.stderr)
            screen.show([Line.of(("container-update: ", lines.BAD), sentence)])
            screen.flush()
        except (OSError, ValueError):
            drop(sys.stderr)


def drop(stream: TextIO) -> None:
    """Send what a stream of this process still holds, and gets from now on, nowhere."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


_LOG_LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def show_log(verbose: int) -> None:
    """Write the log to standard error, where no host of this library has its own.

    :param verbose: 0: warnings, without those that the result says too; 1: each action; 2: all.
    """
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    terminal = _LogHandler()
    terminal.setFormatter(_LogFormatter(_LOG_LINE if verbose else "%(levelname)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[terminal])
    if not verbose:
        for handler in logging.getLogger().handlers:
            handler.addFilter(lambda record: not getattr(record, "reported", False))


class _LogHandler(logging.Handler):
    """Writes to the present standard error: a live view takes it, and writes above itself."""

    def emit(self, record: logging.LogRecord) -> None:
        """See the class."""
        try:
            if sys.stderr is not None:  # print would take standard output
                print(self.format(record), file=sys.stderr)
        except Exception:  # noqa: BLE001, as any handler of logging
            self.handleError(record)


class _LogFormatter(logging.Formatter):
    """Writes what would control the terminal as escape sequences of Python."""

    def format(self, record: logging.LogRecord) -> str:
        """See the class."""
        return printable_lines(super().format(record))


def add_progress_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments about the display of an operation that runs."""
    add = command.add_argument
    add("--progress", dest="progress_style", metavar="STYLE", choices=progress_views.STYLES,
        default=progress_views.AUTO,
        help="live (default on a terminal), plain, json or none")  # fmt: skip


def add_plan_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments about how a plan is shown."""
    command.add_argument(
        "--all", action="store_true", help="show all objects, not only their numbers"
    )
    add_detailed_exitcode(command)


def add_detailed_exitcode(command: argparse.ArgumentParser) -> None:
    """Add the option that tells kinds of success from each other."""
    command.add_argument("--detailed-exitcode", action="store_true",
        help="exit with 2: nothing to do, 3: a plan has changes")  # fmt: skip


def add_approval_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of what writes: about the question before that, and its progress."""
    command.add_argument("-y", "--yes", action="store_true", help="do not ask; carry out the plan")
    hide(command.add_argument("--leave-on-signal", action="store_true",
        help="at SIGHUP, SIGINT or SIGTERM, leave the operation for resume or rollback instead of "
        "undoing it"))  # fmt: skip
    add_progress_arguments(command)


def remark(sentence: str, parsed: argparse.Namespace, out: TextIO) -> None:
    """Write a sentence beside the result: to standard error, where the result is a document."""
    stream = out if parsed.output == TEXT else results(sys.stderr)
    stream.write(f"{sentence}\n")


def show_plan(plan: Plan, parsed: argparse.Namespace, out: TextIO) -> int:
    """Write the plan of an operation that is not carried out; return the exit status."""
    header = header_of(parsed)
    if parsed.output == TEXT:
        is_short = getattr(parsed, "summary", False)
        text = summary_lines(plan) if is_short else plan_lines(plan, every=parsed.all)
        told = map(Line.of, _not_done(plan, parsed))
        Screen(out).show([*header.lines(plan.packages), *text, *told])
    elif is_document(parsed):
        write_document({**plan_json.plan_dict(plan), **header.as_dict()}, parsed, out)
    else:
        out.write(plan_markdown(plan, header) + "\n")
    return NOTHING_TO_DO if plan.is_empty else CHANGES_PENDING


def header_of(parsed: argparse.Namespace) -> Header:
    """Return the head of the reports of a command, once it has connected."""
    header: Header = getattr(parsed, "header", NO_HEADER)
    return header


def is_stream(parsed: argparse.Namespace) -> bool:
    """Return whether standard output is a stream of JSON, a document a line."""
    return getattr(parsed, "progress_style", None) == progress_views.JSON


def is_document(parsed: argparse.Namespace) -> bool:
    """Return whether standard output is for programs."""
    return is_stream(parsed) or getattr(parsed, "output", TEXT) in {JSON, YAML}


def write_document(body: object, parsed: argparse.Namespace, out: TextIO) -> None:
    """Write plain values as a document, or as the last line of a stream."""
    text = json.dumps(body, indent=None if is_stream(parsed) else 2) + "\n"
    if parsed.output == YAML and not is_stream(parsed):
        import yaml  # noqa: PLC0415, slow to load

        text = yaml.safe_dump(json.loads(text), sort_keys=False, allow_unicode=True)
    out.write(text)


def show_outcome(  # noqa: PLR0913, PLR0917
    outcome: Outcome,
    parsed: argparse.Namespace,
    out: TextIO,
    way_back: str = "",
    scripts: Sequence[ScriptReport] = (),
    more: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Write an outcome whose steps were shown while they ran.

    :param way_back: the command that goes back; '': the undo of its revision, if it has one.
    :param scripts: what coordination scripts reported, which as text was shown before.
    :param more: what a document has besides.

    The time that a person took to approve of the plan does not count.
    """
    outcome = replace(outcome, seconds=max(0.0, outcome.seconds - getattr(parsed, "asked", 0.0)))
    if is_document(parsed):
        write_document({**json_report.outcome_dict(outcome), **more}, parsed, out)
    elif parsed.output == MARKDOWN:
        texts = [str(script) for script in scripts]
        out.write(outcome_markdown(outcome, scripts=texts, header=header_of(parsed)) + "\n")
    else:
        shown: Iterable[Line] = [summary_line(outcome)] if outcome.results else ()
        if parsed.progress_style == progress_views.NONE:
            shown = outcome_lines(outcome)
        told = [*_not_done(outcome.plan, parsed)]
        if outcome.held:
            told.append(f"{next_steps.next_sentence(NextStep.PROMOTE_OR_ABORT, parsed)}.")
        elif outcome.results and (command := way_back or _undo_of(outcome, parsed)):
            told.append(f"To go back: {command}")
        Screen(out).show([*shown, *map(Line.of, told)])


def show_scripts(reports: Sequence[ScriptReport], parsed: argparse.Namespace, out: TextIO) -> None:
    """Write the result of each run of a script, where the output is text."""
    if reports and parsed.output == TEXT and not is_stream(parsed):
        out.write("Coordination scripts:\n")
        out.writelines(f"{report}\n" for report in reports)


def _not_done(plan: Plan, parsed: argparse.Namespace) -> Iterator[str]:
    """Yield what an operation leaves undone, and which command does it."""
    if plan.ignored:
        objects = count_noun(len({note.key for note in plan.ignored}), "object")
        what = f"{count_noun(len(plan.ignored), 'difference')} of {objects}"
        yield f"Not applied: {what}. To apply: {next_steps.change_command(plan, parsed)}"
    if plan.left:
        yield next_steps.rest_sentence(plan, parsed)


def _undo_of(outcome: Outcome, parsed: argparse.Namespace) -> str:
    """Return the command that undoes an update; '' where there is none."""
    if outcome.revision is None or is_change(outcome):
        return ""
    if outcome.has_way_back:
        return next_steps.revision_command("undo", outcome.revision, parsed)
    return next_steps.update_back_command(parsed)


def progress(parsed: argparse.Namespace, out: TextIO) -> AbstractContextManager[Progress]:
    """Return a progress callback for a ``with`` block: what the arguments say is shown.

    With another format than text the standard output is for the results alone.
    """
    to_results = parsed.output == TEXT or is_stream(parsed)
    stream = out if to_results else results(sys.stderr)
    asks = not getattr(parsed, "yes", True) and parsed.output == TEXT and approval.is_possible()

    def ask(plan: Plan) -> None:
        began = time.monotonic()
        approval.ask(f"Do this in namespace {plan.namespace}?")
        parsed.asked = time.monotonic() - began

    approve = ask if asks else (lambda _: None)
    return progress_views.show_progress(
        stream,
        parsed.progress_style,
        every=getattr(parsed, "all", False),
        approve=approve,
        header=header_of(parsed),
        undoes=not getattr(parsed, "leave_failed", False),
    )


def _sentence(failure: ContainerUpdateError, parsed: argparse.Namespace, advice: str) -> str:
    """Return the sentence about an error; a terminal has shown its cause when the step failed."""
    cause_was_shown = (
        getattr(parsed, "output", None) == TEXT
        and getattr(parsed, "progress_style", None) in {progress_views.AUTO, progress_views.LIVE}
        and approval.is_possible()
        and sys.stderr.isatty()
    )
    if cause_was_shown and isinstance(failure, UpdateFailedError):
        return with_advice(failure.ending, advice)
    return with_advice(_with_arguments(str(failure), parsed), advice)


def _with_arguments(message: str, parsed: argparse.Namespace) -> str:
    """Return a message that names the options as the command has them: ``--package-bytes``."""

    def as_typed(option: re.Match[str]) -> str:
        has_it = hasattr(parsed, option[1])
        return f"(--{option[1].replace('_', '-')})" if has_it else option[0]

    return re.sub(r"\(option (\w+)\)", as_typed, message)


def report_error(failure: ContainerUpdateError, parsed: argparse.Namespace, out: TextIO) -> None:
    """Write the result of a command that failed, and a sentence about it to standard error."""
    next_step = next_steps.advice(failure, parsed)
    write_error(failure, next_step, parsed, out)
    if getattr(parsed, "output", TEXT) not in {JSON, YAML}:
        out.flush()
        complain(_sentence(failure, parsed, next_step))


def write_error(
    failure: ContainerUpdateError, advice: str, parsed: argparse.Namespace, out: TextIO
) -> None:
    """Write the result of a command that failed; as text nothing: each step's result was shown."""
    outcome = failure.outcome if isinstance(failure, UpdateFailedError) else None
    message = with_advice(failure, advice)
    if is_document(parsed):
        body: dict[str, Any] = {
            "error": type(failure).__name__,
            "message": str(failure),
            "nextStep": failure.next_step.value,
            "advice": advice,
        }
        if outcome:
            body["outcome"] = json_report.outcome_dict(outcome)
        write_document(plan_json.document("Error", body), parsed, out)
    elif outcome and parsed.output == MARKDOWN:
        out.write(outcome_markdown(outcome, message, header=header_of(parsed)) + "\n")
    elif getattr(parsed, "output", TEXT) == MARKDOWN:
        out.write(sentence_markdown(message, failed=True) + "\n")


def write_nothing(sentence: str, parsed: argparse.Namespace, out: TextIO) -> int:
    """Write the result of a command that had nothing to do; return the exit status."""
    if is_document(parsed):
        sentence = "{}"
    elif parsed.output == MARKDOWN:
        sentence = sentence_markdown(sentence)
    out.write(sentence + "\n")
    return NOTHING_TO_DO
