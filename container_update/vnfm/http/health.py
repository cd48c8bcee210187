# SPDX-License-Identifier: Apache-2.0
"""Liveness and readiness: ``/healthz`` and ``/readyz``.

Both answer without a token and show only names of parts. What stores something is tried with a
write, since a full disk still answers reads.
"""

from __future__ import annotations

import logging
import math
import os
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from fastapi import APIRouter
from sqlalchemy.exc import SQLAlchemyError

from container_update.vnfm.problems import ProblemError
from container_update.vnfm.store.database import Database

Check = Callable[[], bool]
"""Returns whether a part of the service can do its work."""

LOG = logging.getLogger(__name__)


PACE_SECONDS = 5.0
"""The least time between two writes for checks: every client may ask."""

_ROOM_BYTES = 1024 * 1024
"""What a folder needs to have room for."""


class Paced:
    """A check that is made at most once in :data:`PACE_SECONDS`; meanwhile its last result stands.

    Where one takes long, other requests do not wait for it.
    """

    def __init__(self, check: Check) -> None:
        self._check = check
        self._result, self._next = False, -math.inf
        self._lock = threading.Lock()

    def __call__(self) -> bool:
        """Return the result, of now or of a moment ago."""
        if time.monotonic() >= self._next and self._lock.acquire(blocking=False):
            try:
                self._result = self._check()
                self._next = time.monotonic() + PACE_SECONDS
            finally:
                self._lock.release()
        return self._result


def answers(database: Database) -> bool:
    """Return whether the database answers and takes writes."""
    try:
        database.probe()
    except SQLAlchemyError as error:
        LOG.warning("the database does not answer or takes no writes: %s", type(error).__name__)
        return False
    return True


def has_room(folder: Path) -> bool:
    """Return whether a file can be written in a folder."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, _ROOM_BYTES)
    except OSError as error:
        LOG.warning("%s takes no file of %d bytes: %s", folder, _ROOM_BYTES, error.strerror)
        return False
    return True


def router(checks: Mapping[str, Check]) -> APIRouter:
    """Return the two resources, for checks by the name of the part."""
    routes = APIRouter(tags=["Operation of the service"])

    @routes.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Answer: the process is alive. It needs no thread: all may be busy."""
        return {"status": "ok"}

    @routes.get("/readyz", responses={503: {"description": "A part cannot work; it is named."}})
    def readyz() -> dict[str, str]:
        """Check that every part of the service can do its work."""
        unfit = [name for name, check in checks.items() if not check()]
        if unfit:
            raise ProblemError(503, f"not ready: {', '.join(unfit)}", headers={"Retry-After": "5"})
        return {"status": "ready"}

    return routes
