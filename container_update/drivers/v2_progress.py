"""The progress of an update, appended to a file that a VNFM may read meanwhile.

The environment variable names the file; Tacker sets none. Each event is a line of JSON; the plan's
has ``remarks``, what it leaves alone, and ``brought``, what a rollback needs (see
:mod:`container_update.drivers.v2_memory`).
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

from container_update.drivers import v2_memory
from container_update.model.errors import ContainerUpdateError, NextStep, UpdateFailedError
from container_update.model.objects import Json
from container_update.model.outcome import Event, Progress
from container_update.model.plan import Plan
from container_update.model.reporter import reporter
from container_update.operations.progress import remarks, script_event, step_events
from container_update.operations.scripts.report import Listener

PROGRESS_VARIABLE = "CONTAINER_UPDATE_PROGRESS"
"""An environment variable: the file to append to."""


_LOCK = threading.Lock()
"""Held while a line is written: several threads report."""


def as_line(event: Event) -> Json:
    """Return an event as a value: the steps that it is about; of a plan also what it adds."""
    line: Json = {"steps": step_events(event)}
    if isinstance(event, Plan):
        line |= {"remarks": remarks(event), "brought": v2_memory.additions(event)}
    return line


def is_about_steps(line: Json) -> bool:
    """Tell whether a value of :func:`as_line` says anything about steps or a plan."""
    return bool(line["steps"]) or "brought" in line


def from_environment() -> Progress:
    """Return a function that appends events to the file that the environment names, if any."""
    append = _appender()

    def report(event: Event) -> None:
        values = as_line(event)
        if is_about_steps(values):
            append(values)

    return report


def scripts_from_environment() -> Listener:
    """Return a function that appends the runs of coordination scripts to the same file."""
    append = _appender()
    return lambda run: append({"steps": [script_event(run)]})


def _appender() -> Callable[[Json], None]:
    name = os.environ.get(PROGRESS_VARIABLE)
    if not name:
        return lambda _: None
    path = Path(name)

    def append(values: Json) -> None:
        line = json.dumps(values) + "\n"
        try:
            with _LOCK, path.open("a", encoding="utf-8") as file:
                file.write(line)
        except OSError as error:
            raise ContainerUpdateError(
                f"{path}: the progress cannot be written: {error.strerror}",
                next_step=NextStep.FIX_AND_RETRY,
            ) from error

    return append


def report_end(progress: Progress, error: ContainerUpdateError) -> None:
    """Report the final state of each step of a failed update: most are undone by now."""
    report = reporter(progress)
    if isinstance(error, UpdateFailedError):
        for result in error.outcome.results:
            report(result)
