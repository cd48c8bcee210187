# SPDX-License-Identifier: Apache-2.0
"""Pod (v1) of its own: restarted in place where that is enough, else deleted and created again.

Source: Kubernetes API reference, Pod: of a pod's spec only images can change, and the kubelet
restarts the containers whose image did.
"""

from __future__ import annotations

from collections.abc import Sequence

from container_update.model.objects import Json
from container_update.model.plan import VOLUME, Action, ImageChange
from container_update.workloads import pod_status
from container_update.workloads.config_references import Reach, Use
from container_update.workloads.kind import WorkloadKind
from container_update.workloads.readiness import DONE, Baseline, Counts, Readiness, RolloutState


class Pod(WorkloadKind):
    """Its own template and its own pod."""

    group, kind = "", "Pod"
    template_path = ()
    is_scaled = False

    def action(self, live: Json, images: Sequence[ImageChange], uses: Sequence[Use]) -> Action:
        """Restart in place where the kubelet then restarts every container that has to."""
        changed = {change.container for change in images}
        in_place = (
            images
            and not any(change.init or change.container.startswith(VOLUME) for change in images)
            and not pod_status.is_finished(live)
            and all(use.reach is not Reach.POD and use.containers <= changed for use in uses)
        )
        return Action.RESTART_CONTAINERS if in_place else Action.RECREATE_POD

    def counts(self, live: Json) -> Counts:
        """See WorkloadKind: it has no counts in its status, and is its only pod."""
        ready = int(pod_status.is_ready(live))
        return Counts(desired=1, updated=1, ready=ready, available=ready, total=1)

    def readiness(self, live: Json, pods: Sequence[Json], baseline: Baseline) -> Readiness:
        """Judge whether it was created again, and is Ready or has ended."""
        del pods
        return judge_new_pod(live, baseline)


def judge_restart(live: Json, baseline: Baseline) -> Readiness:
    """Judge whether every container of the baseline has restarted, and the Pod is Ready or over."""
    phase = pod_status.phase(live)
    if pod_status.is_deleting(live) or phase == "Failed":
        return Readiness(
            RolloutState.FAILED, f"pod {live['metadata']['name']} is gone or has failed"
        )
    statuses = pod_status.container_statuses(live)
    counts = {status["name"]: int(status.get("restartCount", 0)) for status in statuses}
    waiting = [name for name, old in baseline.restarts.items() if counts.get(name, 0) <= old]
    if trouble := pod_status.problem(live, baseline.restarts):
        return Readiness(RolloutState.FAILING, trouble, pod_status.patience(live))
    if waiting:
        return Readiness(RolloutState.PROGRESSING, f"container {waiting[0]} has not restarted yet")
    if phase == "Succeeded" or pod_status.is_ready(live):
        return DONE
    return Readiness(RolloutState.PROGRESSING, pod_status.waiting_for([live], baseline.restarts))


def judge_new_pod(live: Json | None, baseline: Baseline) -> Readiness:
    """Judge whether there is a new Pod of that name, and it is Ready or has ended."""
    if live is None:
        return Readiness(RolloutState.PROGRESSING, "the new pod is not there yet")
    if live["metadata"]["uid"] in baseline.uids:
        return Readiness(RolloutState.PROGRESSING, "the old pod is still there")
    phase = pod_status.phase(live)
    if phase == "Failed":
        reason = live["status"].get("reason") or pod_status.problem(live)
        why = reason or "it ended with an error"
        return Readiness(RolloutState.FAILED, f"pod {live['metadata']['name']} failed: {why}")
    if phase == "Succeeded" or pod_status.is_ready(live):
        return DONE
    if trouble := pod_status.problem(live):
        return Readiness(RolloutState.FAILING, trouble, pod_status.patience(live))
    return Readiness(RolloutState.PROGRESSING, pod_status.waiting_for([live]))
