# SPDX-License-Identifier: Apache-2.0
"""What a plan waits for beside its objects: a person, a time, a metric, a script. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from container_update.model.objects import ObjectKey
from container_update.model.plan import Action, Step
from container_update.model.scripts import ScriptStep

LONGEST_HOLD, LONGEST_PERIOD = 24 * 3600, 3600
"""In seconds: of a hold and of a gate, and of the pause between two questions of a gate."""


@dataclass(frozen=True)
class HoldStep(Step):
    """Wait until a person promotes the change, or for a time.

    Where it waits for a person, the run ends there: no process waits. The journal
    says how far it is; a promotion goes on from it, an abort undoes it.

    >>> HoldStep.of("canary of 10 %").needs_person
    True
    """

    seconds: float | None
    """How long; None: until a person promotes the change, or aborts it."""
    can_be_repeated = False

    @classmethod
    def of(cls, what: str, seconds: float | None = None) -> HoldStep:
        """Return the step; *what* is there by then, in words."""
        return cls(ObjectKey("", "Hold", "", what), Action.WAIT, seconds)

    @property
    def needs_person(self) -> bool:
        """Only a person ends it."""
        return self.seconds is None

    def __str__(self) -> str:
        until = "it is promoted or aborted" if self.seconds is None else f"{self.seconds:g} s"
        return f"{self.key}: waits {'until ' if self.seconds is None else ''}{until}"


@dataclass(frozen=True)
class GateStep(Step):
    """Ask Prometheus a query, or run a script, every few seconds for a time; fail where a value is
    out of bounds, or the script fails.

    >>> GateStep.of("canary of 10 %", "error_ratio", at_most=0.01).is_within(0.02)
    False
    """

    query: str
    """In PromQL; its value is a scalar, or a vector of which every sample has to be in bounds. It
    is empty where a script is run."""
    at_least: float | None
    at_most: float | None
    every: float
    """Seconds from one question to the next."""
    seconds: float
    """For how long the values have to be within the bounds."""
    script: ScriptStep | None = None
    """What is run instead of a query; its exit status 0 is good."""
    can_be_repeated = False

    @classmethod
    def of(  # noqa: PLR0913
        cls,
        what: str,
        query: str = "",
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        every: float = 10.0,
        seconds: float = 60.0,
        script: ScriptStep | None = None,
    ) -> GateStep:
        """Return the step; *what* is there by then, in words."""
        key = ObjectKey("", "Gate", "", f"{what}, {script.key.name}" if script else what)
        return cls(key, Action.CHECK, query, at_least, at_most, every, seconds, script)

    def is_within(self, value: float) -> bool:
        """Tell whether a value is within the bounds; NaN is not."""
        low = float("-inf") if self.at_least is None else self.at_least
        high = float("inf") if self.at_most is None else self.at_most
        return low <= value <= high

    @property
    def bounds(self) -> str:
        """The bounds in words."""
        words = [
            f"at least {self.at_least:g}" if self.at_least is not None else "",
            f"at most {self.at_most:g}" if self.at_most is not None else "",
        ]
        return " and ".join(filter(None, words)) or "a number"
