"""The columns of each kind's table, and how the cells of a row come about."""

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
    """A column: its head, its JSON type, and whether only ``-o wide`` shows it."""

    name: str
    type: str = "string"
    wide: bool = False

    def definition(self, text_format: str = "") -> Json:
        """The entry of ``columnDefinitions``."""
        return {
            "name": self.name,
            "type": self.type,
            "format": text_format,
            "description": _ABOUT.get(self.name, f"{self.name}, as of now."),
            "priority": int(self.wide),
        }


@dataclass(frozen=True)
class Form:
    """A kind's table."""

    columns: tuple[Column, ...]
    """The columns after the name."""
    more_cells: Callable[[Json], list[Any]]
    """An object's cells for them."""
    named: bool = True
    """The first column is the name."""

    def definitions(self) -> list[Json]:
        """The table's ``columnDefinitions``."""
        name = [Column("Name").definition("name")] if self.named else []
        return name + [column.definition() for column in self.columns]

    def cells(self, item: Json) -> list[Any]:
        """The row of an object."""
        name = [item["metadata"].get("name", "")] if self.named else []
        return name + self.more_cells(item)


def of(resource: str) -> Form:
    """The table of a resource."""
    return _FORMS.get(resource, _PLAIN)


def _columns(text: str) -> tuple[Column, ...]:
    """'Desired:integer, Age, Images*': with types, a star for those that only -o wide shows."""
    found = []
    for part in text.split(","):
        name, _, kind = part.strip().partition(":")
        found.append(Column(name.rstrip("*"), kind or "string", name.endswith("*")))
    return tuple(found)


_WORKLOAD = "Containers*, Images*, Selector*"
_PLAIN = Form(_columns("Age"), lambda item: [age(item)])
_FORMS: Mapping[str, Form] = {
    "pods": Form(
        _columns("Ready, Status, Restarts, Age, IP*, Node*, Nominated Node*, Readiness Gates*"),
        pods.cells,
    ),
    "deployments": Form(
        _columns(f"Ready, Up-to-date, Available, Age, {_WORKLOAD}"), workloads.deployment
    ),
    "replicasets": Form(
        _columns(f"Desired:integer, Current:integer, Ready:integer, Age, {_WORKLOAD}"),
        workloads.replica_set,
    ),
    "daemonsets": Form(
        _columns(
            "Desired:integer, Current:integer, Ready:integer, Up-to-date:integer, "
            f"Available:integer, Node Selector, Age, {_WORKLOAD}"
        ),
        workloads.daemon_set,
    ),
    "statefulsets": Form(_columns("Ready, Age, Containers*, Images*"), workloads.stateful_set),
    "jobs": Form(_columns(f"Status, Completions, Duration, Age, {_WORKLOAD}"), workloads.job),
    "cronjobs": Form(
        _columns(f"Schedule, Timezone, Suspend, Active:integer, Last Schedule, Age, {_WORKLOAD}"),
        workloads.cron_job,
    ),
    "configmaps": Form(_columns("Data, Age"), objects.config_map),
    "secrets": Form(_columns("Type, Data, Age"), objects.secret),
    "services": Form(
        _columns("Type, Cluster-IP, External-IP, Port(s), Age, Selector*"), objects.service
    ),
    "namespaces": Form(_columns("Status, Age"), objects.namespace),
    "nodes": Form(
        _columns(
            "Status, Roles, Age, Version, Internal-IP*, External-IP*, OS-Image*, "
            "Kernel-Version*, Container-Runtime*"
        ),
        objects.node,
    ),
    "leases": Form(_columns("Holder, Age"), objects.lease),
    "poddisruptionbudgets": Form(
        _columns("Min Available, Max Unavailable, Allowed Disruptions:integer, Age"), objects.budget
    ),
    "endpoints": Form(_columns("Endpoints, Age"), objects.endpoints),
    "endpointslices": Form(_columns("AddressType, Ports, Endpoints, Age"), objects.endpoint_slice),
    "controllerrevisions": Form(
        _columns("Controller, Revision:integer, Age"), objects.controller_revision
    ),
    "serviceaccounts": Form(_columns("Secrets, Age"), objects.service_account),
    "customresourcedefinitions": Form(_columns("Created At:date"), objects.definition),
    "events": Form(
        _columns(
            "Last Seen, Type, Reason, Object, Subobject*, Source*, Message, First Seen*, "
            "Count*:integer, Name*"
        ),
        objects.event,
        named=False,
    ),
}
