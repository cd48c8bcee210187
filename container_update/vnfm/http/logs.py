# SPDX-License-Identifier: Apache-2.0
"""The log of the service, by oslo.log: each line with the id of its operation or package.

The id is the ``request_id`` of OpenStack's request context.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from oslo_context.context import RequestContext
from oslo_log import log

from container_update.planning.comparison.diff import printable

_FORMAT = "%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s [%(request_id)s] %(message)s"

_ABOUT: ContextVar[RequestContext | None] = ContextVar("about", default=None)
"""Goes on into the threads of an operation; oslo.context's own is of one thread."""


@contextmanager
def about(key: str) -> Iterator[None]:
    """Add the id of an operation or package to the log lines of the ``with`` block."""
    token = _ABOUT.set(RequestContext(request_id=key, overwrite=False))
    try:
        yield
    finally:
        _ABOUT.reset(token)


def register_options(conf: Any, *, is_demo: bool = False) -> None:
    """Register oslo.log's options; unless set, standard error gets the log, as JSON but on a
    terminal; of a demo the warnings alone, as text."""
    log.register_options(conf)
    levels = [*log.get_default_log_levels(), "alembic=WARNING"]
    if is_demo:
        levels += ["uvicorn=WARNING", "container_update=WARNING"]
    log.set_defaults(logging_context_format_string=_FORMAT, default_log_levels=levels)
    conf.set_default("use_stderr", True)
    conf.set_default("use_json", not (is_demo or sys.stderr.isatty()))


def setup(conf: Any) -> None:
    """Log as the options say, to standard error if they say nothing."""
    log.setup(conf, "container-update")
    for handler in logging.getLogger().handlers:
        handler.addFilter(with_operation)


def with_operation(record: logging.LogRecord) -> bool:
    """Give a record the context of its operation.

    What follows a line break is indented, and other control characters are written as escapes: a
    message may quote what a client sent.
    """
    record.context = _ABOUT.get()
    lines = record.getMessage().split("\n")
    record.msg, record.args = "\n    ".join(map(printable, lines)), None
    return True
