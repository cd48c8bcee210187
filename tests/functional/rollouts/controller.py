# SPDX-License-Identifier: Apache-2.0
"""Rollouts (argoproj.io/v1alpha1) in the embedded cluster: one pod more, then one old pod less."""

from __future__ import annotations

from typing import Any

from container_update.emulator.kubernetes.controllers.claim import ClaimingController
from container_update.emulator.kubernetes.controllers.workloads.templates import template_hash
from container_update.emulator.kubernetes.objects import is_deleting, key_of, reference_to

Json = dict[str, Any]

HASH_LABEL = "rollouts-pod-template-hash"

DEFINITION: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "rollouts.argoproj.io"},
    "spec": {
        "group": "argoproj.io",
        "names": {"kind": "Rollout", "plural": "rollouts", "singular": "rollout"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object", "x-kubernetes-preserve-unknown-fields": True
                    }
                },
            }
        ],
    },
}  # fmt: skip


class Rollouts(ClaimingController):
    """A canary without steps, with a surge of one and none unavailable."""

    resource, kind, owned = "rollouts.argoproj.io", "Rollout", "replicasets"

    def reconcile(self, rollout: Json) -> None:
        """Take one step, then write the status; changes of the ReplicaSets trigger the next one."""
        if is_deleting(rollout):
            return
        namespace, name = key_of(rollout)
        sets = {entry["metadata"]["name"]: entry for entry in self.claim(rollout)}
        digest = template_hash(rollout["spec"]["template"])
        new = sets.pop(f"{name}-{digest}", None)
        if new is None:
            size = 0 if sets else desired_replicas(rollout)
            new = self.registry.create(self.owned, namespace, replica_set(rollout, digest, size))
        else:
            self._move(rollout, new, list(sets.values()))
        current = self.registry.list(self.owned, namespace, lambda entry: is_of(rollout, entry))
        name = new["metadata"]["name"]
        newest = next(entry for entry in current if entry["metadata"]["name"] == name)
        self.write_status(rollout, status(rollout, newest, current, digest))

    def _move(self, rollout: Json, new: Json, old: list[Json]) -> None:
        total = sum(entry["spec"]["replicas"] for entry in (new, *old))
        room = desired_replicas(rollout) + 1 - total
        lacking = desired_replicas(rollout) - new["spec"]["replicas"]
        broken = [entry for entry in old if count(entry, "availableReplicas") < size_of(entry)]
        if broken:
            self._resize(broken[0], count(broken[0], "availableReplicas"))
        elif lacking and (room > 0 or lacking < 0):
            self._resize(new, size_of(new) + min(lacking, room))
        elif sum(count(entry, "availableReplicas") for entry in (new, *old)) > desired_replicas(
            rollout
        ):
            running = [entry for entry in old if size_of(entry)]
            if running:
                self._resize(running[0], size_of(running[0]) - 1)

    def _resize(self, entry: Json, size: int) -> None:
        changed = {**entry, "spec": {**entry["spec"], "replicas": size}}
        self.registry.update(self.owned, *key_of(entry), changed)


def desired_replicas(rollout: Json) -> int:
    return int(rollout["spec"].get("replicas", 1))


def size_of(entry: Json) -> int:
    return int(entry["spec"]["replicas"])


def count(entry: Json, name: str) -> int:
    return int((entry.get("status") or {}).get(name, 0))


def is_of(rollout: Json, entry: Json) -> bool:
    owners = entry["metadata"].get("ownerReferences") or ()
    return any(owner["uid"] == rollout["metadata"]["uid"] for owner in owners)


def replica_set(rollout: Json, digest: str, size: int) -> Json:
    """Return the ReplicaSet for the Rollout's template."""
    template, metadata = rollout["spec"]["template"], rollout["metadata"]
    labels = {**template["metadata"]["labels"], HASH_LABEL: digest}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata['name']}-{digest}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [reference_to(rollout)],
        },
        "spec": {
            "replicas": size,
            "selector": {"matchLabels": labels},
            "template": {**template, "metadata": {**template["metadata"], "labels": labels}},
        },
    }


def status(rollout: Json, new: Json, sets: list[Json], digest: str) -> Json:
    """Return the part of RolloutStatus that clients wait for."""
    counts = {
        name: sum(count(entry, name) for entry in sets)
        for name in ("replicas", "readyReplicas", "availableReplicas")
    }
    counts["updatedReplicas"] = count(new, "replicas")
    is_healthy = all(number == desired_replicas(rollout) for number in counts.values())
    return {
        **counts,
        "observedGeneration": str(rollout["metadata"]["generation"]),
        "currentPodHash": digest,
        "phase": "Healthy" if is_healthy else "Progressing",
    }
