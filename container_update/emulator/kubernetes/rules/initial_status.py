# SPDX-License-Identifier: Apache-2.0
"""The initial status of a new object, whatever the client sent."""

from __future__ import annotations

import base64
import copy
from collections.abc import Mapping

from container_update.emulator import clock
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.objects import new_condition
from container_update.emulator.kubernetes.resources import ESTABLISHED, Resource

_INITIAL: Mapping[str, Json] = {
    "apiservices": {},
    "cronjobs": {},
    "daemonsets": {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    },
    "deployments": {},
    "flowschemas": {},
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
    "prioritylevelconfigurations": {},
    "replicasets": {"replicas": 0},
    "replicationcontrollers": {"replicas": 0},
    "resourceclaims": {},
    "resourcequotas": {},
    "services": {"loadBalancer": {}},
    "statefulsets": {"replicas": 0, "availableReplicas": 0},
    "validatingadmissionpolicies": {},
}


def reset(kind: Resource, new: Json) -> None:
    """Replace the status of *new* by the initial one; that of a Node stays as sent."""
    if kind.key == "nodes" or not kind.has_status:
        return
    new.pop("status", None)
    if kind.key == "pods":
        reset_pod(new)
    elif kind.key in _INITIAL:
        new["status"] = copy.deepcopy(_INITIAL[kind.key])
    if kind.key == "persistentvolumes":
        new["status"]["lastPhaseTransitionTime"] = clock.stamp()


def reset_pod(pod: Json) -> None:
    """Write the status of a new pod."""
    quality = quality_of_service(pod.get("spec", {}))
    pod["status"] = {"phase": "Pending", "qosClass": quality}


def quality_of_service(spec: Json) -> str:
    """Return a pod's QoS class, by the resources that its containers request."""
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


def of_definition(definition: Json) -> Json:
    """Return the status of a new CustomResourceDefinition, which is not served yet."""
    versions = definition["spec"]["versions"]
    return {
        "acceptedNames": {"plural": "", "kind": ""},
        "conditions": None,
        "storedVersions": [entry["name"] for entry in versions if entry.get("storage")],
    }


def established_status(definition: Json) -> Json:
    """Return the status of a CustomResourceDefinition whose objects are served, unless the CA of
    its conversion webhook is none."""
    served = "True", "InitialNamesAccepted", "the initial names have been accepted"
    waits = "False", "InvalidCABundle", "The conversion webhook CABundle is invalid"
    return {
        **definition["status"],
        "acceptedNames": copy.deepcopy(definition["spec"]["names"]),
        "conditions": [
            new_condition(kind, *state, clock.stamp())
            for kind, state in (
                ("NamesAccepted", ("True", "NoConflicts", "no conflicts found")),
                (ESTABLISHED, served if _has_valid_ca(definition) else waits),
            )
        ],
    }


def _has_valid_ca(definition: Json) -> bool:
    webhook = (definition["spec"].get("conversion") or {}).get("webhook") or {}
    bundle = (webhook.get("clientConfig") or {}).get("caBundle") or ""
    return not bundle or b"-----BEGIN CERTIFICATE-----" in base64.b64decode(bundle)
