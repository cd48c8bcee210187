# SPDX-License-Identifier: Apache-2.0
"""Shows what happens while it happens: live on a terminal, else a line for each event.

Without a terminal nothing is silent for more than ten seconds: a line then says what is waited for.
"""

from __future__ import annotations

import json
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TextIO

from container_update.cli.reports import json_report, lines
from container_update.cli.reports.header import NONE as NO_HEADER
from container_update.cli.reports.header import Header
from container_update.cli.reports.lines import Line
from container_update.cli.reports.outcome_report import result_lines
from container_update.cli.reports.plan_report import plan_lines
from container_update.cli.terminal.running import Running
from container_update.cli.terminal.screen import Screen
from container_update.model import context_threads
from container_update.model.errors import UpdateFailedError
from container_update.model.outcome import (
    Event,
    Outcome,
    Progress,
    ResumeStarted,
    StepResult,
    UndoStarted,
)
from container_update.model.plan import Plan
from container_update.planning.comparison.content_diff import printable
from container_update.planning.summary import counted

if TYPE_CHECKING:
    from rich.live import Live

SILENCE = 10.0
"""Seconds after which it is said that the operation goes on."""
_REFRESH_SECONDS = 0.25
"""Between two looks at what is under way."""
_RESERVED = 3
"""Lines of a terminal that are kept free of steps under way."""
AUTO, LIVE, PLAIN, JSON, NONE = STYLES = ("auto", "live", "plain", "json", "none")
"""How progress is shown; auto: live on a terminal, plain elsewhere."""

Approve = Callable[[Plan], object]
"""Called with a plan that was shown; raises a ContainerUpdateError where it is not approved."""


@contextmanager
def shown(  # noqa: PLR0913
    out: TextIO,
    style: str = AUTO,
    *,
    every: bool = False,
    approve: Approve = lambda _: None,
    header: Header = NO_HEADER,
    undoes: bool = True,
) -> Iterator[Progress]:
    """Yield a progress callback that shows events until the block ends.

    :param style: one of :data:`STYLES`.
    :param every: the plan is shown with everything that is usually only counted.
    :param header: is shown before the plan.
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
    with view.opened():
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
        """Show what became of the steps of which no event said so."""
        for result in outcome.results:
            if (result.step.place, result.state) not in self._shown:
                self(result)

    def lines(self, event: Event) -> Iterator[Line]:
        """Yield what there is to say about an event to a person; a cause is told once."""
        if isinstance(event, Plan):
            yield from self._header.lines(event.packages)
            yield from plan_lines(event, every=self._every)
        elif isinstance(event, StepResult):
            yield from result_lines(self._once(event))
        elif isinstance(event, UndoStarted | ResumeStarted):
            what = "Undoing" if isinstance(event, UndoStarted) else "Finishing"
            is_told = any(text in event.cause for text in self._told)
            why = "" if is_told else f": {printable(event.cause)}"
            number = counted(len(event.steps), "step")
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
        """Write what there is to say about an event."""

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Show what is under way while the block runs."""
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
        self._screen.show(self.lines(event))
        self._last = time.monotonic()

    @contextmanager
    def opened(self) -> Iterator[None]:
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
    """The same, and below it what is under way at the moment."""

    _live: Live | None = None

    def show(self, event: Event) -> None:
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
                    self._screen.console.width - 1,
                )
            ),
            auto_refresh=False,  # it does not wait until another thread has written its lines
            transient=True,
            redirect_stdout=False,
        )

    @contextmanager
    def opened(self) -> Iterator[None]:
        with ExitStack() as self._opening, context_threads.beside(self._refresh, "live view"):
            yield

    def _refresh(self, ended: threading.Event) -> None:
        while not ended.wait(_REFRESH_SECONDS):
            with self._lock:
                if self._live is not None:
                    self._live.refresh()
