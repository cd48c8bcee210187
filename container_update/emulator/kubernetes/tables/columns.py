# SPDX-License-Identifier: Apache-2.0
"""The columns of each kind's table, and the functions that return its cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.tables import objects, pods, workloads
from container_update.emulator.kubernetes.tables.texts import age

_ABOUT = {
    "Age": "The time since the object was created.",
    "Name": "The object's name, unique among its kind in a namespace.",
}


@dataclass(frozen=True)
class Column:
    """A column: its header, its JSON type, and whether only ``-o wide`` shows it."""

    name: str
    type: str = "string"
    wide: bool = False

    def definition(self, text_format: str = "") -> Json:
        """Return the entry of ``columnDefinitions``."""
        return {
            "name": self.name,
            "type": self.type,
            "format": text_format,
            "description": _ABOUT.get(self.name, f"{self.name}, as of now."),
            "priority": int(self.wide),
        }


@dataclass(frozen=True)
class Layout:
    """The layout of a kind's table."""

    columns: tuple[Column, ...]
    """The columns after the name."""
    more_cells: Callable[[Json], list[Any]]
    """Returns an object's cells for them."""
    named: bool = True
    """Whether the first column is the name."""

    def definitions(self) -> list[Json]:
        """Return the table's ``columnDefinitions``."""
        name = [Column("Name").definition("name")] if self.named else []
        return name + [column.definition() for column in self.columns]

    def cells(self, item: Json) -> list[Any]:
        """Return all cells of an object."""
        name = [item["metadata"].get("name", "")] if self.named else []
        return name + self.more_cells(item)


def of(resource: str) -> Layout:
    """Return the layout of a resource's table."""
    return _LAYOUTS.get(resource, _PLAIN)


def _columns(text: str) -> tuple[Column, ...]:
    """Parse 'Desired:integer, Age, Images*': a star for columns that only -o wide shows."""
    parts = (part.strip().partition(":") for part in text.split(","))
    return tuple(
        Column(name.rstrip("*"), kind or "string", name.endswith("*")) for name, _, kind in parts
    )


_WORKLOAD = "Containers*, Images*, Selector*"
_PLAIN = Layout(_columns("Age"), lambda item: [age(item)])
_LAYOUTS: Mapping[str, Layout] = {
    "pods": Layout(
        _columns("Ready, Status, Restarts, Age, IP*, Node*, Nominated Node*, Readiness Gates*"),
        pods.cells,
    ),
    "deployments": Layout(
        _columns(f"Ready, Up-to-date, Available, Age, {_WORKLOAD}"), workloads.deployment
    ),
    "replicasets": Layout(
        _columns(f"Desired:integer, Current:integer, Ready:integer, Age, {_WORKLOAD}"),
        workloads.replica_set,
    ),
    "daemonsets": Layout(
        _columns(
            "Desired:integer, Current:integer, Ready:integer, Up-to-date:integer, "
            f"Available:integer, Node Selector, Age, {_WORKLOAD}"
        ),
        workloads.daemon_set,
    ),
    "statefulsets": Layout(_columns("Ready, Age, Containers*, Images*"), workloads.stateful_set),
    "jobs": Layout(_columns(f"Status, Completions, Duration, Age, {_WORKLOAD}"), workloads.job),
    "cronjobs": Layout(
        _columns(f"Schedule, Timezone, Suspend, Active:integer, Last Schedule, Age, {_WORKLOAD}"),
        workloads.cron_job,
    ),
    "configmaps": Layout(_columns("Data, Age"), objects.config_map),
    "secrets": Layout(_columns("Type, Data, Age"), objects.secret),
    "services": Layout(
        _columns("Type, Cluster-IP, External-IP, Port(s), Age, Selector*"), objects.service
    ),
    "namespaces": Layout(_columns("Status, Age"), objects.namespace),
    "nodes": Layout(
        _columns(
            "Status, Roles, Age, Version, Internal-IP*, External-IP*, OS-Image*, "
            "Kernel-Version*, Container-Runtime*"
        ),
        objects.node,
    ),
    "leases": Layout(_columns("Holder, Age"), objects.lease),
    "poddisruptionbudgets": Layout(
        _columns("Min Available, Max Unavailable, Allowed Disruptions:integer, Age"), objects.budget
    ),
    "endpoints": Layout(_columns("Endpoints, Age"), objects.endpoints),
    "endpointslices": Layout(
        _columns("AddressType, Ports, Endpoints, Age"), objects.endpoint_slice
    ),
    "controllerrevisions": Layout(
        _columns("Controller, Revision:integer, Age"), objects.controller_revision
    ),
    "serviceaccounts": Layout(_columns("Secrets, Age"), objects.service_account),
    "customresourcedefinitions": Layout(_columns("Created At:date"), objects.definition),
    "events": Layout(
        _columns(
            "Last Seen, Type, Reason, Object, Subobject*, Source*, Message, First Seen*, "
            "Count*:integer, Name*"
        ),
        objects.event,
        named=False,
    ),
}
