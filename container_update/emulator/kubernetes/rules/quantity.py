# SPDX-License-Identifier: Apache-2.0
"""Quantities: '1000m' and '1' are the same, and the server stores the shortest way to write it.

Source: API reference, "Quantity": no fractions, and the largest suffix that allows that.
"""

from __future__ import annotations

import re
from fractions import Fraction
from math import ceil
from typing import Any

from container_update.emulator.kubernetes.api_errors import bad_request

_FORM = re.compile(r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(.*)")
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)")
_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_ONE = _DECIMAL.index("")
_EXPRESSION = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"


def value(given: Any) -> Fraction:
    """Return the number that a quantity stands for; raise 400 for what is none."""
    return _parse(given)[0]


def canonical(given: Any) -> str:
    """Return a quantity, text or number, as the server stores it; raise 400 for what is none."""
    number, suffix = _parse(given)
    sign, number = ("-" if number < 0 else ""), abs(number)
    if suffix in _BINARY[1:] and number >= 1024 and number.denominator == 1:
        return sign + _scale(int(number), 1024, _BINARY)
    text = _scale(ceil(number * 1000**_ONE), 1000, _DECIMAL)
    if _EXPONENT.fullmatch(suffix) and text[-1] in _DECIMAL[_ONE + 1 :]:
        text = f"{text[:-1]}e{3 * (_DECIMAL.index(text[-1]) - _ONE)}"
    return sign + text


def _parse(given: Any) -> tuple[Fraction, str]:
    text = str(given)
    match = None if isinstance(given, bool) else _FORM.fullmatch(text)
    if match is None:
        raise bad_request(f"quantities must match the regular expression '{_EXPRESSION}'")
    sign, digits, suffix = match.groups()
    number = Fraction(f"0{digits}") * _factor(suffix)
    return (-number if sign == "-" else number), suffix


def _factor(suffix: str) -> Fraction:
    exponent = _EXPONENT.fullmatch(suffix)
    if suffix in _DECIMAL:
        return Fraction(1000) ** (_DECIMAL.index(suffix) - _ONE)
    if suffix in _BINARY:
        return Fraction(1024) ** _BINARY.index(suffix)
    if exponent is None:
        raise bad_request("unable to parse quantity's suffix")
    return Fraction(10) ** int(exponent[1])


def _scale(number: int, base: int, suffixes: tuple[str, ...]) -> str:
    """Return *number*, counted in the first suffix, with the last one that divides it."""
    if number == 0:
        return "0"
    index = 0
    while number % base == 0 and index + 1 < len(suffixes):
        number, index = number // base, index + 1
    return f"{number}{suffixes[index]}"
