# SPDX-License-Identifier: Apache-2.0
"""What the executors of all kinds of step share, and what an undo found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from container_update.engine.rollout import RolloutWaiter
from container_update.engine.writer import ObjectWriter
from container_update.model.objects import Json, ObjectKey
from container_update.model.outcome import Reverted
from container_update.model.scripts import RunScript
from container_update.planning.steps import ObjectStep
from container_update.workloads.readiness import Baseline, abandoned_pods, conditions
from container_update.workloads.registry import known_kind

S = TypeVar("S", bound=ObjectStep)


@dataclass(frozen=True)
class ExecutionContext:
    """A run's access to the cluster, and the state before the plan."""

    writer: ObjectWriter
    rollout: RolloutWaiter
    pods_before: Mapping[ObjectKey, frozenset[str]] = field(default_factory=dict)
    """For each workload the UIDs of the pods it had before the plan."""
    leaving: frozenset[str] = frozenset()
    """UIDs of the pods of workloads that the plan deletes: they are to get no traffic."""
    run_script: RunScript = lambda _: None
    prometheus: str = ""
    """The URL of the server that gates ask; '' where none is known."""
    left: dict[ObjectKey, tuple[ObjectKey, ...]] = field(default_factory=dict)
    """For each object that an undo has deleted what stays of it."""


class StepExecutor(ABC, Generic[S]):
    """Carries out one kind of step, and reverts it. Both may be called again at any point."""

    def __init__(self, context: ExecutionContext) -> None:
        self.context = context
        self.cluster = context.writer.cluster
        self.writer = context.writer
        self.rollout = context.rollout
        self.informer = context.rollout.informer

    @abstractmethod
    def apply(self, step: S, deadline: float) -> None:
        """Write what the step wants and wait until it is in effect.

        :param deadline: by the waiter's clock.
        :raises ClusterError: the API server refused.
        :raises ChangedByAnotherError: the object is neither as planned nor as the step wants it.
        :raises NotReadyError: it did not get there.
        """

    @abstractmethod
    def revert(self, step: S, deadline: float) -> Reverted:
        """Restore what the step wrote, where it wrote anything; raises as :meth:`apply`."""

    def abandoned_pods(self, workload: Json) -> frozenset[str]:
        """Return the UIDs of those pods of a workload that were being deleted before the plan.

        To be called before its step is carried out or reverted, which deletes some too.
        """
        before = self.context.pods_before.get(ObjectKey.of(workload), frozenset())
        return abandoned_pods(self.informer.pods_of(workload), before)

    def as_before(self, step: S, live: Json) -> Baseline:
        """Return the baseline for the undo of a workload's step, before it is restored."""
        restores = known_kind(step.key).counts(step.old)
        return Baseline(
            abandoned=self.abandoned_pods(step.old), conditions=conditions(live), restores=restores
        )

    def expect(self, step: S, written: Json) -> None:
        """Note a written object, and have each wait for it end where another client changes it."""
        self.informer.observe(written)
        self.rollout.expect(step.key, lambda live: step.loss(written, live))

    def restore(self, step: S, live: Json) -> Reverted:
        """Write a live object as it was before the step, where it has traces of the step."""
        if step.is_restored(live):
            self.informer.observe(live)
            return Reverted.UNCHANGED
        if not step.has_traces(live):
            return Reverted.OF_OTHERS
        restored = self.writer.restore(step, live)
        self.informer.observe(restored)
        self.rollout.expect(step.key, lambda live: step.loss_of_restored(restored, live))
        return Reverted.RESTORED
