# SPDX-License-Identifier: Apache-2.0
"""Lines on terminals, in files, and in encodings that lack our symbols."""

from __future__ import annotations

import io

import pytest

from container_update.cli.terminal import output
from container_update.cli.terminal.screen import Screen
from container_update.reports.lines import CREATE, Line

LINE = Line.of("  ", ("+", CREATE), " ConfigMap cnf/settings: create because nobody has it yet")
CONTENT = Line.of("    ", "a line of a file, which is longer than the terminal", is_content=True)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "30")


def shown(out: io.StringIO, *lines: Line) -> str:
    Screen(out).show(lines)
    return out.getvalue()


def test_a_file_gets_lines_as_they_are_whatever_the_width() -> None:
    assert shown(io.StringIO(), LINE, CONTENT) == f"{LINE}\n{CONTENT}\n"


def test_a_terminal_gets_colours_and_lines_that_are_broken_between_words() -> None:
    text = shown(Terminal(), LINE)
    assert "\x1b[32m+" in text
    plain = text.replace("\x1b[32m", "").replace("\x1b[0m", "")
    assert plain.splitlines() == [
        "  + ConfigMap cnf/settings:",
        "  create because nobody has it",
        "  yet",
    ]


def test_a_line_of_a_file_is_not_broken() -> None:
    assert shown(Terminal(), CONTENT) == f"{CONTENT}\n"


def test_no_color_leaves_the_lines_and_takes_the_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in shown(Terminal(), LINE)


def test_force_color_colours_a_pipe_and_breaks_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    text = shown(io.StringIO(), LINE)
    assert "\x1b[32m+" in text
    assert text.count("\n") == 1


def test_a_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert shown(Terminal(), LINE) == f"{LINE}\n"


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("utf-8", "↻ ± ⇄ ü 漢"),
        ("latin-1", "* ± = ü \\u6f22"),
        ("ascii", "* # = \\xfc \\u6f22"),
    ],
)
def test_what_an_encoding_lacks_is_spelled(encoding: str, expected: str) -> None:
    raw = io.BytesIO()
    out = output.results(io.TextIOWrapper(raw, encoding=encoding))
    out.write("↻ ± ⇄ ü 漢")
    out.flush()
    assert raw.getvalue().decode(encoding) == expected


ORDERS = "\x1b]0;title\x07\x1b[2J\x9b2J\r\u202e"
SHOWN = r"\x1b]0;title\x07\x1b[2J\x9b2J\r\u202e"


@pytest.mark.parametrize("out", [io.StringIO, Terminal])
def test_a_line_cannot_control_the_terminal(
    out: type[io.StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert shown(out(), Line.of("a\n", f"b {ORDERS}")) == f"a\nb {SHOWN}\n"
    assert Screen(Terminal()).block([Line.of(ORDERS)]).plain == SHOWN


def test_nor_can_a_result_and_the_styles_of_a_screen_stay() -> None:
    terminal = Terminal()
    results = output.results(terminal)
    results.write(f"status of {ORDERS}\n")
    assert terminal.getvalue() == f"status of {SHOWN}\n"
    Screen(results).show([Line.of(("bad", "bad"))])
    assert "\x1b[1;31mbad" in terminal.getvalue()
