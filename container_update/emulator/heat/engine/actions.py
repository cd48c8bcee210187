# SPDX-License-Identifier: Apache-2.0
"""Heat's actions ``check`` and ``suspend``, as far as they were seen on a real Heat."""

from __future__ import annotations

import asyncio

from container_update.emulator.heat import resource_types
from container_update.emulator.heat.stacks import Stack, StackResource

_PARTLY = "Stack CHECK completed successfully. 'CHECK' not fully supported (see resources)"


async def check(stack: Stack, seconds: float) -> None:
    """Look at every resource, without a change to any."""
    stack.enter("CHECK", "IN_PROGRESS")
    healthy = [await _check(resource, seconds) for resource in list(stack.resources.values())]
    if stack.action != "CHECK":  # another action began meanwhile
        return
    kinds = {resource.kind for resource in stack.walk(depth=99)}
    reason = _PARTLY if kinds & resource_types.WITHOUT_CHECK else ""
    if all(healthy):
        stack.enter("CHECK", "COMPLETE", reason)
    else:
        stack.enter("CHECK", "FAILED", "Resource CHECK failed: a resource is not as it should be")


async def _check(resource: StackResource, seconds: float) -> bool:
    if resource.kind in resource_types.WITHOUT_CHECK:
        resource.enter("CHECK", "COMPLETE", f"CHECK not supported for {resource.kind}")
        return True
    resource.enter("CHECK", "IN_PROGRESS")
    if resource.nested is not None:
        await check(resource.nested, seconds)
        healthy = resource.nested.status != "FAILED"
    else:
        await asyncio.sleep(seconds)
        healthy = resource.facts.get("status") not in ("ERROR", None)
    reason = "" if healthy else f"Error: resources.{resource.name}: it is gone or in ERROR"
    resource.enter("CHECK", "COMPLETE" if healthy else "FAILED", reason)
    return healthy


def fail_to_suspend(stack: Stack) -> None:
    """Suspend a stack of which a resource is worked on: it cannot be updated from then on."""
    if stack.traversal is not None:
        stack.traversal.stop()
    stack.enter("SUSPEND", "IN_PROGRESS")
    busy = [entry for entry in stack.resources.values() if entry.status == "IN_PROGRESS"]
    for resource in busy[:1]:
        state = (resource.action, resource.status)
        reason = f"Error: resources.{resource.name}: State {state} invalid for suspend"
        stack.enter("SUSPEND", "FAILED", f"Resource SUSPEND failed: {reason}")
