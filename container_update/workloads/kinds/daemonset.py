"""DaemonSet (apps/v1): one pod on every node that is to have one.

Source: Kubernetes API reference, DaemonSet, DaemonSetUpdateStrategy.
"""

from __future__ import annotations

from collections.abc import Sequence

from container_update.model.objects import Json
from container_update.model.plan import Action, ImageChange
from container_update.workloads.config_references import Use
from container_update.workloads.kind import WorkloadKind, action_by_update_strategy
from container_update.workloads.readiness import Counts, status_count


class DaemonSet(WorkloadKind):
    """One updated, available pod on every node that is to have one."""

    group, kind = "apps", "DaemonSet"
    is_scaled = False

    def action(self, live: Json, images: Sequence[ImageChange], uses: Sequence[Use]) -> Action:
        """Leave it to the controller, unless that waits for deletions."""
        del images, uses
        return action_by_update_strategy(live)

    def counts(self, live: Json) -> Counts:
        """Count nodes."""
        wanted = status_count(live, "desiredNumberScheduled")
        return Counts(
            wanted=wanted,
            updated=status_count(live, "updatedNumberScheduled"),
            ready=status_count(live, "numberReady"),
            available=status_count(live, "numberAvailable"),
            total=wanted,
        )
