"""Deployments: a ReplicaSet for each template, and the way from one to the next.

One look does one move (a scale up, or a scale down) and then writes the status. The ReplicaSets'
own changes bring the next look.
"""

from __future__ import annotations

from collections.abc import Mapping

from container_update.emulator.clock import stamp
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import pod_state
from container_update.emulator.kubernetes.api_errors import ApiError
from container_update.emulator.kubernetes.controllers.base import Context, Handler, Key, key_of
from container_update.emulator.kubernetes.controllers.claim import ClaimingController
from container_update.emulator.kubernetes.controllers.workloads import deployment_sets as sets
from container_update.emulator.kubernetes.controllers.workloads import deployment_status as says
from container_update.emulator.kubernetes.controllers.workloads import rollout
from container_update.emulator.kubernetes.ownership import is_deleting

COMPONENT = "deployment-controller"


class Deployments(ClaimingController):
    """Rolls every Deployment to its template."""

    resource, kind, owned = "deployments", "Deployment", "replicasets"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._progress: dict[str, float] = {}

    def handlers(self) -> Mapping[str, Handler]:
        """Its own objects, and ReplicaSets."""
        return {"deployments": self.enqueue, "replicasets": self.owned_changed}

    def reconcile(self, key: Key) -> None:
        """One look, and at most one move."""
        deployment = self.registry.get(self.resource, *key)
        if deployment is not None:
            _Look(self, deployment).act()

    def enqueue(self, event: str, obj: Json, previous: Json | None) -> None:
        """Look at it; forget a deleted one."""
        super().enqueue(event, obj, previous)
        if event == "DELETED":
            self._progress.pop(obj["metadata"]["uid"], None)

    def is_late(self, deployment: Json) -> bool:
        """The progress deadline is over. Where it is not, there will be a look when it is."""
        progress = says.condition_of(deployment.get("status", {}), says.PROGRESSING)
        since = self._progress.get(deployment["metadata"]["uid"])
        if progress is None or since is None or not says.has_deadline(deployment):
            return False
        if progress["reason"] in {says.NEW_SET_AVAILABLE, says.TIMED_OUT}:
            return bool(progress["reason"] == says.TIMED_OUT)
        seconds: float = deployment["spec"]["progressDeadlineSeconds"]
        left = since + seconds - self.loop.time()
        if left > 0:
            self.queue.add_after(key_of(deployment), left)
        return left <= 0

    def write(self, deployment: Json, changed: Json) -> Json:
        """Write status and annotations of *changed* where they differ; note when progress came."""
        if changed == deployment:
            return deployment
        old = says.condition_of(deployment.get("status", {}), says.PROGRESSING)
        new = says.condition_of(changed["status"], says.PROGRESSING)
        if new is not None and new is not old and new["status"] != "False":
            self._progress[deployment["metadata"]["uid"]] = self.loop.time()
        namespace, name = key_of(changed)
        return self.registry.update(self.resource, namespace, name, changed, subresource="status")


