# SPDX-License-Identifier: Apache-2.0
"""What runs on an emulator, as the demo shows it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, TextIO

from container_update.cluster.client import KubernetesCluster
from container_update.cluster.history.store import SECRET_TYPE
from container_update.emulator.demo import tables
from container_update.model.objects import Collection, Json
from container_update.openstack.vnfcs import PORT, SERVER, stack_of
from container_update.planning.release_labels import selector_of
from container_update.workloads import traffic

if TYPE_CHECKING:
    from container_update.openstack.client import Heat

_WORKLOADS = ("Deployment", "DaemonSet", "ReplicaSet", "StatefulSet")
_DEPTH = 3
"""How deep the samples nest their stacks."""


def show_cluster(cluster: KubernetesCluster, out: TextIO) -> None:
    """Show the namespace default: configuration, pods, workloads, which pods Services send to."""
    now = datetime.now(timezone.utc)

    def objects(kind: str, group: str = "") -> list[Json]:
        listing = cluster.list(Collection(group, kind, "default"))
        return [
            body
            for body in listing.items
            if body["metadata"]["name"] != "kube-root-ca.crt" and body.get("type") != SECRET_TYPE
        ]

    workloads = [body for kind in _WORKLOADS for body in objects(kind, "apps")]
    out.write(tables.config([*objects("ConfigMap"), *objects("Secret")]) + "\n\n")
    out.write(tables.pods(objects("Pod"), now) + "\n\n")
    out.write(tables.workloads(workloads, now) + "\n")
    slices = objects("EndpointSlice", "discovery.k8s.io")
    rows = [
        (
            service["metadata"]["name"],
            ",".join(f"{name}={value}" for name, value in selector_of(service).items()),
            ", ".join(_ready_pods(service["metadata"]["name"], slices)),
        )
        for service in objects("Service")
        if selector_of(service)
    ]
    if rows:
        out.write("\n" + tables.table(("SERVICE", "SELECTOR", "SENDS ITS TRAFFIC TO"), rows) + "\n")


def _ready_pods(service: str, slices: Sequence[Json]) -> list[str]:
    return sorted(
        endpoint["targetRef"]["name"]
        for body in slices
        if body["metadata"]["labels"].get(traffic.SERVICE_LABEL) == service
        for endpoint in body.get("endpoints") or ()
        if endpoint["conditions"].get("ready")
    )


def show_stacks(heat: Heat, out: TextIO) -> None:
    """Show the stacks of the cloud, each with its servers."""
    for stack in heat.stacks():
        name, stack_id = stack["stack_name"], stack["id"]
        out.write(f"stack {name}  {stack['stack_status']}  {stack_id}\n")
        for server in heat.resources(f"{name}/{stack_id}", _DEPTH):
            if server["resource_type"] == SERVER:
                out.write(f"  {_server_line(heat, server)}\n")


def _server_line(heat: Heat, server: Json) -> str:
    stack = str(stack_of(server))

    def attributes(resource: Json) -> Json:
        return dict((heat.resource(stack, resource["resource_name"]) or {}).get("attributes") or {})

    shown = attributes(server)
    ports = [entry for entry in heat.resources(stack) if entry["resource_type"] == PORT]
    addresses = [
        address["ip_address"] for port in ports for address in attributes(port)["fixed_ips"]
    ]
    image = (shown["image"] or {"id": "from a volume"})["id"]
    flavor = str(shown["flavor"]["original_name"])
    cells = [server["physical_resource_id"], shown["status"], image, flavor]
    return "  ".join([*cells, *addresses])
