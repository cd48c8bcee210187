# SPDX-License-Identifier: Apache-2.0
"""Endpoints and EndpointSlices: the addresses behind a Service."""

from __future__ import annotations

from collections.abc import Mapping

from container_update.emulator.clock import stamp
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import pod_state
from container_update.emulator.kubernetes.controllers.base import Controller, Handler
from container_update.emulator.kubernetes.objects import (
    Key,
    is_deleting,
    key_of,
    labels_of,
    reference_to,
)

TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"
SERVICE_LABEL = "kubernetes.io/service-name"
HEADLESS_LABEL = "service.kubernetes.io/headless"


class EndpointSlices(Controller):
    """Keeps one EndpointSlice and one Endpoints object for every Service with a selector."""

    resource = "services"

    def handlers(self) -> Mapping[str, Handler]:
        """Handle services and pods."""
        return {"services": self.enqueue, "pods": self._pod_changed}

    def process(self, key: Key) -> None:
        """Reconcile the Service; delete the Endpoints of one that was deleted."""
        super().process(key)
        endpoints = self.registry.get("endpoints", *key)
        if endpoints is not None and self.registry.get("services", *key) is None:
            self.registry.delete("endpoints", *key, uid=endpoints["metadata"]["uid"])

    def reconcile(self, service: Json) -> None:
        """Write both objects if they differ."""
        selector: Json = service["spec"].get("selector") or {}
        if not selector or is_deleting(service):
            return
        pods = self.registry.list(
            "pods", service["metadata"]["namespace"], lambda pod: _is_endpoint(pod, selector)
        )
        self._write_slice(service, pods)
        self._write_endpoints(service, pods)

    def _pod_changed(self, _event: str, pod: Json, previous: Json | None) -> None:
        for service in self.registry.list("services", pod["metadata"]["namespace"]):
            selector = service["spec"].get("selector") or {}
            versions = [pod] if previous is None else [pod, previous]
            if selector and any(_selects(selector, version) for version in versions):
                self.queue.add(key_of(service))

    def _write_slice(self, service: Json, pods: list[Json]) -> None:
        name, uid = service["metadata"]["name"], service["metadata"]["uid"]
        owned = self.index.controlled_objects("endpointslices", uid)
        content = {
            "endpoints": [_endpoint(service, pod) for pod in pods],
            "ports": _ports(service, pods),
        }
        labels = {
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            SERVICE_LABEL: name,
        }
        new = {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "generateName": f"{name}-",
                "labels": {**labels_of(service), **labels, **_headless(service)},
                "ownerReferences": [reference_to(service)],
            },
            "addressType": "IPv4",
        }
        self._write("endpointslices", service, owned[0] if owned else None, new, content)

    def _write_endpoints(self, service: Json, pods: list[Json]) -> None:
        managed = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
        labels = {**labels_of(service), **managed, **_headless(service)}
        metadata = {"name": service["metadata"]["name"], "labels": labels}
        new = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata}
        stored = self.registry.get("endpoints", *key_of(service))
        self._write("endpoints", service, stored, new, {"subsets": _subsets(service, pods)})

    def _write(
        self, resource: str, service: Json, stored: Json | None, new: Json, content: Json
    ) -> None:
        """Create *new* with the content, or write it into the stored object if it differs."""
        body = {**(stored or new), **content}
        body["metadata"] = _stamp(body["metadata"])
        if stored is None:
            self.registry.create(resource, service["metadata"]["namespace"], body)
        elif any((stored.get(key) or []) != value for key, value in content.items()):
            self.registry.update(resource, *key_of(stored), body)


def _selects(selector: Json, pod: Json) -> bool:
    labels = labels_of(pod)
    return all(labels.get(key) == value for key, value in selector.items())


def _is_endpoint(pod: Json, selector: Json) -> bool:
    """Return whether the pod is selected, has an address and may still run."""
    has_address = bool(pod.get("status", {}).get("podIP"))
    return has_address and _selects(selector, pod) and not pod_state.is_finished(pod)


def _is_ready(service: Json, pod: Json) -> bool:
    always = bool(service["spec"].get("publishNotReadyAddresses"))
    return always or (pod_state.is_ready(pod) and not is_deleting(pod))


def _target(pod: Json) -> Json:
    namespace, name = key_of(pod)
    return {"kind": "Pod", "namespace": namespace, "name": name, "uid": pod["metadata"]["uid"]}


def _endpoint(service: Json, pod: Json) -> Json:
    return {
        "addresses": [pod["status"]["podIP"]],
        "conditions": {
            "ready": _is_ready(service, pod),
            "serving": pod_state.is_ready(pod),
            "terminating": is_deleting(pod),
        },
        "targetRef": _target(pod),
        "nodeName": pod["spec"]["nodeName"],
    }


def _ports(service: Json, pods: list[Json]) -> list[Json]:
    ports = []
    for port in service["spec"].get("ports") or []:
        number = _number(port.get("targetPort", port["port"]), pods)
        if number is not None:
            head = {"name": port.get("name", ""), "protocol": port.get("protocol", "TCP")}
            ports.append({**head, "port": number})
    return ports


def _number(target: int | str, pods: list[Json]) -> int | None:
    """Return the port's number; a name is looked up in the containers."""
    if isinstance(target, int):
        return target
    for pod in pods:
        for container in pod["spec"]["containers"]:
            for port in container.get("ports") or []:
                if port.get("name") == target:
                    return int(port["containerPort"])
    return None


def _subsets(service: Json, pods: list[Json]) -> list[Json]:
    by_address = sorted(
        pods, key=lambda pod: [int(part) for part in pod["status"]["podIP"].split(".")]
    )
    groups = {
        "addresses": [pod for pod in by_address if _is_ready(service, pod)],
        "notReadyAddresses": [
            pod for pod in by_address if not _is_ready(service, pod) and not is_deleting(pod)
        ],
    }
    subset: Json = {name: list(map(_address, group)) for name, group in groups.items() if group}
    if not subset:
        return []
    ports = [{key: value for key, value in port.items() if value} for port in _ports(service, pods)]
    return [{**subset, "ports": ports} if ports else subset]


def _address(pod: Json) -> Json:
    address = pod["status"]["podIP"]
    return {"ip": address, "nodeName": pod["spec"]["nodeName"], "targetRef": _target(pod)}


def _headless(service: Json) -> Json:
    return {HEADLESS_LABEL: ""} if service["spec"].get("clusterIP") == "None" else {}


def _stamp(metadata: Json) -> Json:
    annotations = {**(metadata.get("annotations") or {}), TRIGGER_TIME: stamp()}
    return {**metadata, "annotations": annotations}
