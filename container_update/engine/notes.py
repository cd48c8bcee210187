# SPDX-License-Identifier: Apache-2.0
"""What a run notes of its progress, for commands that follow it from outside.

It is an annotation of the Lease, written when that is renewed: it costs no further request. It is
for people alone; what a resume needs is in the journal.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from container_update.cluster.lease import NOTES_ANNOTATION
from container_update.cluster.operation import Operation
from container_update.model.objects import Json
from container_update.model.operation import StepProgress
from container_update.model.outcome import (
    Event,
    Progress,
    StepResult,
    StepState,
    StepWait,
    UndoStarted,
)
from container_update.model.plan import Place, Step
from container_update.model.schema import (
    FILLED,
    LINE,
    WHOLE,
    ListOf,
    MapOf,
    Number,
    Row,
    Text,
    complete,
    or_null,
)

NOT_BEGUN, BEGUN = "-", "r"
LETTERS = dict(zip(StepState, "dfhsnux", strict=True))
"""How the result of a step is noted."""
_STATES = {letter: state for state, letter in LETTERS.items()}

_MOST_WAITS, _LONGEST_LINE, _LONGEST = 50, 300, 100_000
"""Of the steps with what they wait for; characters of a line, and of all notes together."""
_SHORT = Text(LINE.description, LINE.pattern, _LONGEST_LINE)
_WAIT = Row((_SHORT, WHOLE, WHOLE, _SHORT))
_NOTES = complete(
    operation=FILLED,
    undo=or_null(_SHORT),
    states=Text("a letter for each step", f"[{''.join(_STATES)}{BEGUN}{NOT_BEGUN}]*", _LONGEST),
    seconds=ListOf(Number()),
    waits=MapOf(Text("a number", "[0-9]{1,6}"), _WAIT, nullable=False),
)


@dataclass(frozen=True)
class Noted:
    """What was noted last of an operation.

    :param states: a letter for each step of the plan: not begun, begun, or its result.
    :param waits: message, ready pods, desired pods and trouble of steps that wait, by their number.
    :param undo: why it is being undone; None: it goes forward.
    """

    states: str
    seconds: Sequence[float] = ()
    waits: Mapping[int, tuple[str, int, int, str]] = field(default_factory=dict)
    undo: str | None = None

    @classmethod
    def of(cls, lease: Json, record: Operation) -> Noted | None:
        """Return what a Lease says of an operation; None where it has no notes of that one."""
        text = (lease["metadata"].get("annotations") or {}).get(NOTES_ANNOTATION, "")
        try:
            values: Json = json.loads(text[:_LONGEST])
        except (ValueError, RecursionError):
            return None
        if _NOTES.first_violation(values) or values["operation"] != record.operation:
            return None
        if not len(values["states"]) == len(values["seconds"]) == len(record.steps):
            return None
        waits = {int(number): tuple(wait) for number, wait in values["waits"].items()}
        return cls(values["states"], values["seconds"], waits, values["undo"])

    def states_of_steps(self, *, runs: bool) -> tuple[StepProgress, ...]:
        """Return how far each step is, for people; *runs*: a process carries them out."""
        begun = "running" if self.undo is None else "being undone"
        begun = begun if runs else "interrupted"
        words = {NOT_BEGUN: "not started", BEGUN: begun}
        words |= {letter: state.value for letter, state in _STATES.items()}
        return tuple(
            StepProgress(words[letter], self.waits[number][0] if number in self.waits else "")
            for number, letter in enumerate(self.states)
        )

    def result(self, number: int, step: Step) -> StepResult | None:
        """Return the result of a step; None where it has none yet."""
        state = _STATES.get(self.states[number])
        message = self.waits[number][0] if number in self.waits else ""
        return state and StepResult(step, state, message, self.seconds[number])


class Notes:
    """Collects what a run has to note, and hands each event on.

    >>> notes = Notes(record, progress)  # doctest: +SKIP
    >>> notes.text()  # doctest: +SKIP
    '{"operation": "ac70", "undo": null, "states": "dr-", ...}'

    :param progress: is called with each event too.
    """

    def __init__(self, record: Operation, progress: Progress) -> None:
        self._operation, self._progress = record.operation, progress
        self._numbers: Mapping[Place, int] = {s.place: n for n, s in enumerate(record.steps)}
        self._keys = {step.key: number for number, step in enumerate(record.steps)}
        """The step of an object that began last."""
        self._states = [NOT_BEGUN] * len(record.steps)
        self._seconds = [0.0] * len(record.steps)
        self._waits: dict[int, tuple[str, int, int, str]] = {}
        self._undo: str | None = None
        self._noting = threading.Lock()

    def __call__(self, event: Event) -> None:
        """Note an event and hand it on."""
        with self._noting:
            self._note(event)
        self._progress(event)

    def _note(self, event: Event) -> None:
        if isinstance(event, UndoStarted):
            self._undo = _line(event.cause)
        for step in event.steps if isinstance(event, UndoStarted) else [event]:
            if isinstance(step, Step) and step.place in self._numbers:
                self._keys[step.key] = number = self._numbers[step.place]
                self._states[number] = BEGUN
                self._waits.pop(number, None)
        if isinstance(event, StepWait) and event.key in self._keys:
            wait = _line(event.message), event.ready, event.desired, _line(event.trouble)
            self._waits[self._keys[event.key]] = wait
        elif isinstance(event, StepResult) and event.step.place in self._numbers:
            number = self._numbers[event.step.place]
            self._states[number] = LETTERS[event.state]
            self._seconds[number] = round(event.seconds, 1)
            self._waits.pop(number, None)
            if event.message and event.state is not StepState.DONE:
                self._waits[number] = (_line(event.message), 0, 0, "")

    def text(self) -> str:
        """Return the notes; '' where nothing has begun, or they would be too long."""
        with self._noting:
            if {NOT_BEGUN}.issuperset(self._states):
                return ""
            notes = {
                "operation": self._operation,
                "undo": self._undo,
                "states": "".join(self._states),
                "seconds": self._seconds,
                "waits": dict(list(self._waits.items())[-_MOST_WAITS:]),
            }
            text = json.dumps(notes)
        return text if len(text) <= _LONGEST else ""


def _line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)[:_LONGEST_LINE]
