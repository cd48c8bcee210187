# SPDX-License-Identifier: Apache-2.0
"""Job (batch/v1): runs once; its template cannot change, how it runs can.

Source: Kubernetes API reference, JobSpec; "Jobs", "Mutable Scheduling Directives"; "Automatic
Cleanup for Finished Jobs".
"""

from __future__ import annotations

from container_update.model.objects import Json
from container_update.model.plan import Action
from container_update.workloads.kind import WorkloadKind

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
