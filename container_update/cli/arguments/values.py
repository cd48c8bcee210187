# SPDX-License-Identifier: Apache-2.0
"""Durations and sizes as people write them: ``5m``, ``1h30m``, ``500ms``; ``8MiB``. Pure."""

from __future__ import annotations

import re

_TIMES = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_TIME = re.compile("".join(f"(?:({_NUMBER}){unit}(?![a-z]))?" for unit in _TIMES))
_SIZES = {"KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "kB": 1000, "MB": 1000**2, "GB": 1000**3}
_SIZE = re.compile(rf"([0-9]+)\s*({'|'.join(_SIZES)})")


def seconds_of(text: str) -> float:
    """Return the seconds of a duration; a number alone is seconds.

    >>> seconds_of("1h30m"), seconds_of("500ms"), seconds_of("90")
    (5400.0, 0.5, 90.0)

    :raises ValueError: it is none.
    """
    if re.fullmatch(f"-?{_NUMBER}", text):
        return float(text)
    found = _TIME.fullmatch(text)
    if not text or found is None:
        raise ValueError(
            f'expected a duration such as 5m, 1h30m, 500ms or a number of seconds, found "{text}"'
        )
    parts = zip(found.groups(), _TIMES.values(), strict=True)
    return sum(float(number) * unit for number, unit in parts if number)


def bytes_of(text: str) -> int:
    """Return the bytes of a size; a number alone is bytes.

    >>> bytes_of("8MiB"), bytes_of("100")
    (8388608, 100)

    :raises ValueError: it is none.
    """
    found = _SIZE.fullmatch(text)
    if found:
        return int(found[1]) * _SIZES[found[2]]
    try:
        return int(text)
    except ValueError:
        raise ValueError(
            f'expected a size such as 8MiB, 500kB or a number of bytes, found "{text}"'
        ) from None


def duration_text(seconds: float) -> str:
    """Return a duration in its largest units.

    >>> duration_text(5400), duration_text(0.1), duration_text(0)
    ('1h30m', '100ms', '0s')
    """
    text, left = "", seconds
    for unit, size in _TIMES.items():
        number = round(left / size, 6) if unit == "ms" else left // size
        if number:
            text += f"{number:g}{unit}"
            left -= number * size
    return text or "0s"


def size_text(size: int) -> str:
    """Return a size in its largest unit.

    >>> size_text(8388608), size_text(1000)
    ('8MiB', '1000 bytes')
    """
    for unit in ("GiB", "MiB", "KiB"):
        if size >= _SIZES[unit] and size % _SIZES[unit] == 0:
            return f"{size // _SIZES[unit]}{unit}"
    return f"{size} bytes"
