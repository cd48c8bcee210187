# SPDX-License-Identifier: Apache-2.0
"""Hands pods over from one Deployment to another one, and back; none of them restarts.

The other Deployment is created paused, so that it adopts ReplicaSets and starts nothing. The first
one is deleted and its ReplicaSets are orphaned. When their new owner has adopted them it goes on:
its template is theirs, so its controller finds them to be current. After a kill at any point the
same sequence goes on from the objects that exist, in either direction.

Source: Kubernetes documentation, "Use Cascading Deletion", orphans; "Deployments", pausing.
"""

from __future__ import annotations

from container_update.cluster.waiting import NotReadyError
from container_update.engine.context import StepExecutor
from container_update.engine.writer import ChangedByAnotherError
from container_update.model.objects import Collection, Json, ObjectKey, instance_of
from container_update.model.outcome import Reverted
from container_update.planning.comparison import live_objects
from container_update.planning.release_labels import selector_of
from container_update.planning.steps import ManifestStep
from container_update.planning.steps.new_objects import new_object
from container_update.workloads import ownership
from container_update.workloads.kind import REPLICA_SET
from container_update.workloads.readiness import DONE, Readiness, RolloutState
from container_update.workloads.traffic import matches

_REVISION = "deployment.kubernetes.io/revision"


class HandOverExecutor(StepExecutor[ManifestStep]):
    """See :class:`~container_update.engine.context.StepExecutor`."""

    def apply(self, step: ManifestStep, deadline: float) -> None:
        """Hand the pods over, and wait until their new owner says that all is done."""
        giver = self._read_made(step, step.giver, deadline)
        taker = self._read_made(step, step.key, deadline)
        if giver is None and taker is None:
            raise ChangedByAnotherError(f"{step.giver} was changed or deleted by another client")
        self._move(step, giver, taker, deadline)
        self.rollout.until_ready(step.key, deadline)

    def revert(self, step: ManifestStep, deadline: float) -> Reverted:
        """Hand the pods back to the Deployment that had them."""
        giver = self._read_made(step, step.key, deadline)
        taker = self._read_made(step, step.giver, deadline)
        if giver is None and (taker is None or not taker["spec"].get("paused")):
            return Reverted.UNCHANGED
        self._move(step, giver, taker, deadline)
        return Reverted.RESTORED

    def _read_made(self, step: ManifestStep, key: ObjectKey, deadline: float) -> Json | None:
        """Return a Deployment if it is one of this step's two, else None."""
        live = self.writer.wait_until_settled(key, deadline)
        if live is None or not step.is_made(live):
            return None
        return live if instance_of(live) == (self.writer.instance_id or None) else None

    def _move(
        self, step: ManifestStep, giver: Json | None, taker: Json | None, deadline: float
    ) -> None:
        """Move the pods from one Deployment to another; None: gone already, or not there yet."""
        if taker is None:
            assert giver is not None, "one of them is there"
            taker = self.writer.create_new(_build_paused(step, giver), step.is_made, deadline)
        self.rollout.expect_nothing(ObjectKey.of(taker))
        self.informer.observe(taker)
        if giver is not None:
            self._refuse_other_template(giver, taker)
            self._refuse_rivals(giver, taker)
            self.writer.delete(giver, deadline, orphans=True)
        self._until_adopted(taker, deadline)
        resumed = self.writer.edit(ObjectKey.of(taker), taker, _unpause)
        self.informer.observe(resumed)
        if ObjectKey.of(taker) == step.key:
            self.expect(step, resumed)

    def _refuse_other_template(self, giver: Json, taker: Json) -> None:
        """Raise NotReadyError where the new owner would replace the pods."""
        if giver["spec"]["template"] != taker["spec"]["template"]:
            self.writer.delete(taker)
            one, other = map(ObjectKey.of, (giver, taker))
            raise NotReadyError(
                f"{other}: expected the pod template of {one}, found another one: an admission "
                "webhook of the API server, or another client, has changed it, and the pods would "
                "restart; use a rolling update, or give the new Deployment a name of its own"
            )

    def _refuse_rivals(self, giver: Json, taker: Json) -> None:
        """Raise NotReadyError where another Deployment would adopt the ReplicaSet, and scale it
        down: the plan knows only the Deployments of the VNF."""
        both = {body["metadata"]["uid"] for body in (giver, taker)}
        key, pods = ObjectKey.of(taker), giver["spec"]["template"]

        def rival(body: Json) -> Json | None:
            other = body["metadata"]["uid"] not in both and matches(selector_of(body), pods)
            return body if other else None

        for body in self.cluster.list(Collection.of(key), rival).items:
            self.writer.delete(taker)
            raise NotReadyError(
                f"{key}: expected no other Deployment that selects its pods, found "
                f"{ObjectKey.of(body)}, which would take its ReplicaSet: give the pods of one "
                "of them another label"
            )

    def _until_adopted(self, taker: Json, deadline: float) -> None:
        """Wait until all ReplicaSets with the labels of the pods have this owner."""
        key, selector = ObjectKey.of(taker), selector_of(taker)
        sets = Collection(*REPLICA_SET, key.namespace)

        def judge(live: Json) -> Readiness:
            owned = [each for each in self.informer.all(sets) if matches(selector, each)]
            if {ownership.controller_uid(each) for each in owned} == {live["metadata"]["uid"]}:
                return DONE
            return Readiness(RolloutState.PROGRESSING, "its ReplicaSet is not adopted yet")

        self.rollout.until(key, judge, deadline)


def _build_paused(step: ManifestStep, giver: Json) -> Json:
    """Return the new Deployment, made from the old one as the server has stored it."""
    body = new_object(giver, step.key.namespace, {})
    is_back = giver["metadata"]["name"] == step.key.name
    metadata = body["metadata"]
    metadata["annotations"].pop(_REVISION, None)
    metadata["annotations"].pop(live_objects.NAME_ANNOTATION, None)
    metadata.pop("ownerReferences", None)  # the run that created it gives the new one its own
    metadata["name"] = step.key.name
    if is_back:
        live_objects.rename(body, step.giver.name)
    body["spec"]["paused"] = True
    return body


def _unpause(live: Json) -> Json:
    return {**live, "spec": {n: value for n, value in live["spec"].items() if n != "paused"}}
