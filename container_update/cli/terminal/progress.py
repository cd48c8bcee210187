# SPDX-License-Identifier: Apache-2.0
"""Shows what happens while it happens: live on a terminal, else a line for each event.

Without a terminal no ten seconds pass in silence: a line then says what the operation waits for.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TextIO

from container_update.cli.terminal.screen import Screen
from container_update.model import context_threads
from container_update.model.errors import UpdateFailedError
from container_update.model.objects import ObjectKey
from container_update.model.outcome import (
    Event,
    Outcome,
    Progress,
    ResumeStarted,
    StepResult,
    StepWait,
    UndoStarted,
)
from container_update.model.plan import Plan, Step
from container_update.planning.comparison.diff import printable
from container_update.planning.summary import count_noun
from container_update.reports import json_report, lines
from container_update.reports.lines import NONE as NO_HEADER
from container_update.reports.lines import Header, Line
from container_update.reports.outcome_report import result_lines
from container_update.reports.plan_report import plan_lines

_IMAGE = re.compile('image "[^"]*": ')
"""In the message of a pod that waits for its image, which its trouble names already."""

# --- the steps under way ------------------------------------------------------------------------


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
    _had_results: set[ObjectKey] = field(default_factory=set)
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
                self._had_results.clear()
            elif isinstance(event, StepResult):
                self._ended += 1
                self._steps.pop(event.step.key, None)
                self._had_results.add(event.step.key)
            elif isinstance(event, Step):
                self._steps[event.key] = _Begun(now)
                self._had_results.discard(event.key)
            elif event.key not in self._had_results:
                begun = self._steps.get(event.key, _Begun(now))
                self._steps[event.key] = replace(begun, wait=event, seen=now)

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
        """Return where a step is: 'Deployment core/smf  new 0/3  ErrImagePull  undo in 9 s'."""
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
            text, more = wait.trouble, f"  {_IMAGE.sub('', wait.message)}"
        text = printable(text)
        if width is not None:  # the end of a long text goes before the time, and most of the name
            room = max(_LEAST, width - len(f"  {str(key)[:_LEAST]}{count}  {end}"))
            text = text if len(text) <= room else f"{text[: room - 1]}…"
        name = _shorten(str(key), width and width - len(f"  {count}  {text}{end}"))
        head = Line.of("  ", (name, lines.HEADING), f"{count}  ", (text, style), end)
        return Line.of(*head.pieces, printable(more))

    def summary(self, now: float) -> str:
        """Return how far the operation is: '3 of 7 steps done, 2 under way, 1:12 elapsed'."""
        elapsed = clock_text(now - self.began)
        if not self._planned:
            return f"{self._what}, {elapsed} elapsed"
        done = f"{self._ended} of {count_noun(self._planned, 'step')} done"
        what = "" if self._what == "under way" else f"{self._what}: "
        return f"{what}{done}, {len(self._steps)} under way, {elapsed} elapsed"


def _urgency(begun: _Begun) -> tuple[float, float]:
    """Order steps: those that soon count as failed first, then those that wait longest."""
    gives_up = begun.wait.gives_up_in if begun.wait else None
    return (float("inf") if gives_up is None else gives_up), begun.since


def _shorten(name: str, room: int | None) -> str:
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


if TYPE_CHECKING:
    from rich.live import Live

_LEAST = 16
"""Characters that stay of what a step waits for, and of a name beside it, on a narrow terminal."""
SILENCE = 10.0
"""Seconds after which it is said that the operation goes on."""
_REFRESH_SECONDS = 0.25
"""Between two looks at the steps under way."""
_RESERVED = 3
"""Lines of a terminal that are kept free of steps under way."""
AUTO, LIVE, PLAIN, JSON, NONE = STYLES = ("auto", "live", "plain", "json", "none")
"""How progress is shown; auto: live on a terminal, plain elsewhere."""

Approve = Callable[[Plan], object]
"""Called with a plan that was shown; raises a ContainerUpdateError where it is not approved."""


@contextmanager
def show_progress(  # noqa: PLR0913
    out: TextIO,
    style: str = AUTO,
    *,
    every: bool = False,
    approve: Approve = lambda _: None,
    header: Header = NO_HEADER,
    undoes: bool = True,
) -> Iterator[Progress]:
    """Yield a progress callback that shows events until the block ends.

    :param every: the plan is shown with everything that is usually only counted.
    :param undoes: what fails is undone.
    """
    if style == NONE:
        yield lambda event: approve(event) if isinstance(event, Plan) else None
        return
    screen = Screen(out)
    if style == JSON:
        view: _View = _JsonView(screen, approve, header)
    elif style == LIVE or (style == AUTO and screen.is_terminal):
        view = _LiveView(screen, approve, header, every=every)
    else:
        view = _PlainView(screen, approve, header, every=every)
    view.running.undoes = undoes
    with view.open():
        try:
            yield view
        except UpdateFailedError as error:
            view.complete(error.outcome)
            raise


class _View(ABC):
    """A progress callback. It is called from several threads."""

    def __init__(
        self, screen: Screen, approve: Approve, header: Header, *, every: bool = False
    ) -> None:
        self._screen = screen
        self._header = header
        self._approve = approve
        self._every = every
        self._lock = threading.RLock()
        self._shown: set[object] = set()
        self._told: set[str] = set()
        self._reports: set[tuple[str, ...]] = set()
        self.running = Running(time.monotonic())

    def __call__(self, event: Event) -> None:
        """Show an event."""
        with self._lock:
            self.running.take(event, time.monotonic())
            if isinstance(event, StepResult):
                self._shown.add((event.step.place, event.state))
                self._told |= {event.message} - {""}
            self.show(event)
            self._screen.flush()
        if isinstance(event, Plan) and not event.is_empty:
            asked = time.monotonic()
            self._approve(event)
            self.running.began += time.monotonic() - asked

    def complete(self, outcome: Outcome) -> None:
        """Show the results of the steps of which no event told."""
        for result in outcome.results:
            if (result.step.place, result.state) not in self._shown:
                self(result)

    def lines(self, event: Event) -> Iterator[Line]:
        """Yield the lines about an event; a cause is told once."""
        if isinstance(event, Plan):
            yield from self._header.lines(event.packages)
            yield from plan_lines(event, every=self._every)
        elif isinstance(event, StepResult):
            yield from result_lines(self._once(event))
        elif isinstance(event, UndoStarted | ResumeStarted):
            what = "Undoing" if isinstance(event, UndoStarted) else "Finishing"
            is_told = any(text in event.cause for text in self._told)
            why = "" if is_told else f": {printable(event.cause)}"
            number = count_noun(len(event.steps), "step")
            yield Line.of((f"{what} {number}", lines.WARNING), why)

    def _once(self, result: StepResult) -> StepResult:
        """Return a result without what the failing pod of another step has reported as well."""
        diagnosis = result.diagnosis
        report = (diagnosis.log or diagnosis.events) if diagnosis else ()
        if report in self._reports:
            return replace(result, diagnosis=None)
        self._reports |= {report} - {()}
        return result

    @abstractmethod
    def show(self, event: Event) -> None:
        """Write the lines about an event."""

    @contextmanager
    def open(self) -> Iterator[None]:
        """Show the steps under way while the block runs."""
        yield


class _JsonView(_View):
    """Each event as a line of JSON."""

    def show(self, event: Event) -> None:
        for value in json_report.event_dicts(event):
            if isinstance(event, Plan):
                value["plan"] |= self._header.as_dict()
            self._screen.show([Line.of(json.dumps(value), is_content=True)])


class _PlainView(_View):
    """The plan, a line for each step that ends, and one after each silence."""

    def show(self, event: Event) -> None:
        if shown := list(self.lines(event)):
            self._screen.show(shown)
            self._last = time.monotonic()

    @contextmanager
    def open(self) -> Iterator[None]:
        self._last = time.monotonic()
        with context_threads.beside(self._break_silence, "silence"):
            yield

    def _break_silence(self, ended: threading.Event) -> None:
        while not ended.wait(max(0.0, self._last + SILENCE - time.monotonic())):
            with self._lock:
                now = time.monotonic()
                if now - self._last >= SILENCE:
                    self._screen.show(self.running.lines(now, most=1))
                    self._screen.flush()
                    self._last = now


class _LiveView(_View):
    """The same, and below it the steps under way."""

    _live: Live | None = None

    def show(self, event: Event) -> None:
        if isinstance(event, Plan):  # a question may follow, which nothing may write over
            self._opening.close()
            self._live = None
        self._screen.show(self.lines(event))
        if self._live is None and not isinstance(event, Plan):
            self._live = self._opening.enter_context(self._new_live())

    def _new_live(self) -> Live:
        from rich.live import Live  # noqa: PLC0415, slow to load

        return Live(
            console=self._screen.console,
            get_renderable=lambda: self._screen.block(
                self.running.lines(
                    time.monotonic(),
                    max(1, self._screen.console.height - _RESERVED),
                    self._screen.console.width - 4,
                )
            ),
            auto_refresh=False,  # it does not wait until another thread has written its lines
            transient=True,
            redirect_stdout=False,
            redirect_stderr=sys.stderr is not None and sys.stderr.isatty(),
        )

    @contextmanager
    def open(self) -> Iterator[None]:
        with ExitStack() as self._opening, context_threads.beside(self._refresh, "live view"):
            yield

    def _refresh(self, ended: threading.Event) -> None:
        while not ended.wait(_REFRESH_SECONDS):
            with self._lock:
                if self._live is not None:
                    self._live.refresh()
