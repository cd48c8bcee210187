# SPDX-License-Identifier: Apache-2.0
"""The controllers' work queue: each key once, failures are retried, nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from container_update.emulator.kubernetes.api_errors import ApiError
from container_update.emulator.kubernetes.controllers.base import WorkQueue
from container_update.emulator.kubernetes.objects import Key
from tests.emulator import virtual_time

A, B = ("ns", "a"), ("ns", "b")


def _processed(
    use: Callable[[WorkQueue], Awaitable[None]], failures: list[Exception] | None = None
) -> list[Key]:
    """Return the keys in the order of processing; the first attempts raise *failures*."""
    processed: list[Key] = []
    waiting = list(failures or [])

    def work(key: Key) -> None:
        processed.append(key)
        if waiting:
            raise waiting.pop(0)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda *_: None)
        queue = WorkQueue(loop, work)
        await use(queue)
        queue.stop()

    virtual_time.run(run())
    return processed


async def _turns(number: int = 10) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


def test_a_key_added_again_before_its_turn_is_looked_at_once() -> None:
    async def use(queue: WorkQueue) -> None:
        for key in (A, B, A, B, A):
            queue.add(key)
        await _turns()

    assert _processed(use) == [A, B]


def test_a_conflict_is_tried_again_at_once() -> None:
    async def use(queue: WorkQueue) -> None:
        queue.add(A)
        await _turns()

    conflict = ApiError(409, "Conflict", "changed meanwhile")
    assert _processed(use, [conflict, conflict]) == [A, A, A]


def test_another_refusal_is_tried_again_later_and_holds_up_nobody() -> None:
    async def use(queue: WorkQueue) -> None:
        queue.add(A)
        queue.add(B)
        await virtual_time.pass_by(3600)

    refusal = ApiError(403, "Forbidden", "not now")
    assert _processed(use, [refusal]) == [A, B, A]


def test_an_error_in_one_look_does_not_stop_the_queue() -> None:
    async def use(queue: WorkQueue) -> None:
        queue.add(A)
        queue.add(B)
        await _turns()

    assert _processed(use, [KeyError("a mistake")]) == [A, B]


def test_of_two_times_the_earlier_counts() -> None:
    async def use(queue: WorkQueue) -> None:
        queue.add_after(A, 3600)
        queue.add_after(A, 0)
        queue.add_after(A, 3600)
        await virtual_time.pass_by(1800)

    assert _processed(use) == [A]


def test_a_stopped_queue_takes_nothing_and_forgets_what_it_has() -> None:
    async def use(queue: WorkQueue) -> None:
        queue.add(A)
        queue.add_after(B, 0)
        queue.stop()
        queue.add(B)
        await _turns()

    assert _processed(use) == []
