# SPDX-License-Identifier: Apache-2.0
"""CronJob (batch/v1): its next Job has the new template, running Jobs finish.

Source: Kubernetes API reference, CronJob, JobTemplateSpec.
"""

from __future__ import annotations

from collections.abc import Iterator

from container_update.model.objects import Json
from container_update.model.plan import Action
from container_update.workloads.kind import WorkloadKind


class CronJob(WorkloadKind):
    """Its template is replaced, and nothing restarts."""

    group, kind = "batch", "CronJob"
    template_path = ("spec", "jobTemplate", "spec", "template")
    runs_to_completion = True
    is_scaled = False
    restart_action = Action.TEMPLATE

    def notes(self, live: Json) -> Iterator[str]:
        """Yield a note that nothing shows yet whether its pods can start."""
        del live
        yield "its next Job is the first with the new template, and is not waited for"
