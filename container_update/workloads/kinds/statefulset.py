# SPDX-License-Identifier: Apache-2.0
"""StatefulSet (apps/v1): its pods keep their names and go from the last to the first.

Source: Kubernetes API reference, StatefulSet, RollingUpdateStatefulSetStrategy; "StatefulSets",
"Forced rollback".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from container_update.model.objects import Json
from container_update.workloads.kind import WorkloadKind
from container_update.workloads.pod_status import is_active, is_ready
from container_update.workloads.readiness import (
    DONE,
    Baseline,
    Counts,
    Readiness,
    is_observed,
    replicas,
)


class StatefulSet(WorkloadKind):
    """All pods from the partition on are updated, all are ready."""

    group, kind = "apps", "StatefulSet"
    keeps_broken_pods = True
    refusals_are_events = True

    def number_to_replace(self, live: Json) -> int:
        """Return the number without the pods that a partition keeps."""
        return max(0, replicas(live) - len(kept_ordinals(live)))

    def notes(self, live: Json) -> Iterator[str]:
        """Yield a note about the pods that a partition keeps."""
        if kept := kept_ordinals(live):
            yield f"its partition keeps the pods with ordinals below {kept.stop} as they are"

    def counts_without(self, live: Json, leaving: Sequence[Json]) -> Counts:
        """Return the counts without the names of these pods, kept until they are gone."""
        counts, end = self.counts(live), first_ordinal(live) + replicas(live)
        wanted = sum(ordinal(pod) < end for pod in leaving)
        return replace(counts, desired=counts.desired - wanted, total=counts.total - len(leaving))

    def left_alone(self, live: Json, pods: Sequence[Json]) -> frozenset[str]:
        """Return the UIDs of the pods that the partition keeps: they have lower ordinals."""
        kept = kept_ordinals(live)
        return frozenset(pod["metadata"]["uid"] for pod in pods if ordinal(pod) in kept)

    def completeness(self, live: Json, pods: Sequence[Json], baseline: Baseline) -> Readiness:
        """Judge whether all of its pods are there; no more come while one is not Ready."""
        judged = super().completeness(live, pods, baseline)
        if is_observed(live) and any(is_active(pod) and not is_ready(pod) for pod in pods):
            return DONE
        return judged


def kept_ordinals(live: Json) -> range:
    """Return the first ordinals, which a partition keeps in a roll; none with OnDelete."""
    strategy, first = (live.get("spec") or {}).get("updateStrategy") or {}, first_ordinal(live)
    if strategy.get("type") == "OnDelete":
        return range(first, first)
    number = int((strategy.get("rollingUpdate") or {}).get("partition") or 0)
    return range(first, first + number)


def ordinal(pod: Json) -> int:
    """Return the number at the end of a pod's name."""
    return int(pod["metadata"]["name"].rpartition("-")[2])


def first_ordinal(live: Json) -> int:
    """Return the number of its first pod."""
    return int(((live.get("spec") or {}).get("ordinals") or {}).get("start") or 0)
