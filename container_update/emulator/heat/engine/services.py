# SPDX-License-Identifier: Apache-2.0
"""What Nova and the other services do with one resource, as long as it takes them.

A server's rebuild or resize goes on in Nova when Heat gives up waiting for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from container_update.emulator.heat import resource_types
from container_update.emulator.heat.engine.failures import refusal
from container_update.emulator.heat.faults import NO_HOST, CloudFaults, ResourceFault
from container_update.emulator.heat.stacks import StackResource, new_id
from container_update.emulator.json_type import Json

Spawn = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]

IN_ERROR = "ResourceInError"
"""Heat's name of the error of a server that Nova accepted and could not start."""

_GIB = 1024**3
_ACTIONS = {"flavor": ("resize", "RESIZE"), "image": ("rebuild", "REBUILD")}
"""The server's action for a property, in the order in which Heat asks for them, and its status."""


class Services:
    """The cloud's services.

    :param servers: returns how many servers there are, for the quota.
    :param spawn: starts what Heat does not wait for.
    """

    def __init__(self, faults: CloudFaults, servers: Callable[[], int], spawn: Spawn) -> None:
        self._faults = faults
        self._servers = servers
        self._spawn = spawn

    def fault_of(
        self, resource: StackResource, action: str, properties: Json
    ) -> ResourceFault | None:
        """Return what happens to a resource. It counts, so ask once for each action."""
        return self._faults.find(resource.kind, resource.name, action, properties)

    async def create(
        self, resource: StackResource, properties: Json, fault: ResourceFault | None
    ) -> None:
        """Create a resource."""
        is_server = resource.kind == resource_types.SERVER
        if is_server:
            self._check_quota(resource)
        if fault and not fault.stuck and fault.error != IN_ERROR:
            raise refusal(fault.error, resource.name, fault.reason)
        label = resource.physical_id or f"{resource.stack.name}-{resource.name}"
        resource.physical_id = resource_types.physical_id(
            resource.kind, label, new_id(), properties
        )
        resource.facts = resource_types.first_facts(resource.kind, properties)
        if is_server:
            resource.facts["status"] = "BUILD"
            resource.facts["disk"] = self._faults.disks.get(str(resource.facts["flavor"]))
        await self._take_time(resource, properties, fault)
        if fault and not fault.stuck:
            resource.facts["status"] = "ERROR"
            raise refusal(fault.error, resource.name, fault.reason)
        if is_server:
            resource.facts["status"] = "ACTIVE"

    async def update(self, resource: StackResource, properties: Json) -> None:
        """Change a resource in place."""
        fault = self.fault_of(resource, "UPDATE", properties)
        if resource.kind == resource_types.SERVER:
            await self._change_server(resource, properties, fault)
            return
        await self._take_time(resource, properties, fault)
        if fault and not fault.stuck:
            raise refusal(fault.error, resource.name, fault.reason)

    async def delete(self, resource: StackResource) -> None:
        """Delete a resource."""
        fault = self.fault_of(resource, "DELETE", resource.properties)
        await self._take_time(resource, {}, fault)
        if fault and not fault.stuck:
            raise refusal(fault.error, resource.name, fault.reason)
        resource.facts = {}

    async def _take_time(
        self, resource: StackResource, properties: Json, fault: ResourceFault | None
    ) -> None:
        if fault and fault.stuck:
            await self._faults.wait_for_release()
        asked = float(properties.get("wait_secs") or 0) * self._faults.minute / 60
        is_test = resource.kind == resource_types.TEST
        await asyncio.sleep(max(self._faults.seconds, asked if is_test else 0.0))

    # --- servers --------------------------------------------------------------------------------

    def _check_quota(self, resource: StackResource) -> None:
        limit, used = self._faults.servers_allowed, self._servers()
        if limit is not None and used >= limit:
            reason = (
                f"Quota exceeded for instances: Requested 1, but already used {used} of {limit} "
                "instances (HTTP 403)"
            )
            raise refusal("Forbidden", resource.name, reason)

    async def _change_server(
        self, resource: StackResource, properties: Json, fault: ResourceFault | None
    ) -> None:
        changed = [key for key in _ACTIONS if resource.properties.get(key) != properties.get(key)]
        if fault and not fault.stuck:
            if "flavor" in changed and fault.reason == NO_HOST:  # Nova gives up, Heat does not
                await self._faults.wait_for_release()
            if fault.ruins:
                resource.facts["status"] = "ERROR"
            raise refusal(fault.error, resource.name, fault.reason)
        for key in changed:
            self._check_state(resource, key, properties)
            is_stuck = fault is not None and fault.stuck and key == changed[0]
            task = self._spawn(self._act(resource.facts, key, properties.get(key), is_stuck))
            await asyncio.shield(task)
        if not changed:
            await self._take_time(resource, properties, fault)

    def _check_state(self, resource: StackResource, key: str, properties: Json) -> None:
        action, status = _ACTIONS[key][0], resource.facts["status"]
        if status != "ACTIVE":
            reason = f"Cannot '{action}' a server while it is in status {status} (HTTP 409)"
            raise refusal("Conflict", resource.name, reason)
        if key != "flavor":
            return
        disks, now = self._faults.disks, resource.facts["flavor"]
        asked = properties.get("flavor")
        if asked in disks and disks[asked] < disks.get(now, 0):
            reason = (
                "Flavor's disk is smaller than the minimum size specified in image metadata. "
                f"Flavor disk is {disks[asked] * _GIB} bytes, minimum size is "
                f"{disks[now] * _GIB} bytes. (HTTP 400)"
            )
            raise refusal("BadRequest", resource.name, reason)

    async def _act(self, facts: Json, key: str, value: Any, is_stuck: bool) -> None:
        """Rebuild or resize a server. What it was keeps its facts, should it be deleted."""
        action, status = _ACTIONS[key]
        facts["actions"].append(action)
        facts["status"] = status
        if is_stuck:
            await self._faults.wait_for_release()
        await asyncio.sleep(self._faults.seconds)
        facts[key] = value
        facts["disk"] = self._faults.disks.get(str(facts["flavor"]))
        facts["status"] = "ACTIVE"


def is_in_error(resource: StackResource) -> bool:
    """Return whether a resource that failed cannot be used any more."""
    if resource.kind == resource_types.SERVER:
        return bool(resource.facts.get("status", "ERROR") == "ERROR")
    return not resource.physical_id
