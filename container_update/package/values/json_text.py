# SPDX-License-Identifier: Apache-2.0
"""JSON as ``kubectl`` reads it where YAML is read otherwise. Pure.

JSON is YAML except for one thing that files have: a character beyond U+FFFF is written as two
escapes, a surrogate pair, as most libraries write it. YAML has no such pairs.
"""

from __future__ import annotations

import json
import re

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    rb"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u[dD][89a-fA-F]..|.)"
)
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()


def without_surrogates(text: bytes) -> bytes:
    """Return the same JSON with the characters themselves instead of pairs of escapes.

    Half a pair is no character: it becomes what Go makes of it. A text that is not JSON stays.
    """
    if _SURROGATE.search(text) is None or not _is_json(text):
        return text
    return _ESCAPE.sub(_character, text)


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _character(escape: re.Match[bytes]) -> bytes:
    high, low = escape.groups()
    if high is not None:
        return bytes.fromhex((high + low).decode()).decode("utf-16-be").encode()
    return _REPLACEMENT if _SURROGATE.match(escape[0]) else escape[0]
