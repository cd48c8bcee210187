"""Pod (v1) of its own: restarted in place where that is enough, else deleted and created again.

Source: Kubernetes API reference, Pod: of a pod's spec only images can change, and the kubelet
restarts the containers whose image did.
"""

from __future__ import annotations

from collections.abc import Sequence

from container_update.model.objects import Json
from container_update.model.plan import Action, ImageChange
from container_update.workloads import readiness
from container_update.workloads.config_references import Reach, Use
from container_update.workloads.kind import WorkloadKind
from container_update.workloads.pod_status import is_finished
from container_update.workloads.readiness import Baseline, Readiness


class Pod(WorkloadKind):
    """Its own template and its own pod."""

    group, kind = "", "Pod"
    template_path = ()
    is_scaled = False

    def action(self, live: Json, images: Sequence[ImageChange], uses: Sequence[Use]) -> Action:
        """Restart in place where the kubelet then restarts every container that has to."""
        in_place = _is_enough(live, images, uses)
        return Action.RESTART_CONTAINERS if in_place else Action.RECREATE_POD

    def readiness(self, live: Json, pods: Sequence[Json], baseline: Baseline) -> Readiness:
        """Judge a restart in place where the baseline counts restarts, else a new Pod."""
        del pods
        if baseline.restarts:
            return readiness.pod_restarted(live, baseline)
        return readiness.pod_recreated(live, baseline)


def _is_enough(live: Json, images: Sequence[ImageChange], uses: Sequence[Use]) -> bool:
    """The kubelet restarts exactly the containers whose image changes: is that all of them?"""
    if not images or any(change.init for change in images) or is_finished(live):
        return False
    restarted = {change.container for change in images}
    return all(use.reach is not Reach.POD and use.containers <= restarted for use in uses)
