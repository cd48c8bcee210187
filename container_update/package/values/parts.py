# SPDX-License-Identifier: Apache-2.0
"""A YAML file in parts, so that a large file is never in memory as a whole.

A line ``---`` begins a document wherever it is, except that a directive (``%YAML``) is before it.
A part may hold several documents (``...`` ends one too), or only comments.
"""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator

_UNDIVIDED = (b"%", BOM_UTF16_LE, BOM_UTF16_BE)
"""How a line begins after which the file is not divided."""


def parts(lines: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield each part of a file, and whether another document follows.

    :param lines: the file's, each with its line end, as a binary file yields them.
    """
    part = bytearray()
    is_divided = True
    for line in lines:
        if line.startswith(b"---") and line[3:4] in b" \t\r\n" and is_divided and part:
            yield bytes(part), True
            part.clear()
        elif line.startswith(_UNDIVIDED):
            is_divided = False
        part += line
    yield bytes(part), False