class _Look:
    """One look at a Deployment: what it and its ReplicaSets are now."""

    def __init__(self, controller: Deployments, deployment: Json) -> None:
        self._controller = controller
        self._registry = controller.registry
        self._deployment = deployment
        self._sets = sorted(
            controller.claim(deployment), key=lambda obj: str(obj["metadata"]["creationTimestamp"])
        )

    def act(self) -> None:
        """Do the one move that is due."""
        deployment = self._deployment
        if is_deleting(deployment):
            self._tell_numbers()
            return
        self._tell_pause()
        if deployment["spec"].get("paused") or self._was_scaled():
            self._find_new()
            self._scale()
            self._tell_numbers()
        elif rollout.is_rolling(deployment):
            self._roll()
        else:
            self._recreate()

    # --- the sets -------------------------------------------------------------------------------

    @property
    def _new(self) -> Json | None:
        """The ReplicaSet with the Deployment's template."""
        wanted = self._deployment["spec"]["template"]
        return next(
            (entry for entry in self._sets if sets.template_without_hash(entry) == wanted), None
        )

    @property
    def _old(self) -> list[Json]:
        new = self._new
        return [entry for entry in self._sets if entry is not new]

    def _find_new(self, *, create: bool = False) -> Json | None:
        """The new ReplicaSet with its annotations up to date; made where missing and asked for."""
        new = self._new
        revision = max((sets.revision_of(entry) for entry in self._old), default=0) + 1
        if new is None:
            return self._make_new(revision) if create else None
        annotations = sets.inherited_annotations(self._deployment, new, revision)
        if annotations != new["metadata"].get("annotations"):
            return self._put(sets.annotated(new, annotations))
        text = f'Found new replica set "{sets.name_of(new)}"'
        self._tell_revision(sets.revision_of(new), says.NEW_SET_FOUND, text)
        return new

    def _make_new(self, revision: int) -> Json:
        deployment = self._deployment
        size = rollout.next_size_of_new(deployment, self._sets, None)
        body = sets.new_set(deployment, size, revision)
        try:
            new = self._registry.create("replicasets", body["metadata"]["namespace"], body)
        except ApiError as error:
            if error.reason == "AlreadyExists":
                self._tell_collision()
            raise
        self._sets.append(new)
        if size:
            self._news("up", new, 0, size)
        text = f'Created new replica set "{sets.name_of(new)}"'
        self._tell_revision(revision, says.NEW_SET_CREATED, text)
        return new

    def _resize(self, entry: Json, size: int) -> bool:
        """Ask the ReplicaSet for *size* pods; whether that is another number than before."""
        deployment, before = self._deployment, rollout.replicas(entry)
        annotations = {
            **(entry["metadata"].get("annotations") or {}),
            rollout.DESIRED: str(rollout.replicas(deployment)),
            rollout.MOST: str(rollout.most(deployment)),
        }
        changed = sets.annotated(entry, annotations)
        self._put({**changed, "spec": {**changed["spec"], "replicas": size}})
        if size != before:
            self._news("up" if size > before else "down", entry, before, size)
        return size != before

    def _put(self, entry: Json) -> Json:
        written = self._registry.update("replicasets", *key_of(entry), entry)
        self._sets = [
            written if other["metadata"]["uid"] == written["metadata"]["uid"] else other
            for other in self._sets
        ]
        return written

    # --- the moves ------------------------------------------------------------------------------

    def _roll(self) -> None:
        new = self._find_new(create=True)
        if new is None:
            raise AssertionError("a new ReplicaSet was asked for and none was made")
        size = rollout.next_size_of_new(self._deployment, self._sets, new)
        moved = size != rollout.replicas(new) and self._resize(new, size)
        if not moved:
            sizes = rollout.next_sizes_of_old(self._deployment, new, self._old)
            moved = self._resize_old(sizes)
        if not moved:
            self._clean_up_when_complete()
        self._tell_progress()

    def _recreate(self) -> None:
        self._find_new()
        moved = self._resize_old({sets.name_of(entry): 0 for entry in self._old})
        if not moved and not self._old_pods_run():
            new = self._find_new(create=True)
            if new is not None and rollout.replicas(new) != rollout.replicas(self._deployment):
                self._resize(new, rollout.replicas(self._deployment))
            self._clean_up_when_complete()
        self._tell_progress()

    def _scale(self) -> None:
        """Bring the ReplicaSets to a number of replicas that was changed."""
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
        moved = False
        for entry in self._old:
            size = sizes.get(sets.name_of(entry), rollout.replicas(entry))
            if size != rollout.replicas(entry):
                moved = self._resize(entry, size) or moved
        return moved

    def _was_scaled(self) -> bool:
        """The number of replicas is not the one that the ReplicaSets were sized for."""
        wanted = str(rollout.replicas(self._deployment))
        return any(
            rollout.replicas(entry)
            and (entry["metadata"].get("annotations") or {}).get(rollout.DESIRED, wanted) != wanted
            for entry in self._sets
        )

    def _old_pods_run(self) -> bool:
        return any(
            not pod_state.is_finished(pod)
            for entry in self._old
            for pod in self._controller.index.controlled("pods", entry["metadata"]["uid"])
        )

    def _clean_up_when_complete(self) -> None:
        """Delete the oldest ReplicaSets beyond the history limit."""
        deployment = self._deployment
        if not says.is_complete(deployment, deployment.get("status", {})):
            return
        staying = [entry for entry in self._old if not is_deleting(entry)]
        old = sorted(staying, key=sets.revision_of)
        surplus = len(old) - deployment["spec"].get("revisionHistoryLimit", 10)
        for entry in old[: max(0, surplus)]:
            if sets.is_empty(entry):
                self._registry.delete("replicasets", *key_of(entry))

    # --- what is told ---------------------------------------------------------------------------

    def _tell_progress(self) -> None:
        deployment = self._deployment
        late = self._controller.is_late(deployment)
        status = says.progressed(deployment, self._new, self._sets, late, stamp())
        self._write({**deployment, "status": status})
        self._controller.is_late(self._deployment)

    def _tell_numbers(self) -> None:
        deployment = self._deployment
        status = says.counts(deployment, self._new, self._sets, stamp())
        self._write({**deployment, "status": status})

    def _tell_pause(self) -> None:
        """Say in the Progressing condition that the rollout was paused or goes on."""
        deployment = self._deployment
        status, paused = deployment.get("status", {}), bool(deployment["spec"].get("paused"))
        progress = says.condition_of(status, says.PROGRESSING)
        reason = progress["reason"] if progress is not None else ""
        if not says.has_deadline(deployment) or reason == says.TIMED_OUT:
            return
        if paused == (reason == says.PAUSED):
            return
        reason, text = (
            (says.PAUSED, "Deployment is paused")
            if paused
            else (says.RESUMED, "Deployment is resumed")
        )
        told = says.condition(says.PROGRESSING, "Unknown", reason, text, stamp())
        self._write({**deployment, "status": says.with_condition(status, told)})

    def _tell_revision(self, revision: int, reason: str, text: str) -> None:
        """Write the revision into the Deployment's annotations, and that there is a ReplicaSet."""
        deployment = self._deployment
        given = deployment["metadata"].get("annotations") or {}
        annotations = {**given, sets.REVISION: str(revision)}
        status = deployment.get("status", {})
        progress = says.condition_of(status, says.PROGRESSING)
        is_news = reason == says.NEW_SET_CREATED or progress is None
        if says.has_deadline(deployment) and is_news:
            told = says.condition(says.PROGRESSING, "True", reason, text, stamp())
            status = says.with_condition(status, told)
        self._write({**sets.annotated(deployment, annotations), "status": status})

    def _tell_collision(self) -> None:
        """The name that the template's hash gives is taken: another hash next time."""
        deployment = self._deployment
        status = deployment.get("status", {})
        taken = {**status, "collisionCount": status.get("collisionCount", 0) + 1}
        self._write({**deployment, "status": taken})

    def _write(self, changed: Json) -> None:
        self._deployment = self._controller.write(self._deployment, changed)

    def _news(self, way: str, entry: Json, before: int, after: int) -> None:
        text = f"Scaled {way} replica set {sets.name_of(entry)} from {before} to {after}"
        self._controller.record.normal(COMPONENT, self._deployment, "ScalingReplicaSet", text)
