# SPDX-License-Identifier: Apache-2.0
"""Deployment (apps/v1): its controller rolls the pods by ReplicaSets.

Source: Kubernetes API reference, Deployment; "Deployments", "Failed Deployment".
"""

from __future__ import annotations

from collections.abc import Sequence

from container_update.model.objects import Json
from container_update.workloads.kind import WorkloadKind
from container_update.workloads.readiness import Baseline, Readiness, RolloutState, is_observed

HASH_LABEL = "pod-template-hash"
"""Tells the pods of two templates apart, and ends the name of each one's ReplicaSet."""


class Deployment(WorkloadKind):
    """updated = ready = available = replicas, no old pods left; the progress deadline is final."""

    group, kind = "apps", "Deployment"
    replica_set_label = HASH_LABEL

    def refusal(self, live: Json) -> str | None:
        """Return the refusal of one that is paused."""
        if not (live.get("spec") or {}).get("paused"):
            return None
        metadata = live["metadata"]
        return (
            "is paused, a change would never roll out: resume it (kubectl rollout resume "
            f"deployment {metadata['name']} -n {metadata['namespace']}) and try again"
        )

    def never_starts(self, manifest: Json) -> str | None:
        """Return that none of one starts that is paused."""
        if not (manifest.get("spec") or {}).get("paused"):
            return None
        return "expected a Deployment that rolls out, found spec.paused: true: take it out"

    def readiness(self, live: Json, pods: Sequence[Json], baseline: Baseline) -> Readiness:
        """Judge by counts and pods, and by the controller's own verdict.

        Not on the way back: it may measure that by when the way there last made progress.
        """
        judged = super().readiness(live, pods, baseline)
        if (
            judged.state is not RolloutState.DONE
            and baseline.restores is None
            and is_observed(live)
        ):
            for condition in baseline.news(live):
                if condition.get("reason") == "ProgressDeadlineExceeded":
                    return Readiness(
                        RolloutState.FAILED, f"ProgressDeadlineExceeded: {judged.message}"
                    )
        return judged
