# SPDX-License-Identifier: Apache-2.0
"""Deployments: a ReplicaSet for each template, and rollouts from one to the next.

One pass scales up or down once and writes the status. The events of the ReplicaSets lead to the
next pass.
"""

from __future__ import annotations

from collections.abc import Mapping

from container_update.emulator.clock import stamp
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import pod_state
from container_update.emulator.kubernetes.api_errors import ApiError
from container_update.emulator.kubernetes.controllers.base import Context
from container_update.emulator.kubernetes.controllers.claim import ClaimingController
from container_update.emulator.kubernetes.controllers.workloads import deployment_sets as sets
from container_update.emulator.kubernetes.controllers.workloads import (
    deployment_status as status_rules,
)
from container_update.emulator.kubernetes.controllers.workloads import rollout
from container_update.emulator.kubernetes.objects import (
    annotations_of,
    condition_of,
    is_deleting,
    key_of,
)


class Deployments(ClaimingController):
    """Rolls out the template of every Deployment."""

    resource, kind, owned = "deployments", "Deployment", "replicasets"
    component = "deployment-controller"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._progress: dict[str, float] = {}

    def reconcile(self, deployment: Json) -> None:
        """Scale at most once in one direction, and write the status."""
        _DeploymentPass(self, deployment).act()

    def enqueue(self, event: str, obj: Json, previous: Json | None) -> None:
        """Handle an event of a Deployment; forget a deleted one."""
        super().enqueue(event, obj, previous)
        if event == "DELETED":
            self._progress.pop(obj["metadata"]["uid"], None)

    def is_late(self, deployment: Json) -> bool:
        """Return whether the progress deadline has passed; if not, enqueue a pass at that time."""
        progress = condition_of(deployment, status_rules.PROGRESSING)
        since = self._progress.get(deployment["metadata"]["uid"])
        if progress is None or since is None or not status_rules.has_deadline(deployment):
            return False
        if progress["reason"] in {status_rules.NEW_SET_AVAILABLE, status_rules.TIMED_OUT}:
            return bool(progress["reason"] == status_rules.TIMED_OUT)
        seconds: float = deployment["spec"]["progressDeadlineSeconds"]
        left = since + seconds - self.loop.time()
        if left > 0:
            self.queue.add_after(key_of(deployment), left)
        return left <= 0

    def write(self, deployment: Json, changed: Json) -> Json:
        """Write status and annotations if they differ, and remember the time of progress."""
        if changed == deployment:
            return deployment
        old = condition_of(deployment, status_rules.PROGRESSING)
        new = condition_of(changed, status_rules.PROGRESSING)
        if new is not None and new is not old and new["status"] != "False":
            self._progress[deployment["metadata"]["uid"]] = self.loop.time()
        return self.registry.update(self.resource, *key_of(changed), changed, subresource="status")


