# SPDX-License-Identifier: Apache-2.0
"""The lines of a report: text in pieces, each with the name of a style; how they are shown is the
business of :mod:`container_update.cli.terminal.screen`. And the lines at the head of each. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from container_update.model.cluster import ClusterContext
from container_update.model.plan import Plan
from container_update.model.requests import PackageIdentity
from container_update.model.times import time_of
from container_update.planning.comparison.diff import printable

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


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows of a table, the first one with the names of its columns, as texts."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = ([f"{c:<{width}}" for c, width in zip(row, widths, strict=True)] for row in rows)
    return ["  ".join(cells).rstrip() for cells in padded]


def age(created: str | None, now: datetime) -> str:
    """Return how long ago something was created, in UTC: '3d', '5h', '12m', '40s'; '-': unknown."""
    if not created:
        return "-"
    seconds = int((now - time_of(created)).total_seconds())
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length}{unit}"
    return f"{max(0, seconds)}s"


def text_of(lines: Iterable[Line]) -> str:
    """Return the lines without their styles, joined by line ends."""
    return "\n".join(map(str, lines))


# --- the head of a report -----------------------------------------------------------------------


@dataclass(frozen=True)
class Header:
    """What an operation is about."""

    target: tuple[tuple[str, str], ...]
    """A word and its value: ('Namespace', 'core')."""
    remarks: Mapping[str, str] = field(default_factory=dict)
    """By the word of the target what people need to know of its value."""
    runs_from: PackageIdentity | None = None
    """What the instance runs from by its record, beside an old package that is named."""

    @classmethod
    def of_cluster(cls, context: ClusterContext, namespace: str) -> Header:
        """Return the head for a namespace of a cluster."""
        known = {"cluster": context.cluster, "context": context.name, "user": context.user}
        words = ", ".join(f"{word} {name}" for word, name in known.items() if name)
        where = f"{context.server} ({words})" if words else context.server
        return cls((("Cluster", where), ("Namespace", namespace)))

    def lines(self, packages: Sequence[PackageIdentity]) -> Iterator[Line]:
        """Yield the head for people, with the packages of the plan below it."""
        known = self.remarks
        rows = [(w, f"{value} ({known[w]})" if w in known else value) for w, value in self.target]
        if packages:
            rows.append(("Packages", " -> ".join(map(str, packages))))
            rows += self._warning(packages)
        width = max((len(word) for word, _ in rows), default=0)
        for word, value in rows:
            yield Line.of((f"{word:<{width}}  ", DIM), printable(value))

    def _warning(self, packages: Sequence[PackageIdentity]) -> Iterator[tuple[str, str]]:
        """Yield what the record says where that is not the old package."""
        known = self.runs_from
        if known is not None and len(packages) > 1 and known.sha256 != packages[0].sha256:
            is_new = known.sha256 == packages[-1].sha256
            which = "the new package" if is_new else "neither of these packages"
            yield "Runs from", f"{known}, by its record: {which}"

    def facts(self, plan: Plan) -> Iterator[tuple[str, str]]:
        """Yield words and values for a page about a plan, which is read without its command."""
        yield from self.target or (("Namespace", plan.namespace),)
        if plan.instance_id and "Instance" not in dict(self.target):
            yield "VNF instance", plan.instance_id
        yield from zip(("From", "To"), map(str, plan.packages), strict=False)
        yield from self._warning(plan.packages)

    def as_dict(self) -> dict[str, Any]:
        """Return the head as JSON values."""
        return {"target": {word.lower(): value for word, value in self.target}}


NONE = Header(())
"""Of an operation whose target is said elsewhere."""
