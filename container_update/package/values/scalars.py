# SPDX-License-Identifier: Apache-2.0
"""Unquoted YAML scalars as ``kubectl`` reads them, and as Go writes them in JSON. Pure."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_INTEGER = re.compile(
    r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[oO]?([0-7]+)|0[bB]([01]+)|(?<![-+])0b([-+][01]+)"
    r"|(0|[1-9]\d*))",
    re.ASCII,
)
_BASES = (16, 8, 2, 2, 10)
"""The base of each group of _INTEGER after the first one, the sign."""
_FLOAT = re.compile(r"[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?", re.ASCII)
_NO_NUMBER_IN_JSON = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


def scalar(text: str) -> Any:
    """Return the value of an unquoted YAML scalar, as ``kubectl`` reads it.

    An integer that does not fit into 64 bits with a sign is a float.

    :raises ValueError: a number that JSON does not have.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _NO_NUMBER_IN_JSON.fullmatch(text):
        raise ValueError("JSON has no infinity and no NaN: quote the value")
    digits = text.replace("_", "") if text[:1] in "+-0123456789" else text
    integer = _INTEGER.fullmatch(digits)
    if integer and len(digits) <= 70:  # 64 bits, even in base 2
        base, group = next((b, g) for b, g in zip(_BASES, integer.groups()[1:], strict=True) if g)
        number = int(integer[1] + group, base)
        if -(2**63) <= number < 2**64:
            return number if number < 2**63 else float(number)
    if _FLOAT.fullmatch(digits) and abs(value := float(digits)) != float("inf"):
        return value
    return text


def as_sent(value: Any) -> Any:
    """Return a scalar as Go writes it in JSON: a whole number below 1e21 without a fraction."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return int(Decimal(repr(value)))
    return value
