# SPDX-License-Identifier: Apache-2.0
"""What Heat stores: stacks, their resources and events."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from container_update.emulator.clock import stamp
from container_update.emulator.heat import hot
from container_update.emulator.heat.resource_types import GROUP, shown_attributes
from container_update.emulator.json_type import Json

if TYPE_CHECKING:
    from container_update.emulator.heat.engine.traversals import Traversal

STACK = "OS::Heat::Stack"
"""The type of the resource that a stack is in its own events."""


def new_id() -> str:
    """Return a new id in the form that OpenStack's services use."""
    return str(uuid.uuid4())


@dataclass(eq=False)
class StackResource:
    """A resource of a stack."""

    name: str
    kind: str
    stack: Stack
    properties: Json = field(default_factory=dict)
    """Resolved, as they were last applied with success."""
    physical_id: str | None = None
    action: str = "INIT"
    status: str = "COMPLETE"
    reason: str = ""
    nested: Stack | None = None
    facts: Json = field(default_factory=dict)
    """What its service knows: a server's status and image, a port's address. Empty: nothing."""
    needs: frozenset[str] = frozenset()
    """The names of the resources that it depended on when it was last worked on."""
    created: str = field(default_factory=stamp)
    updated: str = field(default_factory=stamp)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the traversal that works on it. Its replacement takes it over."""

    @property
    def state(self) -> str:
        """The value of ``resource_status``."""
        return f"{self.action}_{self.status}"

    def enter(self, action: str, status: str, reason: str = "") -> None:
        """Enter a state and add an event for it."""
        self.action, self.status, self.reason = action, status, reason or "state changed"
        if action == "UPDATE":
            self.updated = stamp()
        label = self.physical_id or f"{self.stack.name}-{self.name}"
        self.stack.add_event(self.name, self.kind, label, self.state, reason)


@dataclass
class StackEvent:
    """Something that happened to a stack or a resource of it."""

    stack: Stack
    name: str
    kind: str
    physical_id: str
    status: str
    reason: str
    number: int
    time: str = field(default_factory=stamp)
    id: str = field(default_factory=new_id)


@dataclass(eq=False)
class Stack:
    """A stack, top-level or nested."""

    name: str
    template: Json
    parameters: Json
    """As given; see :meth:`values`."""
    files: dict[str, str]
    parent: StackResource | None = None
    """The resource that this one is nested in."""
    environment: Json = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    timeout_mins: int | None = None
    disable_rollback: bool = True
    id: str = field(default_factory=new_id)
    action: str = "CREATE"
    status: str = "IN_PROGRESS"
    reason: str = "Stack CREATE started"
    resources: dict[str, StackResource] = field(default_factory=dict)
    replaced: list[StackResource] = field(default_factory=list)
    """Resources with a replacement in :attr:`resources`, until they are deleted."""
    events: list[StackEvent] = field(default_factory=list)
    created: str = field(default_factory=stamp)
    updated: str | None = None
    deleted: str | None = None
    before: tuple[Json, Json, dict[str, str]] | None = None
    """Template, parameters and files before the last update, for a rollback."""
    traversal: Traversal | None = None
    """The one that began last."""
    _waiting: list[asyncio.Future[None]] = field(default_factory=list)

    def enter(self, action: str, status: str, reason: str = "") -> None:
        """Enter a state and add an event for it."""
        started = f"Stack {action} started"
        done = f"Stack {action} completed successfully"
        self.action, self.status = action, status
        self.reason = reason or (started if status == "IN_PROGRESS" else done)
        if status == "IN_PROGRESS" and action in ("UPDATE", "ROLLBACK"):
            self.updated = stamp()
        if (action, status) == ("DELETE", "COMPLETE"):
            self.deleted = stamp()
        self.add_event(self.name, STACK, self.id, self.state, self.reason)
        if status != "IN_PROGRESS":
            for future in self._waiting:
                if not future.done():
                    future.set_result(None)
            self._waiting.clear()

    async def wait_until_settled(self) -> None:
        """Wait until the stack is not IN_PROGRESS."""
        while self.status == "IN_PROGRESS":
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future

    def add_event(self, name: str, kind: str, physical_id: str, status: str, reason: str) -> None:
        """Add an event."""
        number, reason = self.root.next_number(), reason or "state changed"
        self.events.append(StackEvent(self, name, kind, physical_id, status, reason, number))

    @property
    def root(self) -> Stack:
        """The top-level stack that this one is nested in; itself if it is one."""
        return self.parent.stack.root if self.parent else self

    _numbers: int = 0

    def next_number(self) -> int:
        """Return a number by which the events of all levels can be put in order."""
        self._numbers += 1
        return self._numbers

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

    def scope(self) -> hot.TemplateScope:
        """Return what the template's functions look up."""
        return hot.TemplateScope(self.values(), self._reference, self._attribute, self.files)

    def _reference(self, name: str) -> str | None:
        return self.resources[name].physical_id if name in self.resources else None

    def _attribute(self, name: str, path: list[Any]) -> Any:
        if name not in self.resources:
            return None
        return hot.walk(attributes(self.resources[name]), path)

    def all_resources(self) -> Iterator[StackResource]:
        """Yield the resources, those that are being replaced included."""
        yield from [*self.resources.values(), *self.replaced]

    def walk(self, depth: int) -> Iterator[StackResource]:
        """Yield the resources, and those of nested stacks down to a depth."""
        for resource in list(self.resources.values()):
            yield resource
            if depth > 0 and resource.nested is not None:
                yield from resource.nested.walk(depth - 1)

    def outputs(self) -> list[Json]:
        """Return the template's outputs with their values."""
        scope = self.scope()
        shown = []
        for name, output in (self.template.get("outputs") or {}).items():
            description = output.get("description", "No description given")
            entry = {"output_key": name, "description": description}
            if self.action == "DELETE":  # its template is gone already
                entry |= {"output_error": "The resources are being deleted.", "output_value": None}
            else:
                entry["output_value"] = hot.resolve(output.get("value"), scope)
            shown.append(entry)
        return shown


def attributes(resource: StackResource) -> Json:
    """Return the attributes that ``get_attr`` finds in a resource."""
    nested = resource.nested
    if nested is None:
        return {**resource.properties, **shown_attributes(resource), **_addresses(resource)}
    outputs = {output["output_key"]: output["output_value"] for output in nested.outputs()}
    if resource.kind != GROUP:
        return outputs
    references = {  # of a member that failed, Heat shows nothing
        member.name: member.physical_id
        for member in nested.resources.values()
        if member.status != "FAILED"
    }
    of_members: Json = {
        key.removeprefix("outputs, "): {name: value.get(name) for name in references}
        for key, value in outputs.items()
        if key.startswith("outputs, ")
    }
    return {
        "current_size": len(references),
        "refs": list(references.values()),
        "refs_map": references,
        "outputs": of_members,
        "outputs_list": {key: list(values.values()) for key, values in of_members.items()},
    }


def _addresses(resource: StackResource) -> Json:
    """Return a server's addresses: those of its ports."""
    ports = {entry.get("port") for entry in resource.properties.get("networks") or []}
    fixed = [
        entry["ip_address"]
        for other in resource.stack.resources.values()
        if other.physical_id in ports
        for entry in other.facts.get("fixed_ips", [])
    ]
    return {"first_address": fixed[0]} if fixed else {}
