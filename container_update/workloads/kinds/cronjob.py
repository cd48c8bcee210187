"""CronJob (batch/v1): its next Job has the new template, running Jobs finish.

Source: Kubernetes API reference, CronJob, JobTemplateSpec.
"""

from __future__ import annotations

from collections.abc import Sequence

from container_update.model.objects import Json
from container_update.model.plan import Action, ImageChange
from container_update.workloads.config_references import Use
from container_update.workloads.kind import WorkloadKind


class CronJob(WorkloadKind):
    """Its template is replaced, and nothing restarts."""

    group, kind = "batch", "CronJob"
    template_path = ("spec", "jobTemplate", "spec", "template")
    runs_to_completion = True
    is_scaled = False

    def action(self, live: Json, images: Sequence[ImageChange], uses: Sequence[Use]) -> Action:
        """Replace the template."""
        del live, images, uses
        return Action.TEMPLATE
