"""Threads that know on whose behalf they run.

The context variables of whoever starts them hold in them too: a host's log lines can name the
operation, whatever thread writes them.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def pool(workers: int) -> ThreadPoolExecutor:
    """A pool of at most so many threads."""
    here = contextvars.copy_context()
    return ThreadPoolExecutor(max_workers=workers, initializer=_enter, initargs=(here,))


def daemon(target: Callable[..., object], *arguments: Any, name: str) -> threading.Thread:
    """A thread, not started yet, that keeps no process from ending."""
    here = contextvars.copy_context()
    return threading.Thread(target=here.run, args=(target, *arguments), name=name, daemon=True)


def _enter(context: contextvars.Context) -> None:
    for variable, value in context.items():
        variable.set(value)
