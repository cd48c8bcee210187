# SPDX-License-Identifier: Apache-2.0
"""Answers that come within the time of one read, from the first byte of their headers to the last
one of their trailers: the time limit of a socket begins anew with each byte."""

from __future__ import annotations

import http.client
import io
import math
import socket
import time
from typing import Any


class _Bytes(io.RawIOBase):
    """What comes from a socket, until the time is over."""

    def __init__(self, raw: io.RawIOBase, seconds: float) -> None:
        self._raw = raw
        self._end = time.monotonic() + seconds

    def readable(self) -> bool:
        """See io."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """See io.

        :raises TimeoutError: the time is over.
        """
        if time.monotonic() > self._end:
            raise TimeoutError("the answer did not come to its end in time")
        count: int | None = self._raw.readinto(buffer)
        return count

    def close(self) -> None:
        """See io."""
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *arguments: Any, **more: Any) -> None:
        super().__init__(sock, *arguments, **more)
        self.fp = io.BufferedReader(_Bytes(self.fp.detach(), sock.gettimeout() or math.inf))


def timely(pools: Any) -> Any:
    """Have urllib3's manager of pools read all answers so; return it."""
    classes = pools.pool_classes_by_scheme.items()
    pools.pool_classes_by_scheme = {scheme: _timely(pool) for scheme, pool in classes}
    return pools


def _timely(pool: Any) -> Any:
    connection = type("Connection", (pool.ConnectionCls,), {"response_class": _Response})
    return type(pool.__name__, (pool,), {"ConnectionCls": connection})
