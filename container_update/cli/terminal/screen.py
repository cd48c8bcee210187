# SPDX-License-Identifier: Apache-2.0
"""Shows the lines of a report: styled and wrapped on a terminal, unchanged everywhere else.

What would control the terminal is shown as an escape sequence of Python: a journal, a lease or the
message of a server may say anything.

``NO_COLOR`` and ``FORCE_COLOR`` are honoured (https://no-color.org, https://force-color.org).
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TextIO

from container_update.planning.comparison.diff import printable_lines
from container_update.reports.lines import Line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

STYLES: Mapping[str, str] = {
    "heading": "bold",
    "dim": "dim",
    "good": "green",
    "bad": "bold red",
    "warning": "yellow",
    "create": "green",
    "change": "yellow",
    "delete": "red",
    "restart": "cyan",
    "added": "green",
    "removed": "red",
    "hunk": "cyan",
}
_LEAST_WIDTH = 20
"""Columns for the text of an indented line, however narrow the terminal is."""
_SPELLINGS = {
    "↻": "*", "±": "#", "⇄": "=", "↕": "^", "»": ">", "⇒": "=>", "→": "->", "✓": "ok", "✗": "x",
    "…": "...",
}  # fmt: skip
"""What stands for a symbol where the encoding of the output does not have it."""


class Screen:
    """Writes lines to a terminal, a file or a pipe."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self.is_terminal = out.isatty() and os.environ.get("TERM") != "dumb"
        self._is_styled = self.is_terminal or bool(os.environ.get("FORCE_COLOR"))

    def show(self, lines: Iterable[Line]) -> None:
        """Write these lines."""
        for line in map(_harmless, lines):
            if self._is_styled:
                self._show_styled(line)
            else:
                self._out.write(f"{line}\n")

    def flush(self) -> None:
        """Hand on what was written."""
        self._out.flush()

    def block(self, lines: Iterable[Line]) -> Text:
        """Return lines as one text, each cut where the edge of the terminal has room for the ``^C``
        that it writes itself."""
        from rich.text import Text  # noqa: PLC0415, slow to load

        texts = [Text.assemble(*_harmless(line).pieces) for line in lines]
        for text in texts:
            text.truncate(self.console.width - 3, overflow="ellipsis")
        return Text("\n", no_wrap=True).join(texts)

    @cached_property
    def console(self) -> Console:
        """The terminal, as rich handles it."""
        from rich.console import Console  # noqa: PLC0415, slow to load
        from rich.theme import Theme  # noqa: PLC0415

        out = getattr(self._out, "styled", self._out)
        return Console(file=out, theme=Theme(dict(STYLES), inherit=False), highlight=False)

    def _show_styled(self, line: Line) -> None:
        from rich.text import Text  # noqa: PLC0415, slow to load

        text = Text.assemble(*line.pieces)
        if line.is_content or not self.is_terminal:
            self.console.print(text, soft_wrap=True)
            return
        for part in self._wrap(text):
            self.console.print(part, soft_wrap=True)

    def _wrap(self, text: Text) -> Iterable[Text]:
        """Yield the lines that a text takes, all of them indented as its first one."""
        indent = len(text.plain) - len(text.plain.lstrip(" "))
        width = max(self.console.width - indent, _LEAST_WIDTH)
        for part in text[indent:].wrap(self.console, width):
            part.rstrip()
            yield text[:indent] + part if indent else part


def _harmless(line: Line) -> Line:
    return replace(
        line, pieces=tuple((printable_lines(text), style) for text, style in line.pieces)
    )


def _spell(error: UnicodeError) -> tuple[str, int]:
    """Replace what an encoding does not have: a symbol of ours by its spelling, else by a code."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    codes = (c.encode("ascii", "backslashreplace").decode() for c in text)
    return "".join(_SPELLINGS.get(c, code) for c, code in zip(text, codes, strict=True)), error.end


ENCODING_ERRORS = "container-update"
"""The name of the error handler for streams whose encoding lacks some characters."""
codecs.register_error(ENCODING_ERRORS, _spell)
