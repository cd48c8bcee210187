"""Liveness and readiness: ``/healthz`` and ``/readyz``.

Both answer without a token and show only names of parts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from fastapi import APIRouter
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from container_update.vnfm.problems import ProblemError
from container_update.vnfm.store.database import Database

Check = Callable[[], bool]
"""Returns whether a part of the service can do its work."""

LOG = logging.getLogger(__name__)


def answers(database: Database) -> bool:
    """Return whether the database answers."""
    try:
        with database.reading() as session:
            return bool(session.scalar(text("SELECT 1")))
    except SQLAlchemyError as error:
        LOG.warning("the database does not answer: %s", type(error).__name__)
        return False


def router(checks: Mapping[str, Check]) -> APIRouter:
    """Return the two resources.

    :param checks: by the name of the part.
    """
    routes = APIRouter(tags=["Operation of the service"])

    @routes.get("/healthz")
    def healthz() -> dict[str, str]:
        """Answer: the process is alive."""
        return {"status": "ok"}

    @routes.get("/readyz", responses={503: {"description": "A part cannot work; it is named."}})
    def readyz() -> dict[str, str]:
        """Check that every part of the service can do its work."""
        unfit = [name for name, check in checks.items() if not check()]
        if unfit:
            raise ProblemError(503, f"not ready: {', '.join(unfit)}", headers={"Retry-After": "5"})
        return {"status": "ready"}

    return routes
