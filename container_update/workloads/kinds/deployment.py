# SPDX-License-Identifier: Apache-2.0
"""Deployment (apps/v1): its controller rolls the pods by ReplicaSets.

Source: Kubernetes API reference, Deployment; "Deployments", "Failed Deployment".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from container_update.model.objects import Json, get_at
from container_update.workloads.kind import WorkloadKind
from container_update.workloads.readiness import (
    Baseline,
    Readiness,
    RolloutState,
    is_observed,
    replicas,
)

HASH_LABEL = "pod-template-hash"
"""Tells the pods of two templates apart, and ends the name of each one's ReplicaSet."""


class Deployment(WorkloadKind):
    """updated = ready = available = replicas, no old pods left; the progress deadline is final."""

    group, kind = "apps", "Deployment"
    replica_set_label = HASH_LABEL

    def refusal(self, live: Json) -> str | None:
        """Return the refusal of one that is paused."""
        if not _is_paused(live):
            return None
        return f"is paused, a change would never roll out: {_resume(live)} and try again"

    def deletes_first(self, live: Json) -> bool:
        """See :class:`WorkloadKind`; one that surges may give up old pods at the same time."""
        rolling = get_at(live, ("spec", "strategy", "rollingUpdate")) or {}
        fewer = str(rolling.get("maxUnavailable") or 0)
        number = int(fewer.removesuffix("%"))
        gives_up = number * replicas(live) // 100 if fewer.endswith("%") else number
        return gives_up > 0 or super().deletes_first(live)

    def never_starts(self, manifest: Json) -> str | None:
        """Return that none of one starts that is paused."""
        if not _is_paused(manifest):
            return None
        return "expected a Deployment that rolls out, found spec.paused: true: take it out"

    def readiness(self, live: Json, pods: Sequence[Json], baseline: Baseline) -> Readiness:
        """Judge by counts and pods, by whether it is paused, and by the controller's own
        verdict.

        Not by that on the way back: it may measure it by when the way there last made progress.
        """
        judged = super().readiness(live, pods, baseline)
        if judged.state is RolloutState.DONE or not is_observed(live):
            return judged
        if _is_paused(live):
            text = f"it is paused ({judged.message}): {_resume(live)}"
            return replace(judged, state=RolloutState.FAILING, message=text)
        for condition in baseline.news(live) if baseline.restores is None else ():
            if condition.get("reason") == "ProgressDeadlineExceeded":
                text = f"ProgressDeadlineExceeded: {judged.message}"
                return Readiness(RolloutState.FAILED, text)
        return judged


def _is_paused(body: Json) -> bool:
    return bool((body.get("spec") or {}).get("paused"))


def _resume(live: Json) -> str:
    name, namespace = live["metadata"]["name"], live["metadata"]["namespace"]
    return f"resume it (kubectl rollout resume deployment {name} -n {namespace})"
