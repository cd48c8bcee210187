# SPDX-License-Identifier: Apache-2.0
"""Default values of a pod spec (Kubernetes API reference, PodSpec)."""

from __future__ import annotations

from container_update.emulator.json_type import Json

_FILE_MODE = 0o644
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def apply(spec: Json) -> None:
    """Fill in the spec of a Pod or of a template in place."""
    if spec.get("serviceAccountName") or spec.get("serviceAccount"):
        account = spec.get("serviceAccountName") or spec["serviceAccount"]
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for group in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(group, []):
            apply_to_container(container)
    if spec.get("hostNetwork"):
        _host_ports(spec)
    for volume in spec.get("volumes", []):
        _volume(volume)
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")


def _host_ports(spec: Json) -> None:
    """Open the ports of containers on the node, whose network they use."""
    for group in ("containers", "initContainers"):
        for port in (port for entry in spec.get(group, []) for port in entry.get("ports", [])):
            if "containerPort" in port:
                port.setdefault("hostPort", port["containerPort"])


def apply_to_container(container: Json) -> None:
    """Fill in a container, an init container or an ephemeral one in place."""
    container.setdefault("resources", {})
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("imagePullPolicy", _pull_policy(str(container.get("image", ""))))
    for port in container.get("ports", []):
        port.setdefault("protocol", "TCP")
    for variable in container.get("env", []):
        _field_reference(variable.get("valueFrom") or {})
    for name in _PROBES:
        if name in container:
            _probe(container[name])
    for handler in (container.get("lifecycle") or {}).values():
        _http_get(handler)


def request_limits(spec: Json) -> None:
    """Let the containers of a Pod request what they are limited to; a template is not changed."""
    for group in ("containers", "initContainers"):
        for resources in (container["resources"] for container in spec.get(group, [])):
            if resources.get("limits"):
                resources["requests"] = resources["limits"] | resources.get("requests", {})


def _pull_policy(image: str) -> str:
    """Return 'Always' for the tag latest, stated or implied, else 'IfNotPresent'."""
    if "@" in image:
        return "IfNotPresent"
    _, _, tag = image.rpartition("/")[2].partition(":")
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _probe(probe: Json) -> None:
    probe.setdefault("timeoutSeconds", 1)
    probe.setdefault("periodSeconds", 10)
    probe.setdefault("successThreshold", 1)
    probe.setdefault("failureThreshold", 3)
    _http_get(probe)


def _http_get(handler: Json) -> None:
    if "httpGet" in handler:
        handler["httpGet"].setdefault("path", "/")
        handler["httpGet"].setdefault("scheme", "HTTP")
    if "grpc" in handler:
        handler["grpc"].setdefault("service", "")


def _volume(volume: Json) -> None:
    if set(volume) <= {"name"}:
        volume["emptyDir"] = {}
    for kind in ("configMap", "secret", "downwardAPI", "projected"):
        if kind in volume:
            volume[kind].setdefault("defaultMode", _FILE_MODE)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    items = volume.get("downwardAPI", {}).get("items", [])
    for source in volume.get("projected", {}).get("sources", []):
        if "serviceAccountToken" in source:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
        items = [*items, *source.get("downwardAPI", {}).get("items", [])]
    for item in items:
        _field_reference(item)
    claim = volume.get("ephemeral", {}).get("volumeClaimTemplate", {}).get("spec")
    if claim is not None:
        claim.setdefault("volumeMode", "Filesystem")


def _field_reference(source: Json) -> None:
    if "fieldRef" in source:
        source["fieldRef"].setdefault("apiVersion", "v1")
    if "resourceFieldRef" in source:
        source["resourceFieldRef"].setdefault("divisor", "0")
