# SPDX-License-Identifier: Apache-2.0
"""API objects, and how they are written as text."""

import json
from typing import Any

Json = dict[str, Any]
"""An object as the API sends it."""

_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
"""``json.dumps`` would make a new one at each call."""


def compact(value: Any) -> str:
    """Return *value* as JSON without spaces."""
    return _ENCODER.encode(value)
