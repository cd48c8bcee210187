# SPDX-License-Identifier: Apache-2.0
"""What a step changes in a ConfigMap or Secret, key by key, as a reviewer reads it. Pure.

Of a Secret only the names of its keys leave this module: no value, no length, no hash.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from container_update.model.objects import Json
from container_update.model.plan import KeyChange
from container_update.planning.comparison import diff

_CONTEXT = 3
"""Unchanged lines around each change."""
_MOST_LINES = 5000
"""Of both values together: the time of a comparison may grow with the square of their number."""
_DIGITS = 12
"""Of a hash."""


@dataclass(frozen=True)
class KeyDiff:
    """The difference between two values of one key."""

    change: KeyChange
    lines: tuple[str, ...] = ()
    """A unified diff without file names: '@@ -1 +1 @@', '-old', '+new'. Every character of it can
    be printed, tabs too."""
    summary: str = ""
    """Instead of lines where a value is binary or too long: sizes and hashes."""


def content_diff(before: Json | None, after: Json) -> tuple[KeyDiff, ...]:
    """Return the differences between two states of a ConfigMap or Secret, sorted by key.

    >>> before = {"kind": "ConfigMap", "data": {"a": "1"}}
    >>> [key_diff] = content_diff(before, {"kind": "ConfigMap", "data": {"a": "2"}})
    >>> key_diff.lines[:2]
    ('@@ -1 +1 @@', '-1')

    :param before: the object as it is; None where it does not exist.
    :raises ValueError: a value that the server would refuse.
    """
    old, new = diff.content(before).data if before else {}, diff.content(after).data
    changes = diff.key_changes(old, new)
    if after.get("kind") == "Secret":
        return tuple(map(KeyDiff, changes))
    return tuple(_key_diff(each, old.get(each.key), new.get(each.key)) for each in changes)


def _key_diff(change: KeyChange, old: bytes | None, new: bytes | None) -> KeyDiff:
    before, after = _lines(old), _lines(new)
    if before is None or after is None:
        return KeyDiff(change, summary=f"binary, {_sizes(old, new)}")
    if len(before) + len(after) > _MOST_LINES:
        return KeyDiff(change, summary=f"{len(before)} -> {len(after)} lines, {_sizes(old, new)}")
    return KeyDiff(change, tuple(_unified(before, after)))


def _lines(value: bytes | None) -> list[str] | None:
    """Return the lines of a text, each with its line end; None where the value is binary."""
    try:
        text = (value or b"").decode()
    except UnicodeDecodeError:
        return None
    if "\0" in text:
        return None
    *ended, last = text.split("\n")
    return [f"{line}\n" for line in ended] + ([last] if last else [])


def _unified(before: list[str], after: list[str]) -> Iterator[str]:
    for line in list(difflib.unified_diff(before, after, n=_CONTEXT, lineterm=""))[2:]:
        yield printable(line.removesuffix("\n"))
        if not line.startswith("@@") and not line.endswith("\n"):
            yield "\\ No newline at end of file"


def printable(text: str) -> str:
    """Return a text in which what would control a terminal is an escape sequence of Python."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode() for c in text
    )


def printable_lines(text: str) -> str:
    """Return a text of several lines, each as :func:`printable` returns it."""
    return "\n".join(map(printable, text.split("\n")))


def _sizes(old: bytes | None, new: bytes | None) -> str:
    return f"{_size(old)} -> {_size(new)}"


def _size(value: bytes | None) -> str:
    if value is None:
        return "none"
    return f"{len(value)} bytes (sha256 {hashlib.sha256(value).hexdigest()[:_DIGITS]})"
