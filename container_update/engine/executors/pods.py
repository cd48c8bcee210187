# SPDX-License-Identifier: Apache-2.0
"""Replaces single pods of a workload; gives a workload another number of pods."""

from __future__ import annotations

import logging
from dataclasses import replace

from container_update.cluster.waiting import NotReadyError
from container_update.engine import claims
from container_update.engine.context import StepExecutor
from container_update.engine.writer import ChangedByAnotherError
from container_update.model.errors import ClusterError
from container_update.model.objects import ObjectKey, instance_of
from container_update.model.outcome import Reverted
from container_update.model.plan import Action
from container_update.planning.steps import ManifestStep, PodsStep, ScaleStep
from container_update.workloads.pod_status import is_deleting, problem
from container_update.workloads.readiness import Baseline, replicas

LOG = logging.getLogger(__name__)


class PodsExecutor(StepExecutor[PodsStep]):
    """See :class:`~container_update.engine.context.StepExecutor`."""

    def apply(self, step: PodsStep, deadline: float) -> None:
        """Delete the pods and wait until all pods of the workload are Ready, without these.

        Deleted, not evicted: a disruption budget counts a broken pod as gone, and would forbid it.
        A step that is read from the cluster may name foreign pods, which stay. Another pod that is
        being deleted already is not waited for.
        """
        live, gone = self.informer.get(step.key), frozenset(uid for _, uid in step.pods)
        abandoned = self.abandoned_pods(step.old) - gone
        own = self.informer.pods_of(live) if live else ()
        if self.writer.resumed:  # their back-off may be longer than another try has time
            gone |= {pod["metadata"]["uid"] for pod in own if problem(pod)}
        if live is not None and not gone.isdisjoint(pod["metadata"]["uid"] for pod in own):
            self.writer.try_pod(live)
        for pod in own:
            if (uid := pod["metadata"]["uid"]) not in gone:
                continue
            try:
                self.cluster.delete(ObjectKey.of(pod), uid=uid)
            except ClusterError as error:
                if error.status != 409:
                    raise  # 409: a pod of this name with another UID has taken its place
        self.rollout.expect(step.key, lambda live: step.loss(step.old, live))
        self.rollout.until_new(step.key, Baseline(gone, abandoned=abandoned), deadline)

    def revert(self, step: PodsStep, deadline: float) -> Reverted:
        """Wait until what replaced the pods is as ready: the template is the one they had.

        Where it does not get so, because that template is wrong, nothing could be put back by
        trying again, and the next operation has to begin: it may put the template right.
        """
        live = self.informer.get(step.key) or step.old
        try:
            self.rollout.until_new(step.key, self.as_before(step, live), deadline)
        except NotReadyError as error:
            LOG.warning("%s: %s: %s", step.key, Reverted.NOT_READY.value, error)
            return Reverted.NOT_READY
        return Reverted.UNCHANGED


class ScaleExecutor(StepExecutor[ScaleStep]):
    """See :class:`~container_update.engine.context.StepExecutor`."""

    def apply(self, step: ScaleStep, deadline: float) -> None:
        """Write the number of pods and wait until so many are Ready, and no more are there.

        It fails as soon as all pods that were added are in trouble, whatever the others do.
        """
        live = self.cluster.get(step.key) if step.is_of_new_object else self.writer.read(step)
        if live is None:
            raise ChangedByAnotherError(f"{step.key} was deleted by another client")
        if replicas(live) not in (replicas(step.old), step.replicas):
            raise ChangedByAnotherError(
                f"{step.key}: expected {replicas(step.old)} pods, as when the plan was made, found "
                f"{replicas(live)}: another client has scaled it meanwhile, plan the change again"
            )
        abandoned = self.abandoned_pods(live)
        present = Baseline.of(self.informer.pods_of(live)).uids - abandoned
        if step.is_scale_in:
            live = claims.keep_when_scaled(self.writer, live)
        self.expect(step, self.writer.apply(step, live))
        before = Baseline(present, allowed=present, abandoned=abandoned)
        self.rollout.until_new(step.key, before, deadline)
        self._restore_policy(step)

    def follow(
        self, removal: ManifestStep, planned: int, deadline: float, *, also_none: bool
    ) -> bool:
        """Give the Deployment that takes another one's place as many pods as that has now, and wait
        for them: the number in the plan may be hours old. Tell whether it was another number.

        :param planned: with how many it was created; a number that another client has given it is
            not lowered.
        :param also_none: where it has none another client has stopped it, and the new one is to
            have none either.
        """
        key = replace(removal.key, name=removal.successor)
        old, new = self.cluster.get(removal.key), self.cluster.get(key)
        if old is None or new is None or is_deleting(old) or is_deleting(new):
            return False
        if instance_of(new) != (self.writer.instance_id or None):  # a journal may name any
            return False
        has, needs = replicas(new), replicas(old)
        if needs == has or not (needs or also_none) or (needs < has != planned):
            return False
        self.apply(ScaleStep(key, Action.SCALE, new, replicas=needs), deadline)
        return True

    def revert(self, step: ScaleStep, deadline: float) -> Reverted:
        """Write the number of pods that there were before."""
        live = self.cluster.get(step.key)
        if step.is_of_new_object:
            if live is None:
                return Reverted.UNCHANGED
            step = replace(step, before={**live, "spec": step.old["spec"]})  # labelled meanwhile
        if live is None or is_deleting(live) or step.is_of_others(live):
            return Reverted.OF_OTHERS
        before = self.as_before(step, live)
        if not step.is_scale_in and step.has_traces(live):
            live = claims.keep_when_scaled(self.writer, live)
        reverted = self.restore(step, live)
        if reverted is not Reverted.OF_OTHERS:
            self.rollout.until_new(step.key, before, deadline)
            self._restore_policy(step)
        return reverted

    def _restore_policy(self, step: ScaleStep) -> None:
        live = self.cluster.get(step.key)
        if live is not None and not is_deleting(live):
            claims.restore_policy(self.writer, live, step.old)
