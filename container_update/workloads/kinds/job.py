# SPDX-License-Identifier: Apache-2.0
"""Job (batch/v1): runs once; its template cannot change, how it runs can.

Source: Kubernetes API reference, JobSpec; "Jobs", "Mutable Scheduling Directives"; "Automatic
Cleanup for Finished Jobs".
"""

from __future__ import annotations

from collections.abc import Sequence

from container_update.model.objects import Collection, Json
from container_update.model.plan import Action
from container_update.workloads import pod_status
from container_update.workloads.kind import WorkloadKind, pods_in
from container_update.workloads.readiness import (
    DONE,
    Baseline,
    Readiness,
    RolloutState,
    conditions,
    status_count,
)

WAIT_ANNOTATION = "container-update/wait"
"""On a Job: ``"false"``: nothing waits for its end."""

_FIXED = frozenset(
    {
        "backoffLimitPerIndex",
        "completionMode",
        "completions",
        "managedBy",
        "podFailurePolicy",
        "selector",
        "successPolicy",
    }
)


class Job(WorkloadKind):
    """What another template would change is reported; only the rest is written."""

    group, kind = "batch", "Job"
    runs_to_completion = True
    can_change = False
    is_scaled = False
    restart_action = Action.REPLACE

    def watched_collections(self, namespace: str) -> frozenset[Collection]:
        """See WorkloadKind: one that is created is followed to its end."""
        return frozenset({Collection(self.group, self.kind, namespace), pods_in(namespace)})

    def is_waited_for(self, body: Json) -> bool:
        """See WorkloadKind: not one that is suspended, or whose annotation says so."""
        annotations = body["metadata"].get("annotations") or {}
        is_left_out = annotations.get(WAIT_ANNOTATION) == "false"
        return not (is_left_out or body["spec"].get("suspend"))

    def readiness(self, live: Json, pods: Sequence[Json], baseline: Baseline) -> Readiness:
        """Judge whether it is complete or has failed; by its pods only where none can start."""
        del baseline
        if not self.is_waited_for(live):
            return DONE
        for condition in conditions(live):
            if condition.get("status") == "True" and condition.get("type") == "Complete":
                return DONE
            if condition.get("status") == "True" and condition.get("type") == "Failed":
                text = f"{condition.get('reason')}: {condition.get('message')}"
                return Readiness(RolloutState.FAILED, text)
        succeeded = status_count(live, "succeeded")
        wanted = live["spec"].get("completions")
        count = f"{succeeded} of {1 if wanted is None else wanted} pods have succeeded"
        active = [pod for pod in pods if pod_status.is_active(pod)]
        if active and all(map(pod_status.cannot_start, active)):
            patience = min(map(pod_status.patience, active))
            text = f"{pod_status.problem(active[0])} ({count})"
            return Readiness(RolloutState.FAILING, text, patience)
        return Readiness(RolloutState.PROGRESSING, count)

    def why_stopped(self, written: Json, live: Json) -> str:
        """See WorkloadKind: it was suspended."""
        was, now = (bool(body["spec"].get("suspend")) for body in (written, live))
        return "expected a Job that runs, found spec.suspend: true" if now and not was else ""

    def fixed_fields(self, manifest: Json) -> frozenset[str]:
        """Return those of JobSpec that the reference calls immutable.

        An Indexed Job may get another number of completions, if it is that of the pods at a time.
        """
        spec = manifest["spec"]
        is_elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == (
            spec.get("parallelism")
        )
        return _FIXED - {"completions"} if is_elastic else _FIXED

    def removes_itself(self, manifest: Json) -> bool:
        """Tell whether it has a time to live after its end; a suspended one has not begun."""
        spec = manifest["spec"]
        return spec.get("ttlSecondsAfterFinished") is not None and not spec.get("suspend")