class _DeploymentPass:
    """One pass over a Deployment and its ReplicaSets."""

    def __init__(self, controller: Deployments, deployment: Json) -> None:
        self._controller = controller
        self._registry = controller.registry
        self._deployment = deployment
        self._sets = sorted(
            controller.claim(deployment), key=lambda obj: str(obj["metadata"]["creationTimestamp"])
        )

    def act(self) -> None:
        """Scale what is next to be scaled, and write the status."""
        deployment = self._deployment
        if is_deleting(deployment):
            self._write_counts()
            return
        self._write_pause()
        if deployment["spec"].get("paused") or self._was_scaled():
            self._find_new()
            self._scale()
            self._write_counts()
        elif rollout.is_rolling(deployment):
            self._roll()
        else:
            self._recreate()

    # --- ReplicaSets ----------------------------------------------------------------------------

    @property
    def _new(self) -> Json | None:
        """The ReplicaSet with the Deployment's template, or None."""
        template = self._deployment["spec"]["template"]
        return next(
            (entry for entry in self._sets if sets.template_without_hash(entry) == template), None
        )

    @property
    def _old(self) -> list[Json]:
        new = self._new
        return [entry for entry in self._sets if entry is not new]

    def _find_new(self, *, create: bool = False) -> Json | None:
        """Return the new ReplicaSet and update its annotations; *create* it if it is missing."""
        new = self._new
        revision = max((sets.revision_of(entry) for entry in self._old), default=0) + 1
        if new is None:
            return self._create_new(revision) if create else None
        annotations = sets.inherited_annotations(self._deployment, new, revision)
        if annotations != new["metadata"].get("annotations"):
            return self._put(sets.annotate(new, annotations))
        text = f'Found new replica set "{sets.name_of(new)}"'
        self._write_revision(sets.revision_of(new), status_rules.NEW_SET_FOUND, text)
        return new

    def _create_new(self, revision: int) -> Json:
        deployment = self._deployment
        size = rollout.next_size_of_new(deployment, self._sets, None)
        body = sets.new_set(deployment, size, revision)
        try:
            new = self._registry.create("replicasets", body["metadata"]["namespace"], body)
        except ApiError as error:
            if error.reason == "AlreadyExists":
                self._count_collision()
            raise
        self._sets.append(new)
        if size:
            self._record_scaling(new, 0, size)
        text = f'Created new replica set "{sets.name_of(new)}"'
        self._write_revision(revision, status_rules.NEW_SET_CREATED, text)
        return new

    def _resize(self, entry: Json, size: int) -> bool:
        """Set the ReplicaSet's replicas; return whether that is another number than before."""
        deployment, before = self._deployment, rollout.replicas(entry)
        annotations = {
            **annotations_of(entry),
            rollout.DESIRED: str(rollout.replicas(deployment)),
            rollout.MAX: str(rollout.max_replicas(deployment)),
        }
        changed = sets.annotate(entry, annotations)
        self._put({**changed, "spec": {**changed["spec"], "replicas": size}})
        if size != before:
            self._record_scaling(entry, before, size)
        return size != before

    def _put(self, entry: Json) -> Json:
        written = self._registry.update("replicasets", *key_of(entry), entry)
        self._sets = [
            written if other["metadata"]["uid"] == written["metadata"]["uid"] else other
            for other in self._sets
        ]
        return written

    # --- strategies -----------------------------------------------------------------------------

    def _roll(self) -> None:
        new = self._find_new(create=True)
        if new is None:
            raise AssertionError("a new ReplicaSet was requested and none was created")
        size = rollout.next_size_of_new(self._deployment, self._sets, new)
        scaled = size != rollout.replicas(new) and self._resize(new, size)
        if not scaled:
            sizes = rollout.next_sizes_of_old(self._deployment, new, self._old)
            scaled = self._resize_old(sizes)
        if not scaled:
            self._clean_up_when_complete()
        self._write_progress()

    def _recreate(self) -> None:
        self._find_new()
        scaled = self._resize_old({sets.name_of(entry): 0 for entry in self._old})
        if not scaled and not self._old_pods_run():
            new = self._find_new(create=True)
            if new is not None and rollout.replicas(new) != rollout.replicas(self._deployment):
                self._resize(new, rollout.replicas(self._deployment))
            self._clean_up_when_complete()
        self._write_progress()

    def _scale(self) -> None:
        """Scale the ReplicaSets to a changed number of replicas."""
        deployment, new = self._deployment, self._new
        active = [entry for entry in self._sets if rollout.replicas(entry)]
        if len(active) <= 1:
            latest = active or ([new] if new is not None else self._sets[-1:])
            for entry in latest:
                if rollout.replicas(entry) != rollout.replicas(deployment):
                    self._resize(entry, rollout.replicas(deployment))
        elif new is not None and sets.is_full(deployment, new):
            self._resize_old({sets.name_of(entry): 0 for entry in self._old})
        elif rollout.is_rolling(deployment):
            sizes = rollout.proportional_sizes(deployment, active)
            for entry in active:
                self._resize(entry, sizes[sets.name_of(entry)])

    def _resize_old(self, sizes: Mapping[str, int]) -> bool:
        scaled = False
        for entry in self._old:
            size = sizes.get(sets.name_of(entry), rollout.replicas(entry))
            if size != rollout.replicas(entry):
                scaled = self._resize(entry, size) or scaled
        return scaled

    def _was_scaled(self) -> bool:
        """Return whether the number of replicas has changed since the ReplicaSets were scaled."""
        desired = str(rollout.replicas(self._deployment))
        return any(
            rollout.replicas(entry)
            and annotations_of(entry).get(rollout.DESIRED, desired) != desired
            for entry in self._sets
        )

    def _old_pods_run(self) -> bool:
        return any(
            not pod_state.is_finished(pod)
            for entry in self._old
            for pod in self._controller.index.controlled_objects("pods", entry["metadata"]["uid"])
        )

    def _clean_up_when_complete(self) -> None:
        """Delete the oldest ReplicaSets beyond the history limit."""
        deployment = self._deployment
        if not status_rules.is_complete(deployment, deployment.get("status", {})):
            return
        old = [entry for entry in self._old if not is_deleting(entry)]
        old.sort(key=sets.revision_of)
        surplus = len(old) - deployment["spec"].get("revisionHistoryLimit", 10)
        for entry in old[: max(0, surplus)]:
            if sets.is_empty(entry):
                self._registry.delete("replicasets", *key_of(entry))

    # --- status and events ----------------------------------------------------------------------

    def _write_progress(self) -> None:
        deployment = self._deployment
        late = self._controller.is_late(deployment)
        status = status_rules.progress_status(deployment, self._new, self._sets, late, stamp())
        self._write({**deployment, "status": status})
        self._controller.is_late(self._deployment)

    def _write_counts(self) -> None:
        status = status_rules.counts(self._deployment, self._new, self._sets, stamp())
        self._write({**self._deployment, "status": status})

    def _write_pause(self) -> None:
        """Set the Progressing condition of a rollout that was paused or resumed."""
        deployment = self._deployment
        status, paused = deployment.get("status", {}), bool(deployment["spec"].get("paused"))
        progress = condition_of(deployment, status_rules.PROGRESSING)
        reason = progress["reason"] if progress is not None else ""
        if not status_rules.has_deadline(deployment) or reason == status_rules.TIMED_OUT:
            return
        if paused == (reason == status_rules.PAUSED):
            return
        reason, text = (
            (status_rules.PAUSED, "Deployment is paused")
            if paused
            else (status_rules.RESUMED, "Deployment is resumed")
        )
        new = status_rules.condition(status_rules.PROGRESSING, "Unknown", reason, text, stamp())
        self._write({**deployment, "status": status_rules.with_condition(status, new)})

    def _write_revision(self, revision: int, reason: str, text: str) -> None:
        """Write the revision into the annotations, and the ReplicaSet into the conditions."""
        deployment = self._deployment
        annotations = {**annotations_of(deployment), sets.REVISION: str(revision)}
        status = deployment.get("status", {})
        progress = condition_of(deployment, status_rules.PROGRESSING)
        is_new = reason == status_rules.NEW_SET_CREATED or progress is None
        if status_rules.has_deadline(deployment) and is_new:
            condition = status_rules.condition(
                status_rules.PROGRESSING, "True", reason, text, stamp()
            )
            status = status_rules.with_condition(status, condition)
        self._write({**sets.annotate(deployment, annotations), "status": status})

    def _count_collision(self) -> None:
        """Count a taken name, so that the next one has another hash."""
        status = self._deployment.get("status", {})
        status = {**status, "collisionCount": status.get("collisionCount", 0) + 1}
        self._write({**self._deployment, "status": status})

    def _write(self, changed: Json) -> None:
        self._deployment = self._controller.write(self._deployment, changed)

    def _record_scaling(self, entry: Json, before: int, after: int) -> None:
        direction = "up" if after > before else "down"
        text = f"Scaled {direction} replica set {sets.name_of(entry)} from {before} to {after}"
        controller = self._controller
        controller.record.normal(controller.component, self._deployment, "ScalingReplicaSet", text)
