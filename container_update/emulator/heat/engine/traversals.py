# SPDX-License-Identifier: Apache-2.0
"""Traversals: every action on a stack visits its resources, as their dependencies allow.

A new action does not wait for the one before it: it begins a new traversal. Only a resource that
the older one still works on is locked until that work ends. An older traversal begins nothing more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from container_update.emulator.heat import hot
from container_update.emulator.heat.engine.failures import ResourceFailedError
from container_update.emulator.heat.engine.services import Services
from container_update.emulator.heat.engine.work import Worker, is_nested
from container_update.emulator.heat.faults import CloudFaults
from container_update.emulator.heat.stacks import STACK, Stack, StackResource
from container_update.emulator.json_type import Json

DEFAULT_TIMEOUT_MINS = 60
"""How long an action may take if no request says."""


@dataclass(eq=False)
class TraversalNode:
    """One visit: the update of a definition, or the clean-up of a resource that goes."""

    name: str
    goes: StackResource | None = None
    needs: set[TraversalNode] = field(default_factory=set)
    begun: bool = False


@dataclass(eq=False)
class Traversal:
    """One action on a stack."""

    stack: Stack
    action: str
    deadline: float
    nodes: set[TraversalNode] = field(default_factory=set)
    """The visits that have not ended with success."""
    is_over: bool = False
    """It begins nothing more."""
    is_stopped: bool = False
    """It is over because it was cancelled, or because another one took its place."""

    def stop(self) -> None:
        """Begin nothing more."""
        self.is_over = self.is_stopped = True

    def node_of(self, name: str) -> TraversalNode | None:
        """Return the node that updates a definition."""
        return next((node for node in self.nodes if node.name == name and not node.goes), None)

    def add_clean_up(self, resource: StackResource) -> None:
        """Delete a resource once nothing needs it: neither its replacement nor any other."""
        if any(node.goes is resource for node in self.nodes):
            return
        node = TraversalNode(resource.name, resource)
        if self.action != "DELETE":
            definitions = hot.resources(self.stack.template)
            users = [
                name
                for name, body in definitions.items()
                if resource.name in hot.dependencies(body)
            ]
            updates = (self.node_of(name) for name in (resource.name, *users))
            node.needs |= {update for update in updates if update is not None}
        for other in self.nodes:
            if other.goes and resource.name in other.goes.needs:
                node.needs.add(other)
            if other.goes and (other.name in resource.needs or other.name == resource.name):
                other.needs.add(node)
        self.nodes.add(node)


class Engine:
    """Creates, updates and deletes stacks. Every method returns at once; the stack says the rest.

    :param faults: which resources fail, and how long everything takes.
    :param servers: returns how many servers there are, for the quota.
    """

    def __init__(self, faults: CloudFaults, servers: Callable[[], int]) -> None:
        self._faults = faults
        self._worker = Worker(self, faults, Services(faults, servers, self.spawn))
        self.tasks: set[asyncio.Task[None]] = set()
        """Everything that goes on."""
        self._visits: dict[asyncio.Task[None], Stack] = {}

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start to do something that nothing waits for."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    # --- actions --------------------------------------------------------------------------------

    def create(self, stack: Stack) -> None:
        """Start to create a stack."""
        self._begin(stack, "CREATE")

    def update(self, stack: Stack, template: Json, given: Json, files: dict[str, str]) -> None:
        """Start to update a stack; a traversal that goes on ends where it is."""
        stack.before = (stack.template, stack.parameters, stack.files)
        stack.template, stack.parameters, stack.files = template, given, files
        self._begin(stack, "UPDATE")

    def roll_back(self, stack: Stack) -> None:
        """Start to bring a stack back to what it was before its last update, or to nothing."""
        empty: Json = {"heat_template_version": stack.template["heat_template_version"]}
        before = stack.before if stack.action == "UPDATE" and stack.before else (empty, {}, {})
        stack.template, stack.parameters, stack.files = before
        self._begin(stack, "ROLLBACK")

    def delete(self, stack: Stack) -> None:
        """Start to delete a stack; what goes on is aborted."""
        self._abort(stack)
        self._begin(stack, "DELETE")

    def cancel(self, stack: Stack) -> None:
        """End a traversal: the stack fails, and those nested in it. Their resources go on."""
        if stack.traversal is None or stack.status != "IN_PROGRESS":
            return
        stack.traversal.stop()
        stack.enter(stack.action, "FAILED", f"Stack {stack.action} cancelled")
        for resource in stack.all_resources():
            if resource.nested is not None:
                self.cancel(resource.nested)

    def _abort(self, stack: Stack) -> None:
        for task in [task for task, of in self._visits.items() if of is stack]:
            task.cancel()
        for resource in stack.all_resources():
            if resource.nested is not None and resource.nested.traversal is not None:
                resource.nested.traversal.stop()
                self._abort(resource.nested)

    # --- traversals -----------------------------------------------------------------------------

    def _begin(self, stack: Stack, action: str) -> None:
        minutes = DEFAULT_TIMEOUT_MINS if stack.timeout_mins is None else stack.timeout_mins
        deadline = asyncio.get_running_loop().time() + minutes * self._faults.minute
        older, traversal = stack.traversal, Traversal(stack, action, deadline)
        stack.traversal = traversal
        if older is not None:
            older.stop()
            self._end_nested(stack)
        stack.enter(action, "IN_PROGRESS")
        definitions = {} if action == "DELETE" else hot.resources(stack.template)
        nodes = {name: TraversalNode(name) for name in definitions}
        for name, node in nodes.items():
            needed = hot.dependencies(definitions[name]) & set(nodes)
            node.needs = {nodes[other] for other in needed}
            if name not in stack.resources:
                stack.resources[name] = StackResource(name, definitions[name]["type"], stack)
        traversal.nodes = set(nodes.values())
        removed = [entry for name, entry in stack.resources.items() if name not in definitions]
        for resource in [*removed, *stack.replaced]:
            traversal.add_clean_up(resource)
        self.spawn(self._start(traversal))

    async def _start(self, traversal: Traversal) -> None:
        """Let the request that began the traversal be answered, then visit."""
        await asyncio.sleep(self._faults.seconds / 2)
        self._advance(traversal)

    def _advance(self, traversal: Traversal) -> None:
        """Begin the visits that nothing stands before; end the traversal if there is none."""
        if traversal.is_over:
            return
        if not traversal.nodes:
            traversal.is_over = True
            traversal.stack.enter(traversal.action, "COMPLETE")
        for node in [node for node in traversal.nodes if not node.begun]:
            if not node.needs & traversal.nodes:
                node.begun = True
                task = self.spawn(self._visit(traversal, node))
                self._visits[task] = traversal.stack
                task.add_done_callback(self._visits.pop)

    async def _visit(self, traversal: Traversal, node: TraversalNode) -> None:
        stack = traversal.stack
        if node.goes is None and is_nested(stack.resources[node.name].kind):
            await asyncio.sleep(self._faults.seconds / 2)  # a message more than its siblings
        resource = node.goes or stack.resources[node.name]
        async with resource.lock:
            if traversal.is_over:
                return
            try:
                await self._work(traversal, node)
            except ResourceFailedError as error:
                failed = node.goes or stack.resources[node.name]
                self._fail(traversal, f"Resource {failed.action} failed: {error}")
                return
            except asyncio.TimeoutError:
                self._fail(traversal, "Timed out")
                return
        traversal.nodes.discard(node)
        self._advance(traversal)

    async def _work(self, traversal: Traversal, node: TraversalNode) -> None:
        """Do one visit's work within the time that the traversal has left."""
        stack = traversal.stack
        try:
            async with Limit(traversal.deadline):
                if node.goes is not None:
                    await self._worker.remove(node.goes)
                else:
                    await self._worker.update(traversal, node.name)
        except asyncio.TimeoutError:
            self._give_up(node.goes or stack.resources[node.name])
            raise
        finally:
            for resource in stack.replaced:
                traversal.add_clean_up(resource)

    def _give_up(self, resource: StackResource) -> None:
        """End the work on a resource: it took too long. Its service may go on."""
        if resource.status != "IN_PROGRESS":
            return
        stack, kind = resource.stack, resource.kind.rpartition(":")[2]
        task = f'{resource.action.lower()} from {kind} "{resource.name}" [{resource.physical_id}]'
        reason = f'(Task {task} Stack "{stack.name}" [{stack.id}] Timed out)'
        resource.enter(resource.action, "FAILED", f"{resource.action} aborted {reason}")
        if resource.nested is not None:
            self.cancel(resource.nested)

    def _end_nested(self, stack: Stack) -> None:
        """Let the stacks nested in one that gets a new traversal finish what they have begun."""
        for resource in stack.all_resources():
            nested = resource.nested
            if nested is not None and nested.status == "IN_PROGRESS" and resource.lock.locked():
                assert nested.traversal is not None
                nested.traversal.stop()
                self.spawn(self._finish(nested, nested.traversal))

    async def _finish(self, stack: Stack, traversal: Traversal) -> None:
        """Wait for the resources that a stopped traversal works on; then its stack has failed."""
        for resource in list(stack.all_resources()):
            async with resource.lock:
                pass
        if stack.traversal is traversal and stack.status == "IN_PROGRESS":
            stack.enter(stack.action, "FAILED", f"Stack {stack.action} cancelled")

    def _fail(self, traversal: Traversal, reason: str) -> None:
        """End a traversal. One that is over only leaves an event."""
        stack = traversal.stack
        if traversal.is_over:
            state = f"{traversal.action}_FAILED"
            stack.add_event(stack.name, STACK, stack.id, state, reason)
            return
        traversal.is_over = True
        stack.enter(traversal.action, "FAILED", reason)
        if not stack.disable_rollback and traversal.action in ("CREATE", "UPDATE"):
            self.roll_back(stack)


class Limit:
    """Ends what runs in an ``async with`` block with asyncio.TimeoutError at a time of the loop.

    Unlike ``asyncio.wait_for`` it makes no task of its own: work that fails at once has failed
    before any other task begins.
    """

    def __init__(self, at: float) -> None:
        self._at = at
        self._expired = False

    async def __aenter__(self) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        if loop.time() >= self._at:
            raise asyncio.TimeoutError

        def expire() -> None:
            self._expired = True
            task.cancel()

        self._timer = loop.call_at(self._at, expire)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        if self._expired and kind is asyncio.CancelledError:
            raise asyncio.TimeoutError from error
