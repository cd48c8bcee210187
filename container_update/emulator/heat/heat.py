# SPDX-License-Identifier: Apache-2.0
"""Heat's API, version 1: what a request does to which stack."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from container_update.emulator.heat import hot, resource_types, validation
from container_update.emulator.heat.api_errors import (
    bad_request,
    no_resource,
    no_stack,
    not_supported,
    stack_exists,
    stack_quota,
)
from container_update.emulator.heat.documents import Documents
from container_update.emulator.heat.engine import Engine, actions
from container_update.emulator.heat.faults import CloudFaults
from container_update.emulator.heat.stacks import Stack, StackResource
from container_update.emulator.json_type import Json

_UNHEALTHY = "state changed by resource_mark_unhealthy api"


class HeatService:
    """The stacks of one project. Everything here runs on the cloud's own thread.

    :param faults: quotas, and which resources fail.
    :param url: returns the service's address, with version and project.
    """

    def __init__(self, faults: CloudFaults, url: Callable[[], str]) -> None:
        self.stacks: list[Stack] = []
        """Every top-level stack, deleted ones included."""
        self.documents = Documents(url)
        self.engine = Engine(faults, lambda: sum(1 for _ in self.servers()))
        self._faults = faults

    # --- look-up --------------------------------------------------------------------------------

    def all_stacks(self) -> Iterator[Stack]:
        """Yield every stack, nested ones after their parents."""
        waiting = list(self.stacks)
        while waiting:
            stack = waiting.pop(0)
            yield stack
            nested = (resource.nested for resource in stack.all_resources())
            waiting += [inner for inner in nested if inner is not None]

    def servers(self) -> Iterator[StackResource]:
        """Yield every server that exists, those that are being replaced included."""
        for stack in self.all_stacks():
            for resource in stack.all_resources():
                if resource.kind == resource_types.SERVER and resource.facts:
                    yield resource

    def find(self, reference: str, name: str | None = None) -> Stack:
        """Return the stack of that id, or the stack of that name that is not deleted; else 404.

        :param name: the name that the stack of the id must have.
        """
        for stack in self.all_stacks():
            by_name = stack.name == reference and not stack.deleted
            if (stack.id == reference and name in (None, stack.name)) or by_name:
                return stack
        raise no_stack(name or reference)

    def resource(self, stack: Stack, name: str) -> StackResource:
        """Return a resource by its name or, as Heat allows, by its physical id."""
        for resource in stack.resources.values():
            if name in (resource.name, resource.physical_id):
                return resource
        raise no_resource(name, stack.name)

    # --- writing --------------------------------------------------------------------------------

    def create(self, body: Mapping[str, Any]) -> Json:
        """Start to create a stack."""
        name = str(body.get("stack_name", ""))
        validation.check_name(name)
        living = [stack for stack in self.stacks if not stack.deleted]
        if any(stack.name == name for stack in living):
            raise stack_exists(name)
        limit = self._faults.stacks_allowed
        if limit is not None and len(living) >= limit:
            raise stack_quota(limit)
        template, given, files = _read_request(body)
        validation.check(template, given, files, self._faults.images)
        stack = Stack(name, template, given, files, tags=_tags(body))
        stack.environment = _environment(body)
        _set_options(stack, body)
        self.stacks.append(stack)
        self.engine.create(stack)
        return {"stack": {"id": stack.id, "links": self.documents.links(stack)}}

    def update(self, stack: Stack, body: Mapping[str, Any], *, existing: bool) -> None:
        """Start to update a stack, even while another action on it is in progress.

        :param existing: what the body leaves out stays as it is (PATCH).
        """
        _refuse_deleted(stack)
        if stack.action in ("DELETE", "SUSPEND"):
            state = "deleting" if stack.action == "DELETE" else "suspended"
            raise not_supported(f"Updating a stack when it is {state}")
        if existing and not body.get("template"):
            body = {**body, "template": stack.template}
        template, given, files = _read_request(body)
        environment = _environment(body)
        if existing:
            cleared = set(body.get("clear_parameters") or [])
            kept = {key: value for key, value in stack.parameters.items() if key not in cleared}
            known = template.get("parameters") or {}
            given = {key: value for key, value in {**kept, **given}.items() if key in known}
            files = {**stack.files, **files}
            environment = {**stack.environment, **environment}
        validation.check(template, given, files, self._faults.images)
        if "tags" in body or not existing:
            stack.tags = _tags(body)
        stack.environment = environment
        _set_options(stack, body)
        self.engine.update(stack, template, given, files)

    def delete(self, stack: Stack) -> None:
        """Start to delete a stack; an action in progress is aborted."""
        _refuse_deleted(stack)
        if stack.state != "DELETE_IN_PROGRESS":
            self.engine.delete(stack)

    def mark_unhealthy(self, resource: StackResource, body: Mapping[str, Any]) -> None:
        """Mark a resource, so that the next update replaces it, or unmark it."""
        _refuse_deleted(resource.stack)
        reason = str(body.get("resource_status_reason") or _UNHEALTHY)
        resource.enter("CHECK", "FAILED" if body.get("mark_unhealthy") else "COMPLETE", reason)

    # --- actions --------------------------------------------------------------------------------

    def act(self, stack: Stack, names: list[str]) -> None:
        """Start one of Heat's actions."""
        _refuse_deleted(stack)
        known: dict[str, Callable[[Stack], None]] = {
            "cancel_without_rollback": self.cancel,
            "cancel_update": self._cancel_update,
            "check": self._check,
            "suspend": self._suspend,
        }
        if len(names) != 1 or names[0] not in known:
            raise bad_request(f"Invalid action {names} specified", "HTTPBadRequest")
        known[names[0]](stack)

    def cancel(self, stack: Stack) -> None:
        """Cancel the action in progress, soon: the stack fails, its resources go on."""
        _refuse_cancel(stack, ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS"))
        self.engine.spawn(self._cancel_soon(stack))

    async def _cancel_soon(self, stack: Stack) -> None:
        traversal = stack.traversal
        await asyncio.sleep(self._faults.seconds)
        if stack.traversal is traversal:
            self.engine.cancel(stack)

    def _cancel_update(self, stack: Stack) -> None:
        _refuse_cancel(stack, ("UPDATE_IN_PROGRESS",))
        self.engine.roll_back(stack)

    def _check(self, stack: Stack) -> None:
        self.engine.spawn(actions.check(stack, self._faults.seconds))

    def _suspend(self, stack: Stack) -> None:
        if all(resource.status != "IN_PROGRESS" for resource in stack.resources.values()):
            raise not_supported("Suspending a stack of which no resource is worked on")
        actions.fail_to_suspend(stack)


def _refuse_deleted(stack: Stack) -> None:
    if stack.deleted:
        raise no_stack(stack.name)


def _refuse_cancel(stack: Stack, states: tuple[str, ...]) -> None:
    if stack.state not in states:
        raise not_supported(f"Cancelling update when stack is {stack.state}")


def _set_options(stack: Stack, body: Mapping[str, Any]) -> None:
    """Store the options that the request has. They stay until another request has them."""
    if body.get("timeout_mins") is not None:
        stack.timeout_mins = int(body["timeout_mins"])
    if body.get("disable_rollback") is not None:
        stack.disable_rollback = bool(body["disable_rollback"])


def _read_request(body: Mapping[str, Any]) -> tuple[Json, Json, dict[str, str]]:
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


def _tags(body: Mapping[str, Any]) -> list[str]:
    tags = body.get("tags") or []
    return [tag for tag in tags.split(",") if tag] if isinstance(tags, str) else list(tags)
