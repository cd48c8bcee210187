# SPDX-License-Identifier: Apache-2.0
"""Job (batch/v1): runs once; its template cannot change.

Source: Kubernetes API reference, Job: ``spec.template`` is immutable.
"""

from __future__ import annotations

from container_update.workloads.kind import WorkloadKind


class Job(WorkloadKind):
    """Reported, never touched."""

    group, kind = "batch", "Job"
    runs_to_completion = True
    can_change = False
    is_scaled = False
