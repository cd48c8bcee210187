# SPDX-License-Identifier: Apache-2.0
"""What a traversal does with one resource that it visits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from container_update.emulator.heat import hot, resource_types, validation
from container_update.emulator.heat.api_errors import OpenStackApiError
from container_update.emulator.heat.engine import groups
from container_update.emulator.heat.engine.failures import (
    ResourceFailedError,
    below,
    cancellation,
    invalid,
    refusal,
)
from container_update.emulator.heat.engine.services import Services, is_in_error
from container_update.emulator.heat.faults import CloudFaults
from container_update.emulator.heat.stacks import Stack, StackResource
from container_update.emulator.json_type import Json

if TYPE_CHECKING:
    from container_update.emulator.heat.engine.traversals import Engine, Traversal

RETRIES = 5
"""How often Heat makes a server again that went to ERROR."""

_NOTHING_TO_DO = "Update status to COMPLETE for FAILED resource neither update nor replace."


def is_nested(kind: str) -> bool:
    """Return whether resources of this type have a stack of their own."""
    return kind == resource_types.GROUP or hot.is_nested(kind)


class Worker:
    """Creates, updates, replaces and deletes single resources.

    :param engine: for the nested stacks.
    """

    def __init__(self, engine: Engine, faults: CloudFaults, services: Services) -> None:
        self._engine = engine
        self._faults = faults
        self._services = services

    async def update(self, traversal: Traversal, name: str) -> None:
        """Bring a resource to its definition.

        :raises ResourceFailedError: it is FAILED.
        """
        stack = traversal.stack
        resource, definition = stack.resources[name], hot.resources(stack.template)[name]
        kind = definition["type"]
        try:
            properties = hot.resolve(definition.get("properties") or {}, stack.scope())
        except OpenStackApiError as error:
            raise invalid(name, error.message) from error
        if resource.state == "INIT_COMPLETE":
            await self._create(resource, properties)
        elif _must_be_replaced(resource, kind, properties):
            await self._replace(resource, kind, properties)
        elif is_nested(kind):
            resource.kind = kind
            await self._update_nested(traversal, resource, properties)
        elif resource.properties != properties:
            await self._update_in_place(resource, properties)
        elif resource.status == "FAILED":
            resource.enter("UPDATE", "COMPLETE", _NOTHING_TO_DO)
        stack.resources[name].needs = frozenset(hot.dependencies(definition))

    async def remove(self, resource: StackResource) -> None:
        """Delete a resource and forget it."""
        if resource.state != "INIT_COMPLETE":
            resource.enter("DELETE", "IN_PROGRESS")
            try:
                await self._delete_nested(resource)
                await self._services.delete(resource)
            except ResourceFailedError as error:
                resource.enter("DELETE", "FAILED", str(error))
                raise
            resource.enter("DELETE", "COMPLETE")
        stack = resource.stack
        if stack.resources.get(resource.name) is resource:
            del stack.resources[resource.name]
        if resource in stack.replaced:
            stack.replaced.remove(resource)

    # --- a resource of a service ----------------------------------------------------------------

    async def _create(self, resource: StackResource, properties: Json) -> None:
        resource.properties = properties
        fault = self._services.fault_of(resource, "CREATE", properties)
        for is_last in (*[False] * RETRIES, True):
            resource.enter("CREATE", "IN_PROGRESS")
            try:
                if is_nested(resource.kind):
                    await self._create_nested(resource, properties)
                else:
                    await self._services.create(resource, properties, fault)
            except ResourceFailedError as error:
                resource.enter("CREATE", "FAILED", str(error))
                if is_last or resource.facts.get("status") != "ERROR":
                    raise
                await self._delete_failed(resource)
            else:
                resource.enter("CREATE", "COMPLETE")
                return

    async def _delete_failed(self, resource: StackResource) -> None:
        resource.enter("DELETE", "IN_PROGRESS")
        await asyncio.sleep(self._faults.seconds)
        resource.facts = {}
        resource.enter("DELETE", "COMPLETE")
        await asyncio.sleep(self._faults.seconds)

    async def _update_in_place(self, resource: StackResource, properties: Json) -> None:
        resource.enter("UPDATE", "IN_PROGRESS")
        try:
            await self._services.update(resource, properties)
        except ResourceFailedError as error:
            resource.enter("UPDATE", "FAILED", str(error))
            raise
        resource.properties = properties
        resource.enter("UPDATE", "COMPLETE")

    async def _replace(self, resource: StackResource, kind: str, properties: Json) -> None:
        """Create another resource; the old one is cleaned up when nothing needs it any more."""
        if resource.status == "COMPLETE" and _policy_replaces(resource, properties):
            stack = resource.stack
            resource.enter("UPDATE", "IN_PROGRESS")
            of = f'"{resource.name}" [{resource.physical_id}] Stack "{stack.name}" [{stack.id}]'
            reason = f"The Resource Server {of} requires replacement."
            resource.enter("UPDATE", "COMPLETE", reason)
        new = StackResource(resource.name, kind, resource.stack, lock=resource.lock)
        resource.lock = asyncio.Lock()
        resource.stack.replaced.append(resource)
        resource.stack.resources[resource.name] = new
        await self._create(new, properties)

    # --- nested stacks --------------------------------------------------------------------------

    async def _create_nested(self, resource: StackResource, properties: Json) -> None:
        parent = resource.stack
        if resource.kind == resource_types.GROUP:
            template = groups.first_template(resource, properties)
        else:
            template = _file(resource)
        given = self._parameters(resource, template, properties)
        resource.nested = Stack(
            name=f"{parent.name}-{resource.name}-{groups.random_name()}",
            template=template,
            parameters=given,
            files=parent.files,
            parent=resource,
            timeout_mins=parent.timeout_mins,
        )
        resource.physical_id = resource.nested.id
        self._engine.create(resource.nested)
        await _until_settled(resource, resource.nested, "CREATE")

    async def _update_nested(
        self, traversal: Traversal, resource: StackResource, properties: Json
    ) -> None:
        """Update the nested stack, whether anything differs or not; a group's in batches."""
        resource.enter("UPDATE", "IN_PROGRESS")
        await asyncio.sleep(self._faults.seconds / 2)
        try:
            for template in _templates(resource, properties):
                if traversal.is_stopped:
                    raise cancellation(resource.name, "UPDATE")
                await self._bring(resource, template, properties)
        except ResourceFailedError as error:
            resource.enter("UPDATE", "FAILED", str(error))
            raise
        resource.properties = properties
        resource.enter("UPDATE", "COMPLETE")

    async def _bring(self, resource: StackResource, template: Json, properties: Json) -> None:
        nested, parent = resource.nested, resource.stack
        assert nested is not None
        given = self._parameters(resource, template, properties)
        nested.tags = []
        nested.timeout_mins = parent.timeout_mins
        self._engine.update(nested, template, given, parent.files)
        await _until_settled(resource, nested, "UPDATE")

    def _parameters(self, resource: StackResource, template: Json, properties: Json) -> Json:
        """Return the nested stack's parameters.

        :raises ResourceFailedError: they do not fit the template; the stack is not touched.
        """
        if resource.kind == resource_types.GROUP:
            return {}
        try:
            hot.parameters(template, properties)
        except OpenStackApiError as error:
            raise invalid(resource.name, error.message) from error
        files = resource.stack.files
        missing = validation.missing_image(template, properties, files, self._faults.images)
        if missing is not None:
            raise invalid(resource.name, "Property error: {}: {}".format(*missing))
        return dict(properties)

    async def _delete_nested(self, resource: StackResource) -> None:
        if resource.nested is not None and not resource.nested.deleted:
            self._engine.delete(resource.nested)
            await _until_settled(resource, resource.nested, "DELETE")


