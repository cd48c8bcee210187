# SPDX-License-Identifier: Apache-2.0
"""What a write keeps of the stored object, whatever the request says."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping

from container_update.emulator import clock
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.api_errors import forbidden_field, invalid
from container_update.emulator.kubernetes.resources import Resource
from container_update.emulator.kubernetes.rules import defaults, pod_defaults, shape

Write = Callable[[Resource, Json, Json], Json]
"""(kind, stored object, request) to the new object."""

_KEPT_OF_SERVICE = (
    "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy",
)  # fmt: skip


def keep(kind: Resource, old: Json, new: Json) -> None:
    """Copy to *new* what an update cannot write. Call it before defaults are applied."""
    if kind.has_status:
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"]
    if kind.key == "pods":
        _keep_pod_fields(old, new)
    elif kind.key == "services":
        _keep_allocated(old["spec"], new.setdefault("spec", {}))
    elif kind.key == "namespaces":
        new["spec"] = old["spec"]
    elif kind.key == "secrets":
        new.setdefault("type", old["type"])


def derive(kind: Resource, old: Json, new: Json) -> None:
    """Write into *new* what follows from the change. Call it after defaults are applied."""
    if kind.kind == "CustomResourceDefinition":
        _note_stored_version(new)
    if kind.key != "daemonsets":
        return
    before = old["metadata"].get("annotations", {}).get(defaults.TEMPLATE_GENERATION, "1")
    changed = old["spec"]["template"] != new["spec"]["template"]
    annotations = dict(new["metadata"].get("annotations", {}))
    annotations[defaults.TEMPLATE_GENERATION] = str(int(before) + changed)
    new["metadata"]["annotations"] = annotations


def _note_stored_version(definition: Json) -> None:
    """Note in its status the version in which a CustomResourceDefinition has objects stored now."""
    status = definition.get("status") or {}
    known = status.get("storedVersions") or []
    stored = [each["name"] for each in definition["spec"]["versions"] if each.get("storage")]
    definition["status"] = {**status, "storedVersions": [*dict.fromkeys([*known, *stored])]}


def _keep_pod_fields(old: Json, new: Json) -> None:
    """Keep what the server added to a Pod's spec and the request leaves out."""
    spec, stored = new.setdefault("spec", {}), old["spec"]
    for key in ("nodeName", "priority", "preemptionPolicy", "serviceAccountName"):
        if key in stored:
            spec.setdefault(key, stored[key])


def _keep_allocated(stored: Json, spec: Json) -> None:
    if spec.get("type", "ClusterIP") == "ExternalName":
        return
    given, same = spec.get("clusterIP"), spec.get("clusterIPs") == stored.get("clusterIPs")
    if given and given != stored.get("clusterIP") and same:
        spec["clusterIPs"] = [given]
    if not given and same:
        spec["clusterIP"] = stored.get("clusterIP")
    is_addressed = spec.get("clusterIP") or spec.get("clusterIPs")
    for key in _KEPT_OF_SERVICE:
        if key in stored and not (spec.get(key) or (key.startswith("clusterIP") and is_addressed)):
            spec[key] = copy.deepcopy(stored[key])
    node_ports = {port["port"]: port.get("nodePort") for port in stored.get("ports", [])}
    for port in spec.get("ports", []):
        known = node_ports.get(port.get("port"))
        if known and spec.get("type") in ("NodePort", "LoadBalancer") and not port.get("nodePort"):
            port["nodePort"] = known


def _status(kind: Resource, old: Json, body: Json) -> Json:
    """Write the status; of the metadata, annotations and finalizers."""
    new = dict(old)
    if "status" in body:
        new["status"] = shape.without_empty(body["status"]) if not kind.custom else body["status"]
    metadata, sent = dict(old["metadata"]), body.get("metadata") or {}
    for key in ("annotations", "finalizers"):
        if key in sent:
            metadata.pop(key, None)
            if sent[key]:
                metadata[key] = sent[key]
    new["metadata"] = metadata
    return new


def _ephemeral_containers(kind: Resource, old: Json, body: Json) -> Json:
    """Write ``spec.ephemeralContainers``, to which containers can only be added."""
    containers = shape.without_empty((body.get("spec") or {}).get("ephemeralContainers") or [])
    for container in containers:
        pod_defaults.apply_to_container(container)
    for stored in old["spec"].get("ephemeralContainers", []):
        if stored not in containers:
            why = f'existing ephemeral containers "{stored["name"]}" may not be changed'
            error = forbidden_field("spec.ephemeralContainers", why)
            raise invalid(kind.group, kind.kind, old["metadata"]["name"], [error])
    spec = {**old["spec"], "ephemeralContainers": containers}
    return {**old, "metadata": dict(old["metadata"]), "spec": spec}


def _binding(_kind: Resource, old: Json, body: Json) -> Json:
    """Write the node of a Pod, and its PodScheduled condition."""
    node = body["spec"]["nodeName"]
    status = old.get("status", {})
    conditions = [
        entry for entry in status.get("conditions", []) if entry["type"] != "PodScheduled"
    ]
    scheduled = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": clock.stamp(),
    }
    return {
        **old,
        "metadata": dict(old["metadata"]),
        "spec": {**old["spec"], "nodeName": node},
        "status": {**status, "conditions": [*conditions, scheduled]},
    }


def _finalize(_kind: Resource, old: Json, body: Json) -> Json:
    """Write ``spec.finalizers`` of a Namespace."""
    finalizers = list((body.get("spec") or {}).get("finalizers") or [])
    spec = {key: value for key, value in old["spec"].items() if key != "finalizers"}
    if finalizers:
        spec["finalizers"] = finalizers
    return {**old, "metadata": dict(old["metadata"]), "spec": spec}


SUBRESOURCES: Mapping[str, Write] = {
    "binding": _binding,
    "ephemeralcontainers": _ephemeral_containers,
    "finalize": _finalize,
    "status": _status,
}
"""The functions that write a subresource."""
