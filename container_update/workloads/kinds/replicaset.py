# SPDX-License-Identifier: Apache-2.0
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
    """Its status does not count updated pods: only the pods show which are new."""

    group, kind = "apps", "ReplicaSet"
    restart_action = Action.EVICT
    risks_one_pod = True

    def counts(self, live: Json) -> Counts:
        """Return the counts, with every pod as updated."""
        return replace(super().counts(live), updated=replicas(live))
