"""Before an operation is tried again: wait until nobody else works at the instance in the VIM.

A service that was killed leaves its lock, which expires; a script that outlived it ends first.
"""

from __future__ import annotations

import time

from container_update.model.errors import UpdateInProgressError
from container_update.vnfm.lcm.operation_context import Work
from container_update.vnfm.lcm.vim import Vim

_PAUSE = 0.5


def wait_for(work: Work, place: Vim) -> None:
    """Return once the instance's lock is free or expired.

    :raises UpdateInProgressError: it is held for longer than an update may take.
    """
    options = work.core.options
    deadline = time.monotonic() + options.timeout + options.lease_seconds
    while (told := place.held_by()) is not None:
        if time.monotonic() > deadline or work.core.ending.is_set():
            raise UpdateInProgressError(told)
        work.core.ending.wait(_PAUSE)
