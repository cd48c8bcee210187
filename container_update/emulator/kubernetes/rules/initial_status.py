"""The status that the server gives a new object, whatever the client sent."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from container_update.emulator import clock
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.resources import Resource

_INITIAL: Mapping[str, Json] = {
    "cronjobs": {},
    "daemonsets": {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    },
    "deployments": {},
    "horizontalpodautoscalers": {"currentMetrics": None, "desiredReplicas": 0},
    "ingresses": {"loadBalancer": {}},
    "jobs": {},
    "namespaces": {"phase": "Active"},
    "persistentvolumeclaims": {"phase": "Pending"},
    "persistentvolumes": {"phase": "Pending"},
    "poddisruptionbudgets": {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    },
    "replicasets": {"replicas": 0},
    "services": {"loadBalancer": {}},
    "statefulsets": {"replicas": 0, "availableReplicas": 0},
}


def reset(kind: Resource, new: Json) -> None:
    """Replace the status of *new* by the initial one; a Node's stays as sent."""
    if kind.key == "nodes" or not kind.has_status:
        return
    new.pop("status", None)
    if kind.key == "pods":
        new["status"] = {"phase": "Pending", "qosClass": quality_of_service(new.get("spec", {}))}
    elif kind.key in _INITIAL:
        new["status"] = copy.deepcopy(_INITIAL[kind.key])


def quality_of_service(spec: Json) -> str:
    """A pod's class, by the CPU and memory that its containers ask for."""
    containers = [*spec.get("containers", []), *spec.get("initContainers", [])]
    resources = [entry.get("resources") or {} for entry in containers]
    if not any(entry.get("limits") or entry.get("requests") for entry in resources):
        return "BestEffort"
    for entry in resources:
        limits = entry.get("limits") or {}
        requests = entry.get("requests") or limits
        if not {"cpu", "memory"} <= set(limits) or requests != limits:
            return "Burstable"
    return "Guaranteed"


def establish(definition: Json) -> None:
    """A CustomResourceDefinition's kind is served as soon as it is stored: say so."""
    names = definition["spec"]["names"]
    definition["status"] = {
        "acceptedNames": copy.deepcopy(names),
        "storedVersions": [
            version["name"] for version in definition["spec"]["versions"] if version.get("storage")
        ],
        "conditions": [
            {
                "type": kind,
                "status": "True",
                "lastTransitionTime": clock.stamp(),
                "reason": reason,
                "message": message,
            }
            for kind, reason, message in (
                ("NamesAccepted", "NoConflicts", "no conflicts found"),
                ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
            )
        ],
    }
