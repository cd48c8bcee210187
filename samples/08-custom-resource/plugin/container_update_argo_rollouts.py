# SPDX-License-Identifier: Apache-2.0
"""Rollout (argoproj.io/v1alpha1): a Deployment with canary and blue-green steps.

Source: Argo Rollouts, "Rollout Specification" and the fields of RolloutStatus: the counts are those
of a Deployment, ``observedGeneration`` is a number in a string, ``phase`` is Progressing, Paused,
Healthy or Degraded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from container_update import WorkloadKind
from container_update.workloads.readiness import Baseline, Readiness, RolloutState, is_observed

Json = dict[str, Any]


class Rollout(WorkloadKind):
    """Rolled by its controller, through ReplicaSets."""

    group, kind = "argoproj.io", "Rollout"
    replica_set_label = "rollouts-pod-template-hash"

    def refusal(self, live: Json) -> str | None:
        """Refuse one that is paused."""
        if not live["spec"].get("paused"):
            return None
        return "is paused, a change would never roll out: set spec.paused to false and try again"

    def notes(self, live: Json) -> Iterator[str]:
        """Tell of canary steps that wait for a person."""
        steps = ((live["spec"].get("strategy") or {}).get("canary") or {}).get("steps") or ()
        for number, step in enumerate(steps):
            if "pause" in step and not (step["pause"] or {}).get("duration"):
                yield f"its canary step {number} waits until it is promoted: promote it in time"

    def readiness(self, live: Json, pods: Sequence[Json], baseline: Baseline) -> Readiness:
        """Judge by counts and pods, and by the controller's own verdict."""
        judged = super().readiness(live, pods, baseline)
        status = live.get("status") or {}
        is_degraded = status.get("phase") == "Degraded" and is_observed(live)
        if judged.state is RolloutState.DONE or not is_degraded:
            return judged
        return Readiness(
            RolloutState.FAILED, f"Degraded: {status.get('message') or judged.message}"
        )
