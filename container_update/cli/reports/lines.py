# SPDX-License-Identifier: Apache-2.0
"""The lines of a report: text in pieces, each with the name of a style; how they are shown is the
business of :mod:`container_update.cli.terminal.screen`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Piece = tuple[str, str]
"""A text and its style."""

PLAIN, HEADING, DIM, GOOD, BAD, WARNING = "", "heading", "dim", "good", "bad", "warning"
CREATE, CHANGE, DELETE, RESTART = "create", "change", "delete", "restart"
ADDED, REMOVED, HUNK = "added", "removed", "hunk"


@dataclass(frozen=True)
class Line:
    """One line of a report.

    >>> str(Line.of(("  ~ ", CHANGE), "ConfigMap cnf/settings: replace"))
    '  ~ ConfigMap cnf/settings: replace'
    """

    pieces: tuple[Piece, ...]
    is_content: bool = False
    """It is a line of a file, which is not to be broken between words."""

    @classmethod
    def of(cls, *pieces: Piece | str, is_content: bool = False) -> Line:
        """Return a line of these pieces; a string is a piece without a style."""
        styled = ((piece, PLAIN) if isinstance(piece, str) else piece for piece in pieces)
        return cls(tuple(styled), is_content)

    def __str__(self) -> str:
        return "".join(text for text, _ in self.pieces)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows of a table, the first one with the names of its columns, as texts."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = ([f"{c:<{width}}" for c, width in zip(row, widths, strict=True)] for row in rows)
    return ["  ".join(cells).rstrip() for cells in padded]


def text_of(lines: Iterable[Line]) -> str:
    """Return the lines without their styles, joined by line ends."""
    return "\n".join(map(str, lines))
