# SPDX-License-Identifier: Apache-2.0
"""What is under way at the moment, as lines for people. Pure but for its lock."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from container_update.cli.reports import lines
from container_update.cli.reports.lines import Line
from container_update.model.objects import ObjectKey
from container_update.model.outcome import Event, ResumeStarted, StepResult, StepWait, UndoStarted
from container_update.model.plan import Plan, Step
from container_update.planning.comparison.content_diff import printable
from container_update.planning.summary import counted


@dataclass(frozen=True)
class _Begun:
    """A step that has begun and has not ended."""

    since: float
    wait: StepWait | None = None
    seen: float = 0.0
    """When it was said what it waits for."""


@dataclass
class Running:
    """The steps that have begun and have not ended.

    :param began: when the command began, by the clock of all methods: seconds that only grow.
    :param undoes: what fails is undone, not left for a resume or a rollback.
    """

    began: float
    undoes: bool = True
    _planned: int = 0
    _ended: int = 0
    _steps: dict[ObjectKey, _Begun] = field(default_factory=dict)
    _what: str = "reading the packages and the cluster"
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, event: Event, now: float) -> None:
        """Note what an event changes."""
        with self._lock:
            if isinstance(event, Plan):
                self._planned, self._ended, self._what = len(event.steps), 0, "under way"
            elif isinstance(event, UndoStarted | ResumeStarted):
                is_undo = isinstance(event, UndoStarted)
                self._what = "undoing" if is_undo else "finishing"
                self._planned, self._ended = len(event.steps), 0
                self._steps = {step.key: _Begun(now) for step in event.steps if is_undo}
            elif isinstance(event, StepResult):
                self._ended += 1
                self._steps.pop(event.step.key, None)
            elif isinstance(event, Step):
                self._steps[event.key] = _Begun(now)
            elif event.key in self._steps:
                self._steps[event.key] = replace(self._steps[event.key], wait=event, seen=now)

    def lines(self, now: float, most: int, width: int | None = None) -> Iterator[Line]:
        """Yield a line for each step that has begun, those in trouble first, then the sum.

        :param most: lines for steps; more steps are counted.
        :param width: where a line is cut: the name of an object is shortened before its trouble is.
        """
        with self._lock:
            steps = sorted(self._steps.items(), key=lambda entry: _urgency(entry[1]))
        for key, begun in steps[:most]:
            yield self._line(key, begun, now, width)
        more = f", {len(steps) - most} more not shown" if len(steps) > most else ""
        yield Line.of((f"  {self.summary(now)}{more}", lines.DIM))

    def _line(self, key: ObjectKey, begun: _Begun, now: float, width: int | None) -> Line:
        """Return where a step is: 'Deployment core/smf  new 0/3  ErrImagePull "smf:2"  undo in
        9 s'; what has room for it follows."""
        is_undo, wait = self._what == "undoing", begun.wait
        elapsed = f"  {clock_text(now - begun.since)}"
        if wait is None:
            return Line.of("  ", (str(key), lines.HEADING), elapsed)
        count = f"  {'ready' if is_undo else 'new'} {wait.ready}/{wait.desired}"
        count = count if wait.desired else ""
        number, _, detail = wait.message.partition(": ")
        end, more = elapsed, ""
        if wait.gives_up_in is not None:
            left = clock_text(wait.gives_up_in - (now - begun.seen))
            end = f"  {'undo' if self.undoes and not is_undo else 'fails'} in {left}"
            number, detail = wait.message, ""
        text, style = detail or number, lines.PLAIN
        if wait.trouble or wait.gives_up_in is not None:
            style = lines.BAD
        if wait.trouble:
            text, more = wait.trouble, f"  {wait.message}"
        text = printable(text)
        name = _shortened(str(key), width and width - len(f"  {count}  {text}{end}"))
        head = Line.of("  ", (name, lines.HEADING), f"{count}  ", (text, style), end)
        return Line.of(*head.pieces, printable(more))

    def summary(self, now: float) -> str:
        """Return how far the operation is: '3 of 7 steps done, 2 under way, 1:12 elapsed'."""
        elapsed = clock_text(now - self.began)
        if not self._planned:
            return f"{self._what}, {elapsed} elapsed"
        done = f"{self._ended} of {counted(self._planned, 'step')} done"
        what = "" if self._what == "under way" else f"{self._what}: "
        return f"{what}{done}, {len(self._steps)} under way, {elapsed} elapsed"


def _urgency(begun: _Begun) -> tuple[float, float]:
    """Order steps: those that soon count as failed first, then those that wait longest."""
    gives_up = begun.wait.gives_up_in if begun.wait else None
    return (float("inf") if gives_up is None else gives_up), begun.since


def _shortened(name: str, room: int | None) -> str:
    """Return the end of a name, which tells objects apart."""
    least = 8
    if room is None or len(name) <= max(room, least):
        return name
    return f"…{name[1 - max(room, least) :]}"


def clock_text(seconds: float) -> str:
    """Return a duration as people read it: '9 s', '1:12', '1:02:03'."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    hours, rest = divmod(whole, 3600)
    minutes, rest = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
