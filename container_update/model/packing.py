# SPDX-License-Identifier: Apache-2.0
"""Plain values as compressed JSON, within a bound that holds for writer and reader. Pure."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

from container_update.model.errors import PlanError

MAX_BYTES = 64 * 1024 * 1024
"""Of a record before it is compressed: what is larger is neither written nor read. Who may write
into the VNF's namespace can write a record, of which a few bytes stand for gigabytes."""

MAX_VALUES = 2_000_000
"""Of a record: an empty list takes 3 bytes of it, and 64 of memory."""
_CHUNK = 2**20
_MARKS = (b"{", b"[", b",")

DAMAGED = (
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
    *(EOFError, OSError, RecursionError, zlib.error),
)
"""What the reading of a record may raise that another client wrote."""

_GZIP = 16 + zlib.MAX_WBITS


def pack(content: object) -> bytes:
    """Return plain values as compressed JSON.

    :raises PlanError: it is more than :func:`unpack` reads.
    """
    text = json.dumps(content).encode()
    if len(text) > MAX_BYTES:
        raise PlanError(
            f"expected at most {MAX_BYTES} bytes of what is needed to undo the operation, found "
            f"{len(text)}: change less at once"
        )
    if _has_too_many_values(text):
        raise PlanError(
            f"expected at most {MAX_VALUES} values in what is needed to undo the operation, found "
            "more: change less at once"
        )
    return gzip.compress(text, mtime=0)


def unpack(data: bytes) -> Any:
    """Return what :func:`pack` was given; raises DAMAGED."""
    unpacker = zlib.decompressobj(wbits=_GZIP)
    text = unpacker.decompress(data, MAX_BYTES)
    if not unpacker.eof:
        raise ValueError(f"expected at most {MAX_BYTES} bytes, all of them")
    if _has_too_many_values(text):
        raise ValueError(f"expected at most {MAX_VALUES} values")
    return json.loads(text)


def count_marks(text: bytes) -> int:
    """Return how many marks JSON has before which or after which a value begins, also those in its
    texts: what it has few of takes little memory.

    >>> count_marks(b'{"a": [1, 2]}')
    3
    """
    return sum(map(text.count, _MARKS))


def _has_too_many_values(text: bytes) -> bool:
    return count_marks(text) > MAX_VALUES and _values(text) > MAX_VALUES


def _values(text: bytes) -> int:
    """Return how many values JSON has, about."""
    text, number, in_text = text.replace(rb"\\", b"").replace(rb"\"", b""), 0, False
    for at in range(0, len(text), _CHUNK):
        pieces = text[at : at + _CHUNK].split(b'"')
        number += count_marks(b"".join(pieces[in_text::2]))
        in_text ^= len(pieces) % 2 == 0
    return number
