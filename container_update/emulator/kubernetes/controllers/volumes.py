# SPDX-License-Identifier: Apache-2.0
"""PersistentVolumeClaims: bound at once, as with a provisioner, and kept while a pod uses them.

A claim whose class is '' waits for its volume, as it does without a provisioner. Source: Kubernetes
documentation, "Persistent Volumes", with "Storage Object in Use Protection".
"""

from __future__ import annotations

from collections.abc import Mapping

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.controllers.base import Controller, Handler
from container_update.emulator.kubernetes.objects import (
    annotations_of,
    has_finalizer,
    is_deleting,
    key_of,
    without_finalizer,
)
from container_update.emulator.kubernetes.pod_state import is_finished
from container_update.emulator.kubernetes.registry import Registry
from container_update.emulator.kubernetes.rules.defaults import PROTECTION

_BOUND = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}


class VolumeClaims(Controller):
    """Binds claims, and lets go of those that are deleted and not in use."""

    resource = "persistentvolumeclaims"

    def handlers(self) -> Mapping[str, Handler]:
        """Handle claims, the pods that use them, and volumes that they wait for."""
        return {
            self.resource: self._claim_changed,
            "pods": self._pod_changed,
            "persistentvolumes": self._volume_changed,
        }

    def reconcile(self, claim: Json) -> None:
        """Protect and bind a claim; let a deleted one go when no pod uses it."""
        claim = _protect(self.registry, self.resource, claim, is_used=self._is_used(claim))
        waits = claim["status"].get("phase") == "Pending" and not is_deleting(claim)
        if waits and (volume := self._volume_for(claim)):
            self._bind(claim, volume)

    def _volume_for(self, claim: Json) -> Json | None:
        """Return the volume of a claim, which is made for it unless it names one."""
        spec = claim["spec"]
        name = spec.get("volumeName") or f"pvc-{claim['metadata']['uid']}"
        volume = self.registry.get("persistentvolumes", "", name)
        if volume is not None or spec.get("volumeName") or spec.get("storageClassName") == "":
            return volume
        return self.registry.create("persistentvolumes", "", _volume(claim, name))

    def _bind(self, claim: Json, volume: Json) -> None:
        metadata = {
            **claim["metadata"],
            "annotations": {**annotations_of(claim), **_BOUND},
        }
        spec = {**claim["spec"], "volumeName": volume["metadata"]["name"]}
        bound = self.registry.update(
            self.resource, *key_of(claim), {**claim, "metadata": metadata, "spec": spec}
        )
        status = {
            "phase": "Bound",
            "accessModes": spec.get("accessModes", []),
            "capacity": volume["spec"].get("capacity", {}),
        }
        self.write_status(bound, status)
        self.registry.update(
            "persistentvolumes", "", spec["volumeName"],
            {**volume, "status": {"phase": "Bound"}}, subresource="status",
        )  # fmt: skip

    def _is_used(self, claim: Json) -> bool:
        namespace, name = key_of(claim)
        return any(
            name in claims_of(pod) and not is_finished(pod)
            for pod in self.registry.list("pods", namespace)
        )

    def _claim_changed(self, event: str, claim: Json, previous: Json | None) -> None:
        if event != "DELETED":
            self.enqueue(event, claim, previous)
            return
        name = claim["spec"].get("volumeName", "")
        volume = self.registry.get("persistentvolumes", "", name)
        if volume and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            self.registry.delete("persistentvolumes", "", name)

    def _pod_changed(self, event: str, pod: Json, _previous: Json | None) -> None:
        if event == "DELETED" or is_finished(pod):
            for name in claims_of(pod):
                self.queue.add((pod["metadata"]["namespace"], name))

    def _volume_changed(self, event: str, volume: Json, _previous: Json | None) -> None:
        if event == "ADDED":
            for claim in self.registry.list(self.resource):
                if claim["spec"].get("volumeName") == volume["metadata"]["name"]:
                    self.queue.add(key_of(claim))


class Volumes(Controller):
    """Protects volumes, and lets go of those that are deleted and not bound."""

    resource = "persistentvolumes"

    def reconcile(self, volume: Json) -> None:
        """Protect a volume, or let it go."""
        claim = volume["spec"].get("claimRef") or {}
        key = claim.get("namespace", ""), claim.get("name", "")
        is_used = self.registry.get("persistentvolumeclaims", *key) is not None
        _protect(self.registry, self.resource, volume, is_used=is_used)


def _protect(registry: Registry, resource: str, obj: Json, *, is_used: bool) -> Json:
    """Give an object the finalizer of its kind; take it from a deleted one that is not in use."""
    finalizer, key = PROTECTION[resource], key_of(obj)
    if not is_deleting(obj) and not has_finalizer(obj, finalizer):
        finalizers = [*(obj["metadata"].get("finalizers") or []), finalizer]
        metadata = {**obj["metadata"], "finalizers": finalizers}
        return registry.update(resource, *key, {**obj, "metadata": metadata})
    if is_deleting(obj) and has_finalizer(obj, finalizer) and not is_used:
        return registry.update(resource, *key, without_finalizer(obj, finalizer))
    return obj


def claims_of(pod: Json) -> list[str]:
    """Return the names of the claims that a pod mounts."""
    volumes = pod["spec"].get("volumes") or []
    sources = (volume.get("persistentVolumeClaim") for volume in volumes)
    return [source["claimName"] for source in sources if source]


def _volume(claim: Json, name: str) -> Json:
    """Return the volume that a provisioner makes for a claim."""
    spec, (namespace, claim_name) = claim["spec"], key_of(claim)
    return {
        "metadata": {"name": name},
        "spec": {
            "accessModes": spec.get("accessModes", []),
            "capacity": (spec.get("resources") or {}).get("requests", {}),
            "claimRef": {
                "kind": "PersistentVolumeClaim",
                "apiVersion": "v1",
                "namespace": namespace,
                "name": claim_name,
                "uid": claim["metadata"]["uid"],
            },
            "persistentVolumeReclaimPolicy": "Delete",
            "hostPath": {"path": f"/var/emulated/{name}", "type": ""},
            "volumeMode": spec.get("volumeMode", "Filesystem"),
        },
    }
