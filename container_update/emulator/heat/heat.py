"""Heat's API, version 1: paths and bodies in, documents out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any

from container_update.emulator.heat import hot, resource_types
from container_update.emulator.heat.api_errors import (
    bad_request,
    no_resource,
    no_stack,
    not_supported,
    stack_busy,
    stack_exists,
    stack_quota,
)
from container_update.emulator.heat.engine import Engine, ignore_failure
from container_update.emulator.heat.faults import CloudFaults
from container_update.emulator.heat.stacks import Resource, Stack, attributes
from container_update.emulator.json_type import Json

_CANCELLABLE = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS")
"""The states of stacks whose action can be cancelled."""


class Heat:
    """The stacks of one project. Everything here runs on the cloud's own thread.

    :param faults: quotas, and which resources fail.
    :param url: returns the service's address, with version and project.
    """

    def __init__(self, faults: CloudFaults, url: Callable[[], str]) -> None:
        self.stacks: list[Stack] = []
        """Every top-level stack, deleted ones included."""
        self._faults = faults
        self._url = url
        self._engine = Engine(faults, lambda: sum(1 for _ in self.servers()))

    # --- look-up --------------------------------------------------------------------------------

    def all_stacks(self) -> Iterator[Stack]:
        """Yield every stack, nested ones after their parents."""
        waiting = list(self.stacks)
        while waiting:
            stack = waiting.pop(0)
            yield stack
            nested = (resource.nested for resource in stack.resources.values())
            waiting += [inner for inner in nested if inner is not None]

    def servers(self) -> Iterator[Resource]:
        """Yield every server that exists."""
        for stack in self.all_stacks():
            yield from (
                resource
                for resource in stack.resources.values()
                if resource.kind == resource_types.SERVER and resource.physical_id
            )

    def find(self, reference: str) -> Stack:
        """Return the stack of that id, or the stack of that name that is not deleted; else 404."""
        for stack in self.all_stacks():
            if stack.id == reference or (stack.name == reference and not stack.deleted):
                return stack
        raise no_stack(reference)

    def resource(self, stack: Stack, name: str) -> Resource:
        """Return a resource by its name or, as Heat allows, by its physical id."""
        for resource in stack.resources.values():
            if name in (resource.name, resource.physical_id):
                return resource
        raise no_resource(name, stack.name)

    # --- writing --------------------------------------------------------------------------------

    def create(self, body: Mapping[str, Any]) -> Json:
        """Start to create a stack."""
        name = str(body.get("stack_name", ""))
        living = [stack for stack in self.stacks if not stack.deleted]
        if any(stack.name == name for stack in living):
            raise stack_exists(name)
        limit = self._faults.stacks_allowed
        if limit is not None and len(living) >= limit:
            raise stack_quota(limit)
        template, given, files = _requested(body)
        stack = Stack(name, template, given, files, tags=_tags(body))
        stack.environment = _environment(body)
        stack.timeout_mins = body.get("timeout_mins")
        stack.disable_rollback = bool(body.get("disable_rollback", True))
        _validate(stack.template, given)
        self.stacks.append(stack)
        self._start(stack, "CREATE", self._engine.create(stack))
        return {"stack": {"id": stack.id, "links": self._links(stack)}}

    def update(self, stack: Stack, body: Mapping[str, Any], *, existing: bool) -> None:
        """Start to update a stack.

        :param existing: what the body leaves out stays as it is (PATCH).
        """
        self._refuse_busy(stack)
        if stack.action == "DELETE":
            raise not_supported("Updating a stack when it is deleting")
        if existing and not body.get("template"):
            body = {**body, "template": stack.template}
        template, given, files = _requested(body)
        if existing:
            cleared = set(body.get("clear_parameters") or [])
            kept = {key: value for key, value in stack.parameters.items() if key not in cleared}
            known = template.get("parameters") or {}
            given = {key: value for key, value in {**kept, **given}.items() if key in known}
            files = {**stack.files, **files}
        _validate(template, given)
        if "tags" in body or not existing:
            stack.tags = _tags(body)
        self._start(stack, "UPDATE", self._engine.update(stack, template, given, files))

    def delete(self, stack: Stack) -> None:
        """Start to delete a stack; an action in progress is cancelled."""
        if stack.deleted or stack.state == "DELETE_IN_PROGRESS":
            return
        if stack.task is not None:
            stack.task.cancel()
        self._start(stack, "DELETE", self._engine.delete(stack))

    def cancel(self, stack: Stack) -> None:
        """Cancel the action in progress; the resources that it was working on become FAILED."""
        if stack.state not in _CANCELLABLE or stack.task is None:
            raise not_supported(f"Cancelling update when stack is {stack.state}")
        stack.task.cancel()
        for resource in stack.walk(depth=99):
            if resource.status == "IN_PROGRESS":
                resource.enter(resource.action, "FAILED", "cancelled")
            if resource.nested is not None and resource.nested.status == "IN_PROGRESS":
                resource.nested.enter(resource.nested.action, "FAILED", "cancelled")
        stack.enter(stack.action, "FAILED", f"Stack {stack.action} cancelled")

    def mark_unhealthy(self, resource: Resource, body: Mapping[str, Any]) -> None:
        """Mark a resource, so that the next update replaces it, or unmark it."""
        self._refuse_busy(resource.stack)
        reason = str(body.get("resource_status_reason", ""))
        resource.enter("CHECK", "FAILED" if body.get("mark_unhealthy") else "COMPLETE", reason)

    def _refuse_busy(self, stack: Stack) -> None:
        if stack.deleted:
            raise no_stack(stack.id)
        if stack.status == "IN_PROGRESS":
            raise stack_busy(stack.name, stack.action)

    def _start(self, stack: Stack, action: str, work: Coroutine[Any, Any, None]) -> None:
        """Start an action; the stack is IN_PROGRESS before the request is answered."""
        stack.action, stack.status = action, "IN_PROGRESS"
        stack.task = asyncio.get_running_loop().create_task(ignore_failure(work))

    # --- documents ------------------------------------------------------------------------------

    def summary(self, stack: Stack) -> Json:
        """Return a stack as a list shows it."""
        return {
            "id": stack.id,
            "stack_name": stack.name,
            "stack_status": stack.state,
            "stack_status_reason": stack.reason,
            "creation_time": stack.created,
            "updated_time": stack.updated,
            "deletion_time": stack.deleted,
            "description": stack.template.get("description", ""),
            "parent": stack.parent.stack.id if stack.parent else None,
            "tags": stack.tags or None,
            "links": self._links(stack),
        }

    def document(self, stack: Stack) -> Json:
        """Return all details of a stack."""
        values = stack.values()
        shown = {name: _text(value) for name, value in values.items()}
        return {
            **self.summary(stack),
            "parameters": _masked(shown, stack),
            "outputs": stack.outputs(),
            "timeout_mins": stack.timeout_mins,
            "disable_rollback": stack.disable_rollback,
            "capabilities": [],
            "notification_topics": [],
            "template_description": stack.template.get("description", ""),
            "stack_owner": None,
        }

    def environment(self, stack: Stack) -> Json:
        """Return the environment with the parameters as they were given; hidden ones masked."""
        return {
            **stack.environment,
            "parameters": _masked(stack.parameters, stack),
            "parameter_defaults": _masked(stack.environment.get("parameter_defaults", {}), stack),
            "resource_registry": stack.environment.get("resource_registry", {"resources": {}}),
        }

    def resource_document(self, resource: Resource, *, detailed: bool = False) -> Json:
        """Return a resource as a list shows it, or with its attributes."""
        body: Json = {
            "resource_name": resource.name,
            "logical_resource_id": resource.name,
            "physical_resource_id": resource.physical_id or "",
            "resource_type": resource.kind,
            "resource_status": f"{resource.action}_{resource.status}",
            "resource_status_reason": resource.reason,
            "creation_time": resource.created,
            "updated_time": resource.updated,
            "required_by": [],
            "links": self._resource_links(resource),
        }
        if resource.stack.parent is not None:
            body["parent_resource"] = resource.stack.parent.name
        if detailed:
            body["attributes"] = attributes(resource)
            body["description"] = ""
        return body

    def events(self, stack: Stack) -> list[Json]:
        """Return the stack's events, oldest first."""
        return [
            {
                "id": event.id,
                "event_time": event.time,
                "resource_name": event.name,
                "logical_resource_id": event.name,
                "physical_resource_id": event.physical_id,
                "resource_status": event.status,
                "resource_status_reason": event.reason,
                "links": self._links(stack),
            }
            for event in stack.events
        ]

    def _links(self, stack: Stack) -> list[Json]:
        return [{"href": self.url_of(stack), "rel": "self"}]

    def url_of(self, stack: Stack) -> str:
        """Return the address of a stack, by name and id."""
        return f"{self._url()}/stacks/{stack.name}/{stack.id}"

    def _resource_links(self, resource: Resource) -> list[Json]:
        stack = self.url_of(resource.stack)
        links = [
            {"href": f"{stack}/resources/{resource.name}", "rel": "self"},
            {"href": stack, "rel": "stack"},
        ]
        if resource.nested is not None:
            links.append({"href": self.url_of(resource.nested), "rel": "nested"})
        return links


