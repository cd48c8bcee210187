# SPDX-License-Identifier: Apache-2.0
"""An operation as a loop over what happens in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

from container_update.model import context_threads
from container_update.model.cancellation import CancelToken
from container_update.model.outcome import Event, Outcome


def events(
    operation: Callable[..., Outcome | None], *arguments: Any, **named: Any
) -> Iterator[Event | Outcome]:
    """Carry out an operation in a thread; yield each event when it happens, the outcome last.

    >>> for event in events(update, request, cluster):  # doctest: +SKIP
    ...     if isinstance(event, StepResult):
    ...         print(event.step.key, event.state.value)
    ConfigMap cnf/settings done
    Deployment cnf/web done

    Leaving the loop cancels the operation, and waits until that is done.

    :param operation: such as ``update``, ``install``, ``undo``; the others are its parameters.
    :raises ContainerUpdateError: the operation's error, after the events.
    """
    happened: SimpleQueue[Any] = SimpleQueue()
    cancel: CancelToken = named.setdefault("cancel", CancelToken())
    with context_threads.pool(1) as pool:
        running = pool.submit(operation, *arguments, progress=happened.put, **named)
        running.add_done_callback(lambda _: happened.put(None))
        try:
            yield from iter(happened.get, None)
        finally:
            if not running.done():
                cancel.request("the reader of its events has gone")
    outcome = running.result()
    if outcome is not None:
        yield outcome
