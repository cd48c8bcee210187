# SPDX-License-Identifier: Apache-2.0
"""Calls a progress callback; an exception of it decides nothing about the operation."""

from __future__ import annotations

import logging

from container_update.model.errors import ContainerUpdateError
from container_update.model.outcome import Event, Progress
from container_update.model.plan import Plan

LOG = logging.getLogger(__name__)

REPORTED = {"reported": True}
"""The ``extra`` of a log record about something that the caller is told anyhow, by an event or an
exception: a front end that shows those need not show the record too."""


class Reporter:
    """A progress callback that raises nothing once the operation may have written something.

    Its first exception is logged with its name. It is called with later events all the same: what
    it needs may be back by then.

    :param progress: the callback of a caller.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._failed = False

    def __call__(self, event: Event) -> None:
        """Report an event.

        :raises ContainerUpdateError: the callback refuses a plan, of which nothing is written yet.
        """
        try:
            self._progress(event)
        except Exception as error:
            if isinstance(event, Plan) and isinstance(error, ContainerUpdateError):
                raise
            if not self._failed:
                self._failed = True
                LOG.exception("the progress callback %s failed; the operation goes on", self._name)

    @property
    def _name(self) -> str:
        named = self._progress if hasattr(self._progress, "__qualname__") else type(self._progress)
        return f"{named.__module__}.{named.__qualname__}"


def reporter(progress: Progress) -> Reporter:
    """Return the reporter of a callback; a reporter itself as it is, so that it logs once."""
    return progress if isinstance(progress, Reporter) else Reporter(progress)
