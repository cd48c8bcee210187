"""Logs for people or for programs, each line with the id of its operation or package."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timezone

_ABOUT: ContextVar[str] = ContextVar("about", default="")


@contextmanager
def about(key: str) -> Iterator[None]:
    """Add the id of an operation or package to the log lines of the ``with`` block."""
    token = _ABOUT.set(key)
    try:
        yield
    finally:
        _ABOUT.reset(token)


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""
        moment = datetime.fromtimestamp(record.created, timezone.utc)
        line = {
            "time": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if key := _ABOUT.get():
            line["about"] = key
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


class TextFormatter(logging.Formatter):
    """``2027-01-31 23:59:59 ERROR   perform: MESSAGE (ID)``, in the local time.

    What follows a line break is indented, and other control characters are written as escapes: a
    message may quote what a client sent.
    """

    default_msec_format = None  # to the second

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line, with the lines of its exception below."""
        text = f"{_last_part(record.name)}: {record.getMessage()}"
        if key := _ABOUT.get():
            text += f" ({key})"
        if record.exc_info:
            text += f"\n{self.formatException(record.exc_info)}"
        body = "\n    ".join(_printable(line) for line in text.split("\n"))
        return f"{self.formatTime(record)} {record.levelname:7} {body}"


def _last_part(logger: str) -> str:
    """Return the part of a logger's name that says most; uvicorn logs all it says as errors."""
    first, _, last = logger.rpartition(".")
    return first if logger == "uvicorn.error" else last


def _printable(line: str) -> str:
    return "".join(c if c.isprintable() or c == "\t" else repr(c)[1:-1] for c in line)


def formatter(log_format: str) -> logging.Formatter:
    """Return the formatter of a format.

    :param log_format: ``auto``, ``text`` or ``json``.
    """
    is_text = log_format == "text" or (log_format == "auto" and sys.stderr.isatty())
    return TextFormatter() if is_text else JsonFormatter()


def configure(log_format: str) -> None:
    """Log to standard error.

    :param log_format: as for :func:`formatter`.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(formatter(log_format))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("alembic").setLevel(logging.WARNING)
