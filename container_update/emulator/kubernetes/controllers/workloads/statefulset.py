"""StatefulSets: numbered pods, one after the other, each with its name.

As with the real one, a pod that never gets ready blocks an ordered StatefulSet, even when its
template is corrected: somebody has to delete that pod (documented there as "forced rollback").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import pod_state
from container_update.emulator.kubernetes.controllers.base import Context, Handler, Key, key_of
from container_update.emulator.kubernetes.controllers.claim import ClaimingController
from container_update.emulator.kubernetes.controllers.workloads.revisions import (
    REVISION_LABEL,
    Revisions,
    template_of,
)
from container_update.emulator.kubernetes.controllers.workloads.templates import pod_of
from container_update.emulator.kubernetes.ownership import is_deleting, labels_of

COMPONENT = "statefulset-controller"
HASH_LABEL = "controller.kubernetes.io/hash"


class StatefulSets(ClaimingController):
    """Keeps the pods of every StatefulSet, and rolls them."""

    resource, kind, owned = "statefulsets", "StatefulSet", "pods"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._revisions = Revisions(context.registry, context.index, HASH_LABEL)

    def handlers(self) -> Mapping[str, Handler]:
        """Its own objects, and pods."""
        return {"statefulsets": self.enqueue, "pods": self.owned_changed}

    def reconcile(self, key: Key) -> None:
        """One look; in an ordered StatefulSet at most one pod is created or deleted."""
        owner = self.registry.get(self.resource, *key)
        if owner is None:
            return
        pods = self.claim(owner)
        update = self._revisions.latest(owner)
        name = owner.get("status", {}).get("currentRevision")
        known = {entry["metadata"]["name"]: entry for entry in self._revisions.all_of(owner)}
        look = _Look(self, owner, pods, known.get(name, update), update)
        if not is_deleting(owner):
            look.act()
        self.write_status(owner, look.status())
        if not is_deleting(owner):
            in_use = {labels_of(pod).get(REVISION_LABEL, "") for pod in pods}
            names = {revision["metadata"]["name"] for revision in (look.current, look.update)}
            self._revisions.clean_up(owner, in_use | names)
        self.look_again_when_available(key, owner, pods)

    def create(self, owner: Json, body: Json) -> None:
        """Create a pod and say so."""
        pod = self.registry.create("pods", owner["metadata"]["namespace"], body)
        name, set_name = pod["metadata"]["name"], owner["metadata"]["name"]
        text = f"create Pod {name} in StatefulSet {set_name} successful"
        self.record.normal(COMPONENT, owner, "SuccessfulCreate", text)

    def delete(self, owner: Json, pod: Json) -> None:
        """Delete a pod and say so."""
        namespace, name = key_of(pod)
        self.registry.delete("pods", namespace, name, uid=pod["metadata"]["uid"])
        text = f"delete Pod {name} in StatefulSet {owner['metadata']['name']} successful"
        self.record.normal(COMPONENT, owner, "SuccessfulDelete", text)


@dataclass
class _Counts:
    replicas: int = 0
    ready: int = 0
    available: int = 0
    current: int = 0
    updated: int = 0


class _Look:
    """One look at a StatefulSet: its pods by number, and what is due."""

    def __init__(
        self, controller: StatefulSets, owner: Json, pods: list[Json], current: Json, update: Json
    ) -> None:
        self._controller = controller
        self._owner = owner
        self.current, self.update = current, update
        spec = owner["spec"]
        self._first = (spec.get("ordinals") or {}).get("start", 0)
        self._wanted = spec.get("replicas", 1)
        self._in_order = spec.get("podManagementPolicy", "OrderedReady") == "OrderedReady"
        name = owner["metadata"]["name"]
        numbers = {pod["metadata"]["name"].removeprefix(f"{name}-"): pod for pod in pods}
        self._pods = {int(end): pod for end, pod in numbers.items() if end.isdigit()}
        self._counts = self._count()

    def act(self) -> None:
        """Create what is missing, else delete what is too much, else roll on."""
        if not self._fill() or not self._shrink():
            return
        if self._is_rolling:
            self._roll()

    def status(self) -> Json:
        """What was found, and what follows from a finished rollout."""
        counts, owner = self._counts, self._owner
        self._finish_rollout()
        status: Json = {
            "observedGeneration": owner["metadata"]["generation"],
            "replicas": counts.replicas,
            "currentRevision": self.current["metadata"]["name"],
            "updateRevision": self.update["metadata"]["name"],
            "collisionCount": 0,
            "availableReplicas": counts.available,
        }
        more = {
            "readyReplicas": counts.ready,
            "currentReplicas": counts.current,
            "updatedReplicas": counts.updated,
        }
        return {**status, **{name: count for name, count in more.items() if count}}

    @property
    def _range(self) -> range:
        return range(self._first, self._first + self._wanted)

    def _fill(self) -> bool:
        """Create missing pods in order; whether it is time for anything else."""
        for number in self._range:
            pod = self._pods.get(number)
            if pod is None:
                self._create(number)
            elif pod_state.is_finished(pod):
                if not is_deleting(pod):
                    self._controller.delete(self._owner, pod)
                return False
            elif self._is_healthy(pod):
                continue
            if self._in_order:
                return False
        return True

    def _shrink(self) -> bool:
        """Delete pods beyond the wanted number, the last first; whether all of them are gone."""
        surplus = set(self._pods) - set(self._range)
        for number in sorted(surplus, reverse=True):
            pod = self._pods[number]
            if not is_deleting(pod):
                self._delete(pod)
            if self._in_order:
                return False
        return True

    def _roll(self) -> None:
        """Delete the last pod that is not of the new revision, once those after it are healthy."""
        for number in sorted(self._range, reverse=True):
            if number < self._first + self._partition:
                return
            pod = self._pods.get(number)
            if pod is None:
                return
            if not self._is_of(pod, self.update) and not is_deleting(pod):
                self._delete(pod)
                return
            if not self._is_healthy(pod):
                return

    def _create(self, number: int) -> None:
        stays = self._is_rolling and number < self._first + self._partition
        revision = self.current if stays else self.update
        self._controller.create(self._owner, numbered_pod(self._owner, number, revision))

    @property
    def _strategy(self) -> Json:
        found: Json = self._owner["spec"].get("updateStrategy") or {}
        return found

    @property
    def _is_rolling(self) -> bool:
        return bool(self._strategy.get("type", "RollingUpdate") == "RollingUpdate")

    @property
    def _partition(self) -> int:
        """Pods below it stay with the current revision."""
        number: int = (self._strategy.get("rollingUpdate") or {}).get("partition") or 0
        return number

    def _delete(self, pod: Json) -> None:
        self._controller.delete(self._owner, pod)
        if self._is_of(pod, self.current):
            self._counts.current -= 1
        elif self._is_of(pod, self.update):
            self._counts.updated -= 1

    def _count(self) -> _Counts:
        needed = self._owner["spec"].get("minReadySeconds", 0)
        counts = _Counts(replicas=len(self._pods))
        for pod in self._pods.values():
            counts.ready += pod_state.is_ready(pod)
            counts.available += pod_state.is_available(pod, needed)
            if not is_deleting(pod):
                counts.current += self._is_of(pod, self.current)
                counts.updated += self._is_of(pod, self.update)
        return counts

    def _finish_rollout(self) -> None:
        """The new revision becomes the current one when every pod is of it and ready."""
        counts = self._counts
        if self._is_rolling and counts.updated == counts.replicas == counts.ready == self._wanted:
            self.current, counts.current = self.update, counts.updated

    def _is_healthy(self, pod: Json) -> bool:
        needed = self._owner["spec"].get("minReadySeconds", 0)
        return pod_state.is_available(pod, needed) and not is_deleting(pod)

    @staticmethod
    def _is_of(pod: Json, revision: Json) -> bool:
        name: str = revision["metadata"]["name"]
        return labels_of(pod).get(REVISION_LABEL) == name


def numbered_pod(owner: Json, number: int, revision: Json) -> Json:
    """The pod of that number, made from the template of *revision*."""
    name = f"{owner['metadata']['name']}-{number}"
    labels = {
        "apps.kubernetes.io/pod-index": str(number),
        REVISION_LABEL: revision["metadata"]["name"],
        "statefulset.kubernetes.io/pod-name": name,
    }
    pod = pod_of(owner, template_of(revision), labels)
    pod["metadata"]["name"] = name
    pod["spec"] = {
        **pod["spec"],
        "hostname": name,
        "subdomain": owner["spec"].get("serviceName", ""),
    }
    claims = [
        {"name": entry["metadata"]["name"], "persistentVolumeClaim": {
            "claimName": f"{entry['metadata']['name']}-{name}"}}
        for entry in owner["spec"].get("volumeClaimTemplates") or []
    ]  # fmt: skip
    if claims:
        taken = {entry["name"] for entry in claims}
        others = [vol for vol in pod["spec"].get("volumes") or [] if vol["name"] not in taken]
        pod["spec"]["volumes"] = [*claims, *others]
    return pod
