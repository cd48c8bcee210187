# SPDX-License-Identifier: Apache-2.0
"""Thread helpers that copy the starter's contextvars.

So the log lines of every thread can name the operation that started it.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


def pool(workers: int) -> ThreadPoolExecutor:
    """Return a pool of at most *workers* threads that have the context of the caller."""
    context = contextvars.copy_context()
    return ThreadPoolExecutor(max_workers=workers, initializer=_enter, initargs=(context,))


def in_background(function: Callable[[], T]) -> Callable[[], T]:
    """Call a function in a thread; return a function that waits for its result, or its error."""
    with_context = pool(1)
    called = with_context.submit(function)
    with_context.shutdown(wait=False)
    return called.result


def daemon(target: Callable[..., object], *arguments: Any, name: str) -> threading.Thread:
    """Return a daemon thread with the context of the caller, not started yet."""
    context = contextvars.copy_context()
    return threading.Thread(target=context.run, args=(target, *arguments), name=name, daemon=True)


@contextmanager
def beside(act: Callable[[threading.Event], object], name: str) -> Iterator[None]:
    """Run a function in a thread beside the block; it has to return when the event is set."""
    ended = threading.Event()
    thread = daemon(act, ended, name=name)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _enter(context: contextvars.Context) -> None:
    for variable, value in context.items():
        variable.set(value)
