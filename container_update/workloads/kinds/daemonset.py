# SPDX-License-Identifier: Apache-2.0
"""DaemonSet (apps/v1): one pod on every node that is to have one.

Source: Kubernetes API reference, DaemonSet, DaemonSetUpdateStrategy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from container_update.model.objects import Json
from container_update.workloads.kind import WorkloadKind
from container_update.workloads.readiness import Counts, status_count


class DaemonSet(WorkloadKind):
    """One updated, available pod on every node that is to have one."""

    group, kind = "apps", "DaemonSet"
    is_scaled = False
    refusals_are_events = True
    risks_one_pod = True

    def counts(self, live: Json) -> Counts:
        """Return the counts of nodes."""
        desired = status_count(live, "desiredNumberScheduled")
        return Counts(
            desired=desired,
            updated=status_count(live, "updatedNumberScheduled"),
            ready=status_count(live, "numberReady"),
            available=status_count(live, "numberAvailable"),
            total=desired,
        )

    def counts_without(self, live: Json, leaving: Sequence[Json]) -> Counts:
        """Return the counts without the nodes of these pods, kept until they are gone."""
        counts = self.counts(live)
        nodes = counts.desired - len(leaving)
        return replace(counts, desired=nodes, total=nodes)
