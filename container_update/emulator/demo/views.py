# SPDX-License-Identifier: Apache-2.0
"""What runs on an emulator, as the demo shows it."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, TextIO

from container_update.cli.terminal.screen import Screen
from container_update.cluster.client import KubernetesCluster
from container_update.engine.instances import workloads
from container_update.model.objects import Json
from container_update.openstack.vnfcs import PORT, SERVER, stack_of
from container_update.reports.outcome_report import workload_lines

if TYPE_CHECKING:
    from container_update.openstack.client import Heat

_DEPTH = 3
"""How deep the samples nest their stacks."""


def show_cluster(cluster: KubernetesCluster, instance_id: str | None, out: TextIO) -> None:
    """Show the workloads of an instance, as ``container-update status`` does."""
    found = workloads(cluster, "default", instance_id)
    Screen(out).show(workload_lines(found, datetime.now(timezone.utc)))


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