def _requested(body: Mapping[str, Any]) -> tuple[Json, Json, dict[str, str]]:
    """Return template, parameters and files of a request."""
    if not body.get("template"):
        raise bad_request("No template specified", "HTTPBadRequest")
    from_environment = _environment(body).get("parameters") or {}
    given = {**from_environment, **(body.get("parameters") or {})}
    return hot.parse(body["template"]), given, dict(body.get("files") or {})


def _environment(body: Mapping[str, Any]) -> Json:
    environment = body.get("environment") or {}
    if not isinstance(environment, dict):
        raise bad_request("Environment not in valid format", "HTTPBadRequest")
    return environment


def _validate(template: Json, given: Json) -> None:
    hot.parameters(template, given)
    hot.in_order(template)
    for name, definition in hot.resources(template).items():
        if not isinstance(definition, dict) or "type" not in definition:
            raise bad_request(f"resources.{name}: Resource has no type")


def _masked(values: Mapping[str, Any], stack: Stack) -> Json:
    hidden = stack.hidden
    return {name: "******" if name in hidden else value for name, value in values.items()}


def _tags(body: Mapping[str, Any]) -> list[str]:
    tags = body.get("tags") or []
    return [tag for tag in tags.split(",") if tag] if isinstance(tags, str) else list(tags)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
