# SPDX-License-Identifier: Apache-2.0
"""A step that gives a workload another number of pods."""

from __future__ import annotations

from dataclasses import dataclass, field

from container_update.model.objects import Json, instance_of
from container_update.planning.release_labels import match_labels
from container_update.planning.steps.base import ObjectStep
from container_update.workloads.readiness import replicas, with_replicas


@dataclass(frozen=True)
class ScaleStep(ObjectStep):
    """Write ``spec.replicas``, and nothing else."""

    replicas: int = field(kw_only=True)

    def desired(self, live: Json) -> Json:
        """Return the live workload with the new number of pods."""
        return with_replicas(live, self.replicas)

    def restored(self, live: Json) -> Json:
        """Return the live workload with the number of pods that it had."""
        return with_replicas(live, replicas(self.old))

    def is_of_others(self, live: Json) -> bool:
        """Tell whether somebody else's workload has the name: no selector ever changes."""
        one, other = ((instance_of(body), match_labels(body)) for body in (live, self.old))
        return one != other

    def is_same(self, one: Json, other: Json) -> bool:
        """Tell whether two states of the workload ask for the same number of pods."""
        return replicas(one) == replicas(other)
