"""The end of an updater in the middle of its requests, without the end of the test."""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import Any


class Died(BaseException):
    """No request is answered any more."""


class Dying:
    """A cluster, or Heat, for one run, which reaches it no more after so many requests that write.

    :param alive: what answers until then.
    :param writes: the names of its methods that write.
    """

    def __init__(self, alive: object, number: int, writes: Collection[str]) -> None:
        self._alive = alive
        self._left = number
        self._writes = writes
        self._counting = threading.Lock()

    @property
    def is_dead(self) -> bool:
        """That number was reached."""
        return self._left <= 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._alive, name)
        if not callable(found):
            return found

        def call(*args: Any, **more: Any) -> Any:
            with self._counting:
                if self.is_dead:
                    raise Died
                answer = found(*args, **more)
                self._left -= name in self._writes
            if self.is_dead:
                raise Died
            return answer

        return call
