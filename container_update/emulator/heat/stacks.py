"""What Heat stores: stacks, their resources and events."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from container_update.emulator.clock import stamp
from container_update.emulator.heat import hot
from container_update.emulator.heat.resource_types import GROUP, SERVER
from container_update.emulator.json_type import Json


def new_id() -> str:
    """Return a new id in the form that OpenStack's services use."""
    return str(uuid.uuid4())


@dataclass
class Resource:
    """A resource of a stack."""

    name: str
    kind: str
    stack: Stack
    properties: Json = field(default_factory=dict)
    """Resolved, as they were last applied."""
    physical_id: str | None = None
    action: str = "INIT"
    status: str = "COMPLETE"
    reason: str = ""
    nested: Stack | None = None
    facts: Json = field(default_factory=dict)
    """What its service knows: a server's status, a port's address."""
    created: str = field(default_factory=stamp)
    updated: str = field(default_factory=stamp)

    def enter(self, action: str, status: str, reason: str = "") -> None:
        """Enter a state and add an event for it."""
        self.action, self.status, self.reason = action, status, reason or "state changed"
        self.updated = stamp()
        self.stack.add_event(
            self.name, self.kind, self.physical_id or "", f"{action}_{status}", reason
        )


@dataclass
class Event:
    """Something that happened to a stack or a resource of it."""

    name: str
    kind: str
    physical_id: str
    status: str
    reason: str
    time: str = field(default_factory=stamp)
    id: str = field(default_factory=new_id)


@dataclass
class Stack:
    """A stack, top-level or nested."""

    name: str
    template: Json
    parameters: Json
    """As given; see :meth:`values`."""
    files: dict[str, str]
    parent: Resource | None = None
    """The resource that this one is nested in."""
    environment: Json = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    timeout_mins: int | None = None
    disable_rollback: bool = True
    id: str = field(default_factory=new_id)
    action: str = "CREATE"
    status: str = "IN_PROGRESS"
    reason: str = "Stack CREATE started"
    resources: dict[str, Resource] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    created: str = field(default_factory=stamp)
    updated: str | None = None
    deleted: str | None = None
    task: asyncio.Task[None] | None = None
    """The action in progress."""

    def enter(self, action: str, status: str, reason: str = "") -> None:
        """Enter a state and add an event for it."""
        started = f"Stack {action} started"
        done = f"Stack {action} completed successfully"
        self.action, self.status = action, status
        self.reason = reason or (started if status == "IN_PROGRESS" else done)
        if action == "UPDATE":
            self.updated = stamp()
        if (action, status) == ("DELETE", "COMPLETE"):
            self.deleted = stamp()
        self.add_event(self.name, "OS::Heat::Stack", self.id, self.state, self.reason)

    def add_event(self, name: str, kind: str, physical_id: str, status: str, reason: str) -> None:
        """Add an event."""
        self.events.append(Event(name, kind, physical_id, status, reason or "state changed"))

    @property
    def state(self) -> str:
        """The value of ``stack_status``."""
        return f"{self.action}_{self.status}"

    @property
    def hidden(self) -> set[str]:
        """The parameters that the template or a nested one declares as hidden."""
        nested = [
            hot.parse(text)
            for name, text in self.files.items()
            if hot.is_nested(name) and "hidden" in text
        ]
        return {
            name
            for template in (self.template, *nested)
            for name, schema in (template.get("parameters") or {}).items()
            if schema.get("hidden")
        }

    def values(self) -> Json:
        """Return every parameter's value, Heat's pseudo parameters included."""
        own = hot.parameters(self.template, self.parameters)
        return {**own, "OS::stack_name": self.name, "OS::stack_id": self.id}

    def scope(self) -> hot.Scope:
        """Return what the template's functions look up."""
        return hot.Scope(self.values(), self._reference, self._attribute, self.files)

    def _reference(self, name: str) -> str | None:
        return self.resources[name].physical_id if name in self.resources else None

    def _attribute(self, name: str, path: list[Any]) -> Any:
        if name not in self.resources:
            return None
        return hot.walk(attributes(self.resources[name]), path)

    def walk(self, depth: int) -> Iterator[Resource]:
        """Yield the resources, and those of nested stacks down to a depth."""
        for resource in self.resources.values():
            yield resource
            if depth > 0 and resource.nested is not None:
                yield from resource.nested.walk(depth - 1)

    def outputs(self) -> list[Json]:
        """Return the template's outputs with their values."""
        scope = self.scope()
        return [
            {
                "output_key": name,
                "output_value": hot.resolve(output.get("value"), scope),
                "description": output.get("description", "No description given"),
            }
            for name, output in (self.template.get("outputs") or {}).items()
        ]


def attributes(resource: Resource) -> Json:
    """Return the attributes that ``get_attr`` and the API show of a resource."""
    if resource.kind == GROUP and resource.nested is not None:
        members = resource.nested.resources.values()
        refs = {member.name: member.physical_id for member in members}
        return {"current_size": len(refs), "refs": list(refs.values()), "refs_map": refs}
    if resource.nested is not None:
        outputs = resource.nested.outputs()
        return {output["output_key"]: output["output_value"] for output in outputs}
    shown = {"id": resource.physical_id, **resource.properties, **resource.facts}
    if resource.kind == SERVER:  # as Nova has it: empty where it boots from a volume
        image = resource.properties.get("image")
        shown["image"] = {"id": image} if image else ""
    return shown
