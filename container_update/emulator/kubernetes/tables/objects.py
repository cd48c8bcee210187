# SPDX-License-Identifier: Apache-2.0
"""The rows of the kinds that are neither pods nor workloads."""

from __future__ import annotations

from typing import Any

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.tables.texts import NONE, age, age_of, join, label_text


def config_map(item: Json) -> list[Any]:
    """Return Data, Age."""
    return [len(item.get("data", {})) + len(item.get("binaryData", {})), age(item)]


def secret(item: Json) -> list[Any]:
    """Return Type, Data, Age."""
    return [item.get("type", "Opaque"), len(item.get("data", {})), age(item)]


def service(item: Json) -> list[Any]:
    """Return Type, Cluster-IP, External-IP, Port(s), Age, Selector."""
    spec = item["spec"]
    outside = list(spec.get("externalIPs", []))
    if spec.get("type") == "LoadBalancer":
        ingress = item.get("status", {}).get("loadBalancer", {}).get("ingress", [])
        outside += [entry.get("ip") or entry.get("hostname", "") for entry in ingress]
    external = join(outside)
    if external == NONE and spec.get("type") == "LoadBalancer":
        external = "<pending>"
    if spec.get("type") == "ExternalName":
        external = spec.get("externalName", NONE)
    return [
        spec.get("type", "ClusterIP"),
        spec.get("clusterIP") or NONE,
        external,
        join(_service_port(port) for port in spec.get("ports", [])),
        age(item),
        label_text(spec.get("selector")),
    ]


def _service_port(port: Json) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node}/{port.get('protocol', 'TCP')}"


def namespace(item: Json) -> list[Any]:
    """Return Status, Age."""
    return [item.get("status", {}).get("phase", ""), age(item)]


_ROLE_LABEL = "node-role.kubernetes.io/"


def node(item: Json) -> list[Any]:
    """Return Status, Roles, Age, Version, addresses, and what it runs."""
    status = item.get("status", {})
    info = status.get("nodeInfo", {})
    ready = [entry for entry in status.get("conditions", []) if entry["type"] == "Ready"]
    state = "Unknown"
    if ready:
        state = "Ready" if ready[0]["status"] == "True" else "NotReady"
    if item.get("spec", {}).get("unschedulable"):
        state += ",SchedulingDisabled"
    labels = item["metadata"].get("labels", {})
    roles = sorted(key[len(_ROLE_LABEL) :] for key in labels if key.startswith(_ROLE_LABEL))
    addresses = {entry["type"]: entry["address"] for entry in status.get("addresses", [])}
    return [
        state,
        join(roles),
        age(item),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", NONE),
        addresses.get("ExternalIP", NONE),
        info.get("osImage", "<unknown>"),
        info.get("kernelVersion", "<unknown>"),
        info.get("containerRuntimeVersion", "<unknown>"),
    ]


def event(item: Json) -> list[Any]:
    """Return Last Seen, Type, Reason, Object, Subobject, Source, Message and the rest."""
    about = item.get("involvedObject", {})
    source = item.get("source", {})
    last = item.get("lastTimestamp") or item.get("eventTime")
    first = item.get("firstTimestamp") or item.get("eventTime")
    return [
        age_of(last),
        item.get("type", ""),
        item.get("reason", ""),
        f"{about.get('kind', '').lower()}/{about.get('name', '')}",
        about.get("fieldPath", ""),
        ", ".join(filter(None, (source.get("component"), source.get("host")))),
        item.get("message", "").strip(),
        age_of(first),
        item.get("count", 1),
        item["metadata"]["name"],
    ]


def lease(item: Json) -> list[Any]:
    """Return Holder, Age."""
    return [item.get("spec", {}).get("holderIdentity", ""), age(item)]


def budget(item: Json) -> list[Any]:
    """Return Min Available, Max Unavailable, Allowed Disruptions, Age."""
    spec = item["spec"]
    return [
        str(spec.get("minAvailable", "N/A")),
        str(spec.get("maxUnavailable", "N/A")),
        item.get("status", {}).get("disruptionsAllowed", 0),
        age(item),
    ]


def endpoints(item: Json) -> list[Any]:
    """Return Endpoints, Age."""
    addresses = [
        f"{address['ip']}:{port['port']}"
        for subset in item.get("subsets", [])
        for port in subset.get("ports", [])
        for address in subset.get("addresses", [])
    ]
    return [_first_three(addresses), age(item)]


def endpoint_slice(item: Json) -> list[Any]:
    """Return AddressType, Ports, Endpoints, Age."""
    ports = [str(port.get("port", "*")) for port in item.get("ports", [])]
    addresses = [address for entry in item.get("endpoints", []) for address in entry["addresses"]]
    return [
        item.get("addressType", ""),
        _first_three(ports) if ports else "<unset>",
        _first_three(addresses) if addresses else "<unset>",
        age(item),
    ]


def _first_three(values: list[str]) -> str:
    if len(values) > 3:
        return f"{','.join(values[:3])} + {len(values) - 3} more..."
    return join(values)


def controller_revision(item: Json) -> list[Any]:
    """Return Controller, Revision, Age."""
    owners = item["metadata"].get("ownerReferences", [])
    owner = next((entry for entry in owners if entry.get("controller")), None)
    text = NONE
    if owner:
        group = owner["apiVersion"].rpartition("/")[0]
        text = f"{owner['kind'].lower()}{'.' + group if group else ''}/{owner['name']}"
    return [text, item.get("revision", 0), age(item)]


def service_account(item: Json) -> list[Any]:
    """Return Secrets, Age."""
    return [len(item.get("secrets", [])), age(item)]


def definition(item: Json) -> list[Any]:
    """Return Created At."""
    return [item["metadata"].get("creationTimestamp", "")]
