# SPDX-License-Identifier: Apache-2.0
"""Log lines of the service: JSON or text, with the operation that they belong to."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg
from oslo_log.formatters import ContextFormatter, JSONFormatter

from tests.internals.core import context_threads
from tests.internals.service import logs
from tests.vnfm.served import Served

LOG = logging.getLogger("container_update.test")


class Lines(logging.Handler):
    """Collects the log as the service would write it."""

    def __init__(self, formatter: logging.Formatter) -> None:
        super().__init__()
        self.setFormatter(formatter)
        self.addFilter(logs.with_operation)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))

    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


@pytest.fixture
def conf() -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    logs.register_options(conf)
    conf(args=[], default_config_files=[])
    return conf


@pytest.fixture
def lines(request: pytest.FixtureRequest, conf: cfg.ConfigOpts) -> Iterator[Lines]:
    """What a logger writes; as JSON, unless the test is about text."""
    is_text = getattr(request, "param", "json") == "text"
    handler = Lines(ContextFormatter(config=conf) if is_text else JSONFormatter())
    LOG.addHandler(handler)
    yield handler
    LOG.removeHandler(handler)


as_text = pytest.mark.parametrize("lines", ["text"], indirect=True)


def test_a_line_names_its_operation_in_every_thread(lines: Lines) -> None:
    with logs.about("op-1"), context_threads.pool(2) as pool:
        LOG.warning("here")
        list(pool.map(LOG.warning, ["there", "and there"]))
        thread = context_threads.daemon(LOG.warning, "in the background", name="t")
        thread.start()
        thread.join(timeout=10)
    LOG.warning("afterwards: %s", "x")
    found = [line["context"].get("request_id") for line in lines.objects()]
    assert found == [*["op-1"] * 4, None]
    assert lines.objects()[-1]["message"] == "afterwards: x"


def test_an_exception_is_in_one_line_too(lines: Lines) -> None:
    try:
        raise ValueError("no")
    except ValueError:
        LOG.exception("it failed")
    (line,) = lines.objects()
    assert "ValueError: no" in line["traceback"]


@pytest.mark.parametrize(
    ("message", "end"),
    [
        ("slow", "slow"),
        ("one\ntwo", "one\n    two"),
        ("a\x1b[31m\r\x00b\u2028", "a\\x1b[31m\\r\\x00b\\u2028"),
        ("Zürich\t→ 100 %s", "Zürich\t→ 100 %s"),
    ],
    ids=["a word", "two lines", "control characters", "letters"],
)
@as_text
def test_a_line_of_text_is_what_a_terminal_can_show(lines: Lines, message: str, end: str) -> None:
    with logs.about("op-1"):
        LOG.warning(message)
    assert lines.lines[0].endswith(f" WARNING container_update.test [op-1] {end}")


def test_a_terminal_gets_text_and_everything_else_json(monkeypatch: pytest.MonkeyPatch) -> None:
    for is_terminal in (True, False):
        monkeypatch.setattr("sys.stderr.isatty", lambda shown=is_terminal: shown, raising=False)
        conf = cfg.ConfigOpts()
        logs.register_options(conf)
        conf(args=[], default_config_files=[])
        assert conf.use_json is not is_terminal


def test_the_configuration_file_chooses_the_format_of_the_service(tmp_path: Path) -> None:
    service = Served(tmp_path, "", "auth = none\n[DEFAULT]\nuse_json = false")
    try:
        service.start()
        assert re.search(r" INFO uvicorn\.error \[-\] Application startup", service.log())
        assert service.stop() == 0
    finally:
        if service.process:
            service.kill()
