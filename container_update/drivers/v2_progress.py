"""What an update tells while it runs, written to a file that a VNFM may read meanwhile.

The environment variable names the file; Tacker sets none. A line of JSON for each event: the plan's
has ``brought``, what a rollback has to know (see :mod:`container_update.drivers.v2_memory`).
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

from container_update.drivers import v2_memory
from container_update.model.errors import ContainerUpdateError, UpdateFailedError
from container_update.model.objects import Json
from container_update.model.outcome import Event, Progress
from container_update.model.plan import Plan
from container_update.operations.progress import step_events

PROGRESS_VARIABLE = "CONTAINER_UPDATE_PROGRESS"
"""An environment variable: the file to append to."""


def as_line(event: Event) -> Json:
    """Return an event as a value: the steps that it is about; of a plan also what it brings."""
    if isinstance(event, Plan):
        return {"steps": step_events(event), "brought": v2_memory.brought(event)}
    return {"steps": step_events(event)}


def from_environment() -> Progress:
    """Tells the file that the environment names; nobody where it names none."""
    path = os.environ.get(PROGRESS_VARIABLE)
    return Appender(Path(path)) if path else lambda _: None


def tell_end(progress: Progress, error: ContainerUpdateError) -> None:
    """Write the final state of each step of a failed update: most are undone by now."""
    if isinstance(error, UpdateFailedError):
        for result in error.outcome.results:
            progress(result)


class Appender:
    """Appends events to a file; a plan is on the disk before anything of it is done."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        """Append the event's line."""
        line = json.dumps(as_line(event)) + "\n"
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.write(line)
