"""Before an operation is tried again: wait until nobody else works at the instance in the VIM.

A service that was killed leaves its lock, which expires; a script that outlived it ends first.
"""

from __future__ import annotations

import time

from container_update.model.errors import UpdateInProgressError
from container_update.vnfm.lcm.operation_context import OperationContext
from container_update.vnfm.lcm.vim import Vim

_PAUSE = 0.5


def wait_for(context: OperationContext, vim: Vim) -> None:
    """Return once the instance's lock is free or expired.

    :raises UpdateInProgressError: it is held for longer than an update may take.
    """
    options = context.service.options
    deadline = time.monotonic() + options.timeout + options.lease_seconds
    while (told := vim.held_by()) is not None:
        if time.monotonic() > deadline or context.service.ending.is_set():
            raise UpdateInProgressError(told)
        context.service.ending.wait(_PAUSE)
