"""Log lines: JSON or text, with the operation that they belong to."""

from __future__ import annotations

import argparse
import json
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from container_update.cli.commands import serve
from container_update.model import context_threads
from container_update.vnfm.http import logs
from container_update.vnfm.settings import LOG_FORMATS, Settings
from tests.vnfm.served import Served


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


TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d "


def text_of(name: str, level: int, message: str, about: str = "", **more: Any) -> str:
    record = logging.LogRecord(name, level, "", 0, message, (), more.get("exc_info"))
    with logs.about(about):
        return logs.TextFormatter().format(record)


@pytest.mark.parametrize(
    ("name", "level", "message", "about", "line"),
    [
        ("container_update.vnfm.workers", logging.INFO, "begun", "", "INFO    workers: begun"),
        ("a.perform", logging.WARNING, "slow", "op-1", "WARNING perform: slow (op-1)"),
        (
            "uvicorn.error",
            logging.INFO,
            "startup complete",
            "",
            "INFO    uvicorn: startup complete",
        ),
        ("root", logging.ERROR, "one\ntwo", "", "ERROR   root: one\n    two"),
        ("x", logging.ERROR, "a\x1b[31m\r\x00b\u2028", "", "ERROR   x: a\\x1b[31m\\r\\x00b\\u2028"),
        ("x", logging.INFO, "Zürich\t→", "", "INFO    x: Zürich\t→"),
    ],
    ids=["no operation", "an operation", "uvicorn", "two lines", "control characters", "letters"],
)
def test_a_line_of_text_is_for_people(
    name: str, level: int, message: str, about: str, line: str
) -> None:
    found = text_of(name, level, message, about)
    assert re.fullmatch(TIME + re.escape(line), found), found


def test_an_exception_is_below_its_line_of_text() -> None:
    try:
        raise ValueError("no")
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
        first, *lines = text_of("x", logging.ERROR, "failed", "op-1", exc_info=info).split("\n")
    assert first.endswith("x: failed (op-1)")
    assert lines[-1] == "    ValueError: no"
    assert all(line.startswith("    ") for line in lines)


@pytest.mark.parametrize(
    ("log_format", "is_terminal", "is_text"),
    [
        ("auto", True, True),
        ("auto", False, False),
        ("text", False, True),
        ("json", True, False),
    ],
)
def test_a_terminal_gets_text_unless_told_otherwise(
    log_format: str, is_terminal: bool, is_text: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    assert isinstance(logs.formatter(log_format), logs.TextFormatter) is is_text


def test_the_setting_chooses_the_format_of_the_service(tmp_path: Path) -> None:
    service = Served(tmp_path, "", "auth = none\nlog_format = text")
    try:
        service.start()
        assert re.search(TIME + "INFO    uvicorn: Application startup complete", service.log())
        assert service.stop() == 0
    finally:
        if service.process:
            service.kill()


def test_a_format_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="log_format: expected one of auto, text, json, found xml"):
        Settings(log_format="xml")
    add = argparse.ArgumentParser()
    serve.add_arguments(add)
    (argument,) = (action for action in add._actions if action.dest == "log_format")
    assert tuple(argument.choices or ()) == LOG_FORMATS
