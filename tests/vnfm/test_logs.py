"""Log lines: JSON, with the operation that they belong to."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from container_update.model import context_threads
from container_update.vnfm.http import logs


class Lines(logging.Handler):
    """Collects the log as the service would write it."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logs.JsonFormatter())
        self.lines: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(json.loads(self.format(record)))


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler = Lines()
    log = logging.getLogger("container_update")
    log.addHandler(handler)
    yield handler
    log.removeHandler(handler)


LOG = logging.getLogger("container_update.test")


def test_a_line_has_time_level_logger_and_message(lines: Lines) -> None:
    LOG.warning("watch out: %s", "x")
    (line,) = lines.lines
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "WARNING",
        "logger": "container_update.test",
        "message": "watch out: x",
    }


def test_a_line_names_its_operation_in_every_thread(lines: Lines) -> None:
    with logs.about("op-1"), context_threads.pool(2) as pool:
        LOG.warning("here")
        list(pool.map(LOG.warning, ["there", "and there"]))
        thread = context_threads.daemon(LOG.warning, "in the background", name="t")
        thread.start()
        thread.join(timeout=10)
    LOG.warning("afterwards")
    assert [line.get("about") for line in lines.lines] == [*["op-1"] * 4, None]


def test_an_exception_is_one_line_too(lines: Lines) -> None:
    try:
        raise ValueError("no")
    except ValueError:
        LOG.exception("it failed")
    assert "ValueError: no" in lines.lines[0]["exception"]
