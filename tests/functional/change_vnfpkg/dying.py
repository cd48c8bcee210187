# SPDX-License-Identifier: Apache-2.0
"""An updater that dies in the middle of its requests, in the test's own process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from functools import partial
from typing import Any


class Died(BaseException):
    """Raised instead of an answer once the client is dead."""


class Dying:
    """A client of the cluster or of Heat that fails for good after this many write requests.

    :param alive: the client that answers until then.
    :param writes: the names of its methods that write.
    :param is_late: the last of these requests is on its way when the client dies: see :attr:`late`.
    """

    late: Callable[[], Any] = staticmethod(lambda: None)
    """Has the last request arrive."""

    def __init__(
        self, alive: object, number: int, writes: Collection[str], *, is_late: bool = False
    ) -> None:
        self._alive = alive
        self._left = number
        self._writes = writes
        self._is_late = is_late
        self._counting = threading.RLock()  # a write may look first whether it may be sent

    @property
    def is_dead(self) -> bool:
        """Whether the number was reached."""
        return self._left <= 0

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._alive, name)
        if not callable(attribute):
            return attribute

        def call(*args: Any, **more: Any) -> Any:
            with self._counting:
                if self.is_dead:
                    raise Died
                if self._is_late and self._left == 1 and name in self._writes:
                    self.late, self._left = partial(attribute, *args, **more), 0
                    raise Died
                result = attribute(*args, **more)
                self._left -= name in self._writes
            if self.is_dead:
                raise Died
            return result

        return call
