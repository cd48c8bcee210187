# SPDX-License-Identifier: Apache-2.0
"""Job (batch/v1): runs once; its template cannot change, how it runs can.

Source: Kubernetes API reference, JobSpec; "Jobs", "Mutable Scheduling Directives".
"""

from __future__ import annotations

from container_update.model.plan import Action
from container_update.workloads.kind import WorkloadKind


class Job(WorkloadKind):
    """What another template would change is reported; only the rest is written."""

    group, kind = "batch", "Job"
    runs_to_completion = True
    can_change = False
    is_scaled = False
    restart_action = Action.REPLACE
