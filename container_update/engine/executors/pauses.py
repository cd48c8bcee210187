# SPDX-License-Identifier: Apache-2.0
"""Carries out the steps that wait for a time, ask a metric, or a script."""

from __future__ import annotations

from container_update.cluster.prometheus import MetricError, measured
from container_update.cluster.waiting import NotReadyError
from container_update.engine.context import ExecutionContext
from container_update.engine.executors.script import ScriptExecutor
from container_update.model.pauses import GateStep, HoldStep

_PATIENCE = 3
"""How many questions in a row may stay without a usable answer."""


class HoldExecutor:
    """Waits for a time. What waits for a person is not carried out: the run ends before it."""

    def __init__(self, context: ExecutionContext) -> None:
        self._waiter = context.rollout.waiter

    def apply(self, step: HoldStep, deadline: float) -> None:  # noqa: ARG002
        """Wait; AbortedError where the run is cancelled."""
        self._waiter.sleep(step.seconds or 0.0)


class GateExecutor:
    """Asks Prometheus, or a script, until the time of the gate is over."""

    def __init__(self, context: ExecutionContext) -> None:
        self._waiter, self._server = context.rollout.waiter, context.prometheus
        self._scripts = ScriptExecutor(context)

    def apply(self, step: GateStep, deadline: float) -> None:  # noqa: ARG002
        """Ask every few seconds whether the values are within the bounds.

        :raises NotReadyError: one is not, or the server does not answer.
        :raises CoordinationError: the script fails.
        :raises AbortedError: the run is cancelled.
        """
        until, failures = self._waiter.clock() + step.seconds, 0
        while True:
            try:
                if step.script is None:
                    self._ask(step)
                else:
                    self._scripts.apply(step.script, until)
                failures = 0
            except MetricError as error:
                failures += 1
                if failures >= _PATIENCE:
                    raise NotReadyError(f"{failures} questions in a row: {error}") from error
            left = until - self._waiter.clock()
            if left <= 0 and not failures:
                return
            self._waiter.pause(0)  # a run that was cancelled asks no more
            self._waiter.sleep(min(step.every, max(left, 0.0)) or step.every)

    def _ask(self, step: GateStep) -> None:
        values = measured(self._server, step.query, self._waiter.pause)
        wrong = [value for value in values if not step.is_within(value)]
        if wrong:
            raise NotReadyError(
                f"{step.query}: expected {step.bounds}, found {', '.join(f'{v:g}' for v in wrong)}"
            )