def _templates(resource: StackResource, properties: Json) -> Iterator[Json]:
    """Yield the templates that a nested stack is updated to, one after the other."""
    assert resource.nested is not None
    if resource.kind == resource_types.GROUP:
        yield from groups.next_templates(resource, resource.nested, properties)
    else:
        yield _file(resource)


def _file(resource: StackResource) -> Json:
    files = resource.stack.files
    if resource.kind not in files:
        reason = f'Could not fetch remote template "{resource.kind}"'
        raise refusal("NotFound", resource.name, reason)
    return hot.parse(files[resource.kind])


async def _until_settled(resource: StackResource, nested: Stack, action: str) -> None:
    await nested.wait_until_settled()
    if nested.state != f"{action}_COMPLETE":
        raise below(resource.name, action, nested.reason)


def _must_be_replaced(resource: StackResource, kind: str, properties: Json) -> bool:
    """Return whether an update replaces a resource: failed, unhealthy, or what cannot change."""
    if resource.state in ("CHECK_FAILED", "DELETE_COMPLETE"):
        return True
    nested = resource.nested
    if is_nested(kind) and nested is not None:
        return nested.action == "DELETE" or is_nested(resource.kind) != is_nested(kind)
    created = resource.action != "CREATE" and not is_in_error(resource)
    broken = resource.status == "FAILED" and not created
    changed = resource_types.is_replaced(kind, resource.properties, properties)
    return broken or resource.kind != kind or changed or _policy_replaces(resource, properties)


def _policy_replaces(resource: StackResource, properties: Json) -> bool:
    return resource.kind == resource_types.SERVER and resource_types.policy_replaces(
        resource.properties, properties
    )
