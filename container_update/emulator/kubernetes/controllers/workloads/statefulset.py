# SPDX-License-Identifier: Apache-2.0
"""StatefulSets: numbered pods with fixed names, created in order.

As in Kubernetes, a pod that never becomes ready blocks an ordered StatefulSet, even when its
template is corrected: the pod has to be deleted (documented as "forced rollback").
"""

from __future__ import annotations

from dataclasses import dataclass

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import pod_state
from container_update.emulator.kubernetes.controllers.base import Context
from container_update.emulator.kubernetes.controllers.claim import ClaimingController
from container_update.emulator.kubernetes.controllers.workloads.revisions import (
    REVISION_LABEL,
    Revisions,
    template_of,
)
from container_update.emulator.kubernetes.controllers.workloads.templates import pod_of
from container_update.emulator.kubernetes.objects import (
    is_deleting,
    key_of,
    labels_of,
    owner_references,
    reference_to,
    release,
)

HASH_LABEL = "controller.kubernetes.io/hash"


class StatefulSets(ClaimingController):
    """Keeps the pods of every StatefulSet, and updates them."""

    resource, kind, owned = "statefulsets", "StatefulSet", "pods"
    component = "statefulset-controller"
    created = "create Pod {pod} in StatefulSet {owner} successful"
    refused = "create Pod {pod} in StatefulSet {owner} failed error: {error}"
    deleted = "delete Pod {pod} in StatefulSet {owner} successful"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._revisions = Revisions(context.registry, context.index, HASH_LABEL)

    def reconcile(self, owner: Json) -> None:
        """Create or delete pods, in an ordered StatefulSet at most one; then write the status."""
        pods = self.claim(owner)
        update = self._revisions.latest(owner)
        name = owner.get("status", {}).get("currentRevision")
        revisions = {entry["metadata"]["name"]: entry for entry in self._revisions.all_of(owner)}
        sync = _StatefulSetPass(self, owner, pods, revisions.get(name, update), update)
        try:
            if not is_deleting(owner):
                self._own_claims(owner, pods)
                sync.act()
        finally:
            self.write_status(owner, sync.status())
        if not is_deleting(owner):
            in_use = {labels_of(pod).get(REVISION_LABEL, "") for pod in pods}
            names = {revision["metadata"]["name"] for revision in (sync.current, sync.update)}
            self._revisions.clean_up(owner, in_use | names)
        self.requeue_when_available(owner, pods)

    def selects(self, owner: Json, obj: Json) -> bool:
        """Return whether a pod may be the owner's, by its name too."""
        parent, _, number = obj["metadata"]["name"].rpartition("-")
        is_named = parent == owner["metadata"]["name"] and number.isdigit()
        return is_named and super().selects(owner, obj)

    def create_claims(self, owner: Json, pod: str) -> None:
        """Create the claims that a pod lacks, and report them."""
        namespace, name = key_of(owner)
        for template in owner["spec"].get("volumeClaimTemplates") or []:
            claim = claim_name(template, pod)
            if self.registry.get("persistentvolumeclaims", namespace, claim) is None:
                body = claim_of(owner, template, pod)
                self.registry.create("persistentvolumeclaims", namespace, body)
                text = f"create Claim {claim} Pod {pod} in StatefulSet {name} success"
                self.record.normal(self.component, owner, "SuccessfulCreate", text)

    def _own_claims(self, owner: Json, pods: list[Json]) -> None:
        """Let the claims of the pods that are there go with the StatefulSet, or stay, as it says
        now; those of pods that are gone stay as they are."""
        namespace, uid = owner["metadata"]["namespace"], owner["metadata"]["uid"]
        for pod in pods:
            if is_deleting(pod):
                continue
            for template in owner["spec"].get("volumeClaimTemplates") or []:
                name = claim_name(template, pod["metadata"]["name"])
                claim = self.registry.get("persistentvolumeclaims", namespace, name)
                if claim is None:
                    continue
                owners = owner_references(claim)
                is_owned = any(each["uid"] == uid for each in owners)
                if is_owned and not _goes_with(owner):
                    self.registry.update(
                        "persistentvolumeclaims", namespace, name, release(claim, uid)
                    )
                elif _goes_with(owner) and not is_owned:
                    metadata = {
                        **claim["metadata"],
                        "ownerReferences": [*owners, reference_to(owner)],
                    }
                    body = {**claim, "metadata": metadata}
                    self.registry.update("persistentvolumeclaims", namespace, name, body)

    def release_claims(self, owner: Json, pod: Json) -> None:
        """Let the claims of a surplus pod go with it, where the StatefulSet says so."""
        retention = owner["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
        if retention.get("whenScaled") != "Delete":
            return
        namespace, name = key_of(pod)
        reference = {
            **reference_to({"apiVersion": "v1", "kind": "Pod", **pod}),
            "controller": False,
        }
        for template in owner["spec"].get("volumeClaimTemplates") or []:
            claim = self.registry.get(
                "persistentvolumeclaims", namespace, claim_name(template, name)
            )
            if claim is not None:
                claim = release(claim, owner["metadata"]["uid"])
                owners = [*owner_references(claim), reference]
                metadata = {**claim["metadata"], "ownerReferences": owners}
                body = {**claim, "metadata": metadata}
                self.registry.update("persistentvolumeclaims", *key_of(claim), body)


@dataclass
class _Counts:
    replicas: int = 0
    ready: int = 0
    available: int = 0
    current: int = 0
    updated: int = 0


class _StatefulSetPass:
    """One pass over a StatefulSet and its pods."""

    def __init__(
        self, controller: StatefulSets, owner: Json, pods: list[Json], current: Json, update: Json
    ) -> None:
        self._controller = controller
        self._owner = owner
        self.current, self.update = current, update
        spec = owner["spec"]
        first = (spec.get("ordinals") or {}).get("start", 0)
        self._range = range(first, first + spec.get("replicas", 1))
        self._in_order = spec.get("podManagementPolicy", "OrderedReady") == "OrderedReady"
        strategy = spec.get("updateStrategy") or {}
        self._is_rolling = strategy.get("type", "RollingUpdate") == "RollingUpdate"
        self._first_updated = first + ((strategy.get("rollingUpdate") or {}).get("partition") or 0)
        self._pods = {int(pod["metadata"]["name"].rpartition("-")[2]): pod for pod in pods}
        self._counts = self._count()

    def act(self) -> None:
        """Create missing pods, else delete surplus ones, else continue the rollout."""
        if self._fill() and self._shrink() and self._is_rolling:
            self._roll()

    def status(self) -> Json:
        """Return the status: the counts of before :meth:`act`, and the revisions."""
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

    def _fill(self) -> bool:
        """Create missing pods in order; return whether all are there, and healthy if ordered."""
        for number in self._range:
            pod = self._pods.get(number)
            if pod is None:
                self._create(number)
            elif pod_state.is_finished(pod):
                if not is_deleting(pod):
                    self._controller.delete_pod(self._owner, pod)
                return False
            elif self._is_healthy(pod):
                continue
            if self._in_order:
                return False
        return True

    def _shrink(self) -> bool:
        """Delete surplus pods, the last first; return whether there are none."""
        surplus = set(self._pods) - set(self._range)
        for number in sorted(surplus, reverse=True):
            pod = self._pods[number]
            if not is_deleting(pod):
                self._controller.release_claims(self._owner, pod)
                self._delete(pod)
            if self._in_order:
                return False
        return True

    def _roll(self) -> None:
        """Delete the last pod of an old revision, once those after it are healthy."""
        for number in sorted(self._range, reverse=True):
            if number < self._first_updated:
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
        keeps_current = self._is_rolling and number < self._first_updated
        revision = self.current if keeps_current else self.update
        pod = numbered_pod(self._owner, number, revision)
        self._controller.create_claims(self._owner, pod["metadata"]["name"])
        self._controller.create_pod(self._owner, pod)

    def _delete(self, pod: Json) -> None:
        self._controller.delete_pod(self._owner, pod)
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
        """Make the new revision the current one if every pod is of it and ready."""
        counts, desired = self._counts, len(self._range)
        if self._is_rolling and counts.updated == counts.replicas == counts.ready == desired:
            self.current, counts.current = self.update, counts.updated

    def _is_healthy(self, pod: Json) -> bool:
        needed = self._owner["spec"].get("minReadySeconds", 0)
        return pod_state.is_available(pod, needed) and not is_deleting(pod)

    @staticmethod
    def _is_of(pod: Json, revision: Json) -> bool:
        name: str = revision["metadata"]["name"]
        return labels_of(pod).get(REVISION_LABEL) == name


def numbered_pod(owner: Json, number: int, revision: Json) -> Json:
    """Return the pod of that number, made from the template of *revision*."""
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
    claims = {
        template["metadata"]["name"]: claim_name(template, name)
        for template in owner["spec"].get("volumeClaimTemplates") or []
    }
    if claims:
        others = [vol for vol in pod["spec"].get("volumes") or [] if vol["name"] not in claims]
        volumes = [
            {"name": volume, "persistentVolumeClaim": {"claimName": claim}}
            for volume, claim in claims.items()
        ]
        pod["spec"]["volumes"] = [*volumes, *others]
    return pod


def claim_name(template: Json, pod: str) -> str:
    """Return the name of the claim that a claim template gives a pod."""
    return f"{template['metadata']['name']}-{pod}"


def claim_of(owner: Json, template: Json, pod: str) -> Json:
    """Return the claim that a claim template gives a pod: it stays when the pod goes."""
    given = template["metadata"]
    labels = owner["spec"]["selector"].get("matchLabels") or {}
    metadata: Json = {
        "name": claim_name(template, pod),
        "labels": {**(given.get("labels") or {}), **labels},
    }
    if given.get("annotations"):
        metadata["annotations"] = dict(given["annotations"])
    if _goes_with(owner):
        metadata["ownerReferences"] = [reference_to(owner)]
    return {"metadata": metadata, "spec": template["spec"]}


def _goes_with(owner: Json) -> bool:
    """Tell whether claims go with their StatefulSet."""
    retention = owner["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return bool(retention.get("whenDeleted") == "Delete")
