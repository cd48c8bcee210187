"""ReplicaSet (apps/v1) of its own: it makes pods of a new template only in place of those that go.

Source: Kubernetes API reference, ReplicaSet.
"""

from __future__ import annotations

from dataclasses import replace

from container_update.model.objects import Json
from container_update.model.plan import Action
from container_update.workloads.kind import WorkloadKind
from container_update.workloads.readiness import Counts, replicas


class ReplicaSet(WorkloadKind):
    """A ReplicaSet does not know of updated pods: the pods alone tell."""

    group, kind = "apps", "ReplicaSet"
    restart_action = Action.EVICT

    def counts(self, live: Json) -> Counts:
        """Count every pod as updated."""
        return replace(super().counts(live), updated=replicas(live))
