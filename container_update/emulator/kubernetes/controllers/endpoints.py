"""Endpoints and EndpointSlices: the addresses behind a Service."""

from __future__ import annotations

from collections.abc import Mapping

from container_update.emulator.clock import stamp
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import pod_state
from container_update.emulator.kubernetes.controllers.base import Controller, Handler, Key, key_of
from container_update.emulator.kubernetes.ownership import is_deleting, labels_of, reference_to

TRIGGERED = "endpoints.kubernetes.io/last-change-trigger-time"
SERVICE_LABEL = "kubernetes.io/service-name"
HEADLESS_LABEL = "service.kubernetes.io/headless"


class EndpointSlices(Controller):
    """Keeps one EndpointSlice and one Endpoints object for every Service with a selector."""

    resource = "services"

    def handlers(self) -> Mapping[str, Handler]:
        """Services, and pods."""
        return {"services": self.enqueue, "pods": self._pod_changed}

    def reconcile(self, key: Key) -> None:
        """Write both where they differ."""
        service = self.registry.get("services", *key)
        if service is None:
            stored = self.registry.get("endpoints", *key)
            if stored is not None:
                self.registry.delete("endpoints", *key, uid=stored["metadata"]["uid"])
            return
        wanted: Json = service["spec"].get("selector") or {}
        if not wanted or is_deleting(service):
            return
        pods = self.registry.list("pods", key[0], lambda pod: _serves(pod, wanted))
        self._write_slice(service, pods)
        self._write_endpoints(service, pods)

    def _pod_changed(self, _event: str, pod: Json, previous: Json | None) -> None:
        for service in self.registry.list("services", pod["metadata"]["namespace"]):
            selector = service["spec"].get("selector") or {}
            versions = [pod] if previous is None else [pod, previous]
            if selector and any(_selects(selector, version) for version in versions):
                self.queue.add(key_of(service))

    def _write_slice(self, service: Json, pods: list[Json]) -> None:
        namespace, name = key_of(service)
        content = {
            "endpoints": [_endpoint(service, pod) for pod in pods],
            "ports": _ports(service, pods),
        }
        owned = self.index.controlled("endpointslices", service["metadata"]["uid"])
        if owned:
            if not _differs(owned[0], content):
                return
            body = {**owned[0], **content, "metadata": _triggered(owned[0]["metadata"])}
            self.registry.update("endpointslices", *key_of(owned[0]), body)
            return
        labels = {
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            SERVICE_LABEL: name,
            **_headless(service),
        }
        metadata = {
            "generateName": f"{name}-",
            "labels": {**labels_of(service), **labels},
            "ownerReferences": [reference_to(service)],
        }
        body = {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": _triggered(metadata),
            "addressType": "IPv4",
            **content,
        }
        self.registry.create("endpointslices", namespace, body)

    def _write_endpoints(self, service: Json, pods: list[Json]) -> None:
        namespace, name = key_of(service)
        content = {"subsets": _subsets(service, pods)}
        stored = self.registry.get("endpoints", namespace, name)
        if stored is not None:
            if _differs(stored, content):
                body = {**stored, **content, "metadata": _triggered(stored["metadata"])}
                self.registry.update("endpoints", namespace, name, body)
            return
        managed = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
        metadata = {"name": name, "labels": {**labels_of(service), **managed, **_headless(service)}}
        body = {"apiVersion": "v1", "kind": "Endpoints", "metadata": _triggered(metadata)}
        self.registry.create("endpoints", namespace, {**body, **content})


def _selects(selector: Json, pod: Json) -> bool:
    labels = labels_of(pod)
    return all(labels.get(key) == value for key, value in selector.items())


def _serves(pod: Json, selector: Json) -> bool:
    """It is one of the Service's and has an address that somebody may still answer at."""
    has_address = bool(pod.get("status", {}).get("podIP"))
    return has_address and _selects(selector, pod) and not pod_state.is_finished(pod)


def _is_ready(service: Json, pod: Json) -> bool:
    anyway = bool(service["spec"].get("publishNotReadyAddresses"))
    return anyway or (pod_state.is_ready(pod) and not is_deleting(pod))


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
            found = {"name": port.get("name", ""), "protocol": port.get("protocol", "TCP")}
            ports.append({**found, "port": number})
    return ports


def _number(target: int | str, pods: list[Json]) -> int | None:
    """The port's number; a name is looked up in the containers."""
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
    found: Json = {name: list(map(_address, group)) for name, group in groups.items() if group}
    if not found:
        return []
    ports = [{key: value for key, value in port.items() if value} for port in _ports(service, pods)]
    return [{**found, "ports": ports} if ports else found]


def _address(pod: Json) -> Json:
    address = pod["status"]["podIP"]
    return {"ip": address, "nodeName": pod["spec"]["nodeName"], "targetRef": _target(pod)}


def _headless(service: Json) -> Json:
    return {HEADLESS_LABEL: ""} if service["spec"].get("clusterIP") == "None" else {}


def _triggered(metadata: Json) -> Json:
    annotations = {**(metadata.get("annotations") or {}), TRIGGERED: stamp()}
    return {**metadata, "annotations": annotations}


def _differs(stored: Json, content: Json) -> bool:
    return any((stored.get(key) or []) != value for key, value in content.items())
