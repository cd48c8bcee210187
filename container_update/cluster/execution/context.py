"""What the executors of all kinds of step share, and what an undo found."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from container_update.cluster.execution.rollout import RolloutWaiter
from container_update.cluster.execution.writer import ObjectWriter
from container_update.cluster.waiting import Waiter
from container_update.model.cluster import Cluster
from container_update.model.objects import Json, ObjectKey
from container_update.planning.steps import ObjectStep

S_contra = TypeVar("S_contra", bound=ObjectStep, contravariant=True)


class Reverted(enum.Enum):
    """What reverting a step found."""

    RESTORED = "restored"
    UNCHANGED = "already as before"
    OF_OTHERS = "changed or deleted by somebody else since: left alone"
    """Nothing of the step is left in the object, and what is there is not ours to judge."""


@dataclass(frozen=True)
class ExecutionContext:
    """A run's access to the cluster, and what it knows of the time before the plan."""

    cluster: Cluster
    waiter: Waiter
    instance_id: str | None = None
    pods_before: Mapping[ObjectKey, frozenset[str]] = field(default_factory=dict)
    """For each workload the UIDs of the pods it had before the plan."""
    leaving: frozenset[str] = frozenset()
    """UIDs of the pods of workloads that the plan deletes: they are to get no traffic."""
    resumed: bool = False

    def __post_init__(self) -> None:
        writer = ObjectWriter(self.cluster, self.instance_id, self.resumed)
        object.__setattr__(self, "writer", writer)
        object.__setattr__(self, "rollout", RolloutWaiter(self.waiter))

    writer: ObjectWriter = field(init=False)
    rollout: RolloutWaiter = field(init=False)

    def pods_since(self, step: ObjectStep, live: Json) -> list[Json]:
        """Return the workload's pods that were created since the plan was made."""
        before = self.pods_before.get(step.key, frozenset())
        return [pod for pod in self.rollout.pods(live) if pod["metadata"]["uid"] not in before]


class StepExecutor(Protocol[S_contra]):
    """Carries out one kind of step, and reverts it. Both may be called again at any point."""

    def apply(self, step: S_contra, deadline: float) -> None:
        """Write what the step wants and wait until it is in effect.

        :param deadline: by the waiter's clock.
        :raises ClusterError: the API server refused.
        :raises ChangedByAnotherError: the object is neither as planned nor as the step wants it.
        :raises NotReadyError: it did not get there.
        """

    def revert(self, step: S_contra, deadline: float) -> Reverted:
        """Put back what the step wrote, as far as it is there; raises as :meth:`apply`."""
