# SPDX-License-Identifier: Apache-2.0
"""Times as servers and clients write them."""

from __future__ import annotations

import re
from datetime import datetime


def moment(time: str) -> str:
    """Return a time in UTC (RFC 3339) for people.

    >>> moment("2026-01-02T03:04:05+00:00")
    '2026-01-02 03:04:05'
    """
    return time.removesuffix("+00:00").replace("T", " ")


def time_of(text: str) -> datetime:
    """Return a time of RFC 3339.

    ``fromisoformat`` of Python 3.10 reads no ``Z``, and fractions of 3 or 6 digits alone.

    >>> time_of("2026-01-02T03:04:05.5Z").isoformat()
    '2026-01-02T03:04:05.500000+00:00'

    :raises ValueError: it is none.
    """
    microseconds = re.sub(r"\.(\d+)", lambda digits: f".{digits[1]:0<6.6}", text, count=1)
    return datetime.fromisoformat(microseconds.replace("Z", "+00:00"))
