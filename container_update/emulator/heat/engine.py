"""Heat's engine: brings stacks to what their templates say, one resource after the other."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from container_update.emulator.heat import hot, resource_types
from container_update.emulator.heat.api_errors import OpenStackApiError
from container_update.emulator.heat.faults import CloudFaults
from container_update.emulator.heat.stacks import Resource, Stack, new_id
from container_update.emulator.json_type import Json

_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"


class ResourceFailedError(Exception):
    """A resource failed.

    :param error: Heat's name of the error.
    :param path: the names of the resources that it is nested in, then its own.
    :param reason: the service's message.
    """

    def __init__(self, error: str, path: tuple[str, ...], reason: str) -> None:
        super().__init__(reason)
        self.error, self.path, self.reason = error, path, reason

    def __str__(self) -> str:
        where = ".".join(f"resources.{name}" for name in self.path)
        return f"{self.error}: {where}: {self.reason}"

    def nested_in(self, name: str) -> ResourceFailedError:
        """Return the error as the parent stack reports it."""
        return ResourceFailedError(self.error, (name, *self.path), self.reason)


class Engine:
    """Creates, updates and deletes stacks.

    :param faults: which resources fail.
    :param servers: returns how many servers there are, for the quota.
    """

    def __init__(self, faults: CloudFaults, servers: Callable[[], int]) -> None:
        self._faults = faults
        self._servers = servers

    # --- stacks ---------------------------------------------------------------------------------

    async def run(self, stack: Stack, action: str, work: Coroutine[Any, Any, None]) -> None:
        """Run an action to COMPLETE; at FAILED, raise ResourceFailedError."""
        stack.enter(action, "IN_PROGRESS")
        try:
            await work
        except ResourceFailedError as error:
            stack.enter(action, "FAILED", f"Resource {action} failed: {error}")
            raise
        except OpenStackApiError as error:
            stack.enter(action, "FAILED", error.message)
            raise ResourceFailedError(error.kind, (), error.message) from error
        stack.enter(action, "COMPLETE")

    async def create(self, stack: Stack) -> None:
        """Create all resources of a stack."""
        await self.run(stack, "CREATE", self._converge(stack))

    async def update(
        self, stack: Stack, template: Json, given: Json, files: dict[str, str]
    ) -> None:
        """Bring a stack to a template, parameters and files; roll back if it fails and may."""
        before = stack.template, stack.parameters, stack.files
        stack.template, stack.parameters, stack.files = template, given, files
        try:
            await self.run(stack, "UPDATE", self._converge(stack))
        except ResourceFailedError:
            if stack.disable_rollback:
                raise
            stack.template, stack.parameters, stack.files = before
            await self.run(stack, "ROLLBACK", self._converge(stack))

    async def delete(self, stack: Stack) -> None:
        """Delete a stack and all its resources."""
        await self.run(stack, "DELETE", self._empty(stack))

    async def _converge(self, stack: Stack) -> None:
        replaced: list[Resource] = []
        for name in hot.in_order(stack.template):
            definition = hot.resources(stack.template)[name]
            properties = hot.resolve(definition.get("properties") or {}, stack.scope())
            existing = stack.resources.get(name)
            if existing is None:
                await self._create(Resource(name, definition["type"], stack), properties)
            elif _must_be_replaced(existing, definition["type"], properties):
                replaced.append(existing)
                await self._create(Resource(name, definition["type"], stack), properties)
            else:
                await self._update(existing, properties)
        defined = hot.resources(stack.template)
        removed = [entry for name, entry in stack.resources.items() if name not in defined]
        for resource in [*reversed(replaced), *reversed(removed)]:
            await self._delete(resource)

    async def _empty(self, stack: Stack) -> None:
        for resource in reversed(list(stack.resources.values())):
            await self._delete(resource)

    # --- resources ------------------------------------------------------------------------------

    async def _create(self, resource: Resource, properties: Json) -> None:
        resource.stack.resources[resource.name] = resource
        resource.properties = properties
        resource.enter("CREATE", "IN_PROGRESS")
        if resource.kind == resource_types.SERVER:
            self._check_quota(resource)
        resource.physical_id = new_id()
        resource.facts = resource_types.first_facts(resource.kind, properties)
        await self._do(resource, "CREATE", properties)

    async def _update(self, resource: Resource, properties: Json) -> None:
        """Update a resource, unless it is as it should be."""
        unchanged, nested = resource.properties == properties, resource.nested
        if nested is None and unchanged and resource.status == "COMPLETE":
            return
        if nested is not None and unchanged and _is_healthy(nested):
            template = _nested_template(resource, properties, nested)
            parameters = _nested_parameters(resource, properties)
            desired = (template, parameters, resource.stack.files)
            if (nested.template, nested.parameters, nested.files) == desired:
                return
        resource.enter("UPDATE", "IN_PROGRESS")
        await self._do(resource, "UPDATE", properties)
        resource.properties = properties

    async def _delete(self, resource: Resource) -> None:
        resource.enter("DELETE", "IN_PROGRESS")
        await self._do(resource, "DELETE", resource.properties)
        if resource.stack.resources.get(resource.name) is resource:
            del resource.stack.resources[resource.name]

    async def _do(self, resource: Resource, action: str, properties: Json) -> None:
        try:
            await self._apply_fault(resource, action, properties)
            await self._do_nested(resource, action, properties)
        except ResourceFailedError as error:
            resource.enter(action, "FAILED", str(error))
            if resource.kind == resource_types.SERVER:
                resource.facts["status"] = "ERROR"
            raise
        if action == "UPDATE" and resource.nested is None:
            resource.facts["updates"] = resource.facts.get("updates", 0) + 1
        resource.enter(action, "COMPLETE")

    async def _apply_fault(self, resource: Resource, action: str, properties: Json) -> None:
        fault = self._faults.find(resource.kind, resource.name, action, properties)
        if fault is not None and fault.stuck:
            await self._faults.wait_for_release()
        elif fault is not None:
            raise ResourceFailedError(fault.error, (resource.name,), fault.reason)
        await asyncio.sleep(self._faults.seconds)

    async def _do_nested(self, resource: Resource, action: str, properties: Json) -> None:
        if resource.kind != resource_types.GROUP and not hot.is_nested(resource.kind):
            return
        try:
            if action == "DELETE":
                if resource.nested is not None:
                    await self.delete(resource.nested)
            elif resource.nested is None:
                resource.nested = _nested_stack(resource, properties)
                resource.physical_id = resource.nested.id
                await self.create(resource.nested)
            else:
                template = _nested_template(resource, properties, resource.nested)
                given = _nested_parameters(resource, properties)
                await self.update(resource.nested, template, given, resource.stack.files)
        except ResourceFailedError as error:
            raise error.nested_in(resource.name) from error

    def _check_quota(self, resource: Resource) -> None:
        limit, used = self._faults.servers_allowed, self._servers()
        if limit is not None and used >= limit:
            reason = (
                f"Quota exceeded for instances: Requested 1, but already used {used} of {limit} "
                "instances (HTTP 403)"
            )
            error = ResourceFailedError("Forbidden", (resource.name,), reason)
            resource.enter("CREATE", "FAILED", str(error))
            raise error


def _must_be_replaced(resource: Resource, kind: str, properties: Json) -> bool:
    """Return whether an update replaces a resource: failed, unhealthy, or another type."""
    broken = (resource.action, resource.status) in {("CREATE", "FAILED"), ("CHECK", "FAILED")}
    in_error = resource.status == "FAILED" and resource.facts.get("status") == "ERROR"
    if resource.nested is not None and resource.action != "CHECK":
        broken = False  # a nested stack is repaired by updating it
    other_kind = resource.kind != kind and not (
        hot.is_nested(kind) and hot.is_nested(resource.kind)
    )
    changed = resource_types.is_replaced(kind, resource.properties, properties)
    return broken or in_error or other_kind or changed


# --- nested stacks ------------------------------------------------------------------------------


def _nested_stack(resource: Resource, properties: Json) -> Stack:
    parent = resource.stack
    return Stack(
        name=f"{parent.name}-{resource.name}-{_random_name()}",
        template=_nested_template(resource, properties, None),
        parameters=_nested_parameters(resource, properties),
        files=parent.files,
        parent=resource,
    )


def _nested_parameters(resource: Resource, properties: Json) -> Json:
    return {} if resource.kind == resource_types.GROUP else dict(properties)


def _nested_template(resource: Resource, properties: Json, now: Stack | None) -> Json:
    """Return a nested file's template; for a group, one with a resource for each member."""
    if resource.kind == resource_types.GROUP:
        return _group_template(properties, _members(now) if now else [])
    definition = hot.resources(resource.stack.template)[resource.name]
    file = definition["type"]
    if file not in resource.stack.files:
        raise ResourceFailedError(
            "NotFound", (resource.name,), f'Could not fetch remote template "{file}"'
        )
    return hot.parse(resource.stack.files[file])


def _is_healthy(nested: Stack) -> bool:
    return nested.status == "COMPLETE" and all(
        resource.status == "COMPLETE" for resource in nested.walk(depth=99)
    )


def _members(group: Stack) -> list[str]:
    """Return the members in the order in which Heat removes them: unhealthy ones first."""
    members = sorted(group.resources.values(), key=lambda member: member.status != "FAILED")
    return [member.name for member in members]


def _group_template(properties: Json, members: list[str]) -> Json:
    size = int(properties.get("desired_capacity") or properties.get("min_size") or 0)
    kept = members[max(0, len(members) - size) :]
    names = kept + [_random_name() for _ in range(size - len(kept))]
    return {
        "heat_template_version": "2015-04-30",
        "resources": {name: dict(properties["resource"]) for name in names},
    }


def _random_name() -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(12))


async def ignore_failure(work: Coroutine[Any, Any, None]) -> None:
    """Await an action whose failure only the stack's state reports."""
    with suppress(ResourceFailedError):
        await work
