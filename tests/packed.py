# SPDX-License-Identifier: Apache-2.0
"""Few bytes that stand for many, made at once: to compress a gigabyte takes seconds."""

from __future__ import annotations

import zlib


def without_end(start: bytes, block: bytes, times: int) -> bytes:
    """Return *start* and so many blocks as gzip, up to where its checksum would be."""
    packer = zlib.compressobj(1, wbits=31)
    first = packer.compress(start) + packer.flush(zlib.Z_FULL_FLUSH)
    # after a full flush the same bytes are compressed to the same ones
    return first + (packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)) * times
