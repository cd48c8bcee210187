# SPDX-License-Identifier: Apache-2.0
"""What Heat's API shows of stacks, resources and events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from container_update.emulator.heat import hot
from container_update.emulator.heat.resource_types import shown_attributes
from container_update.emulator.heat.stacks import Stack, StackEvent, StackResource, attributes
from container_update.emulator.json_type import Json

OWNER = "operator"
"""The user who owns every stack."""


class Documents:
    """Writes documents.

    :param url: returns the service's address, with version and project.
    """

    def __init__(self, url: Callable[[], str]) -> None:
        self._url = url

    def url_of(self, stack: Stack) -> str:
        """Return the address of a stack, by name and id."""
        return f"{self._url()}/stacks/{stack.name}/{stack.id}"

    def links(self, stack: Stack) -> list[Json]:
        """Return the link to a stack."""
        return [{"href": self.url_of(stack), "rel": "self"}]

    @property
    def _project(self) -> str:
        return self._url().rpartition("/")[2]

    # --- stacks ---------------------------------------------------------------------------------

    def summary(self, stack: Stack) -> Json:
        """Return a stack as a list shows it: without description and, if it has none, tags."""
        return {
            "id": stack.id,
            "stack_name": stack.name,
            "stack_status": stack.state,
            "stack_status_reason": stack.reason,
            "creation_time": stack.created,
            "updated_time": stack.updated,
            "deletion_time": stack.deleted,
            "description": "",
            "parent": stack.parent.stack.id if stack.parent else None,
            "stack_owner": OWNER,
            "stack_user_project_id": stack.root.id.replace("-", ""),
            "tags": stack.tags or None,
            "links": self.links(stack),
        }

    def stack(self, stack: Stack, *, outputs: bool = True) -> Json:
        """Return all details of a stack."""
        values = {**stack.values(), "OS::project_id": self._project}
        description = stack.template.get("description", "No description")
        shown = {
            **self.summary(stack),
            "tags": stack.tags,
            "description": description,
            "template_description": description,
            "parameters": _mask({key: _text(value) for key, value in values.items()}, stack),
            "timeout_mins": stack.timeout_mins,
            "disable_rollback": stack.disable_rollback,
            "capabilities": [],
            "notification_topics": [],
        }
        return shown | ({"outputs": stack.outputs()} if outputs and not stack.deleted else {})

    def environment(self, stack: Stack) -> Json:
        """Return the environment with the parameters as they were given; hidden ones masked."""
        given = stack.environment
        return {
            **given,
            "parameters": _mask(stack.parameters, stack),
            "parameter_defaults": _mask(given.get("parameter_defaults", {}), stack),
            "resource_registry": given.get("resource_registry", {"resources": {}}),
            "event_sinks": given.get("event_sinks", []),
            "encrypted_param_names": given.get("encrypted_param_names", []),
        }

    # --- resources ------------------------------------------------------------------------------

    def resource(self, resource: StackResource, *, detailed: bool = False) -> Json:
        """Return a resource as a list shows it, or with its attributes."""
        body: Json = {
            "resource_name": resource.name,
            "logical_resource_id": resource.name,
            "physical_resource_id": resource.physical_id or "",
            "resource_type": resource.kind,
            "resource_status": resource.state,
            "resource_status_reason": resource.reason,
            "creation_time": resource.created,
            "updated_time": resource.updated,
            "required_by": [
                name
                for name, definition in hot.resources(resource.stack.template).items()
                if resource.name in hot.dependencies(definition)
            ],
            "links": self._resource_links(resource),
        }
        if resource.stack.parent is not None:
            body["parent_resource"] = resource.stack.parent.name
        if detailed:
            is_file = hot.is_nested(resource.kind)
            body["attributes"] = attributes(resource) if is_file else shown_attributes(resource)
            body["description"] = ""
        return body

    def _resource_links(self, resource: StackResource) -> list[Json]:
        stack = self.url_of(resource.stack)
        links = [
            {"href": f"{stack}/resources/{resource.name}", "rel": "self"},
            {"href": stack, "rel": "stack"},
        ]
        if resource.nested is not None:
            links.append({"href": self.url_of(resource.nested), "rel": "nested"})
        return links

    # --- events ---------------------------------------------------------------------------------

    def events(self, stack: Stack, *, depth: int = 0, of: str | None = None) -> list[Json]:
        """Return the stack's events, newest first.

        :param depth: how many levels of nested stacks are shown too.
        :param of: the name of the one resource whose events are asked for.
        """
        if depth and not hot.resources(stack.template):
            return []
        found = [
            event
            for each in _nested_stacks(stack, depth)
            for event in each.events
            if of in (None, event.name)
        ]
        found.sort(key=lambda event: -event.number)
        return [self._event(event, stack if depth else None) for event in found]

    def _event(self, event: StackEvent, root: Stack | None) -> Json:
        stack = self.url_of(event.stack)
        resource = f"{stack}/resources/{event.name}"
        links = [
            {"href": f"{resource}/events/{event.id}", "rel": "self"},
            {"href": resource, "rel": "resource"},
            {"href": stack, "rel": "stack"},
        ]
        if root is not None:
            links.append({"href": self.url_of(root), "rel": "root_stack"})
        return {
            "id": event.id,
            "event_time": event.time,
            "resource_name": event.name,
            "logical_resource_id": event.name,
            "physical_resource_id": event.physical_id,
            "resource_status": event.status,
            "resource_status_reason": event.reason,
            "links": links,
        }


def _nested_stacks(stack: Stack, depth: int) -> Iterator[Stack]:
    yield stack
    for resource in stack.all_resources():
        if depth > 0 and resource.nested is not None:
            yield from _nested_stacks(resource.nested, depth - 1)


def _mask(values: Mapping[str, Any], stack: Stack) -> Json:
    hidden = stack.hidden
    return {name: "******" if name in hidden else value for name, value in values.items()}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
