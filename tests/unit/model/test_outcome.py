# SPDX-License-Identifier: Apache-2.0
"""What an outcome says of an undo."""

from __future__ import annotations

from container_update.model.objects import ObjectKey
from container_update.model.outcome import Outcome, Reverted, StepResult, StepState
from container_update.model.plan import Action, Plan
from container_update.planning.steps import ScaleStep


def test_an_object_that_a_plan_changes_twice_is_named_once() -> None:
    """A canary scales the same Deployment in several steps."""
    key = ObjectKey("apps", "Deployment", "ns", "web")
    steps = [ScaleStep(key, Action.SCALE, {}, replicas=number) for number in (1, 0)]
    results = tuple(
        StepResult(step, StepState.UNDONE, reverted=Reverted.OF_OTHERS) for step in steps
    )
    outcome = Outcome(Plan("ns", None, tuple(steps)), results)
    assert outcome.left_to_others == (key,)
    assert outcome.ending.count(str(key)) == 1
