"""API objects, and how they are written as text."""

import json
from typing import Any

Json = dict[str, Any]
"""An object as the API sends it."""


def compact(value: Any) -> str:
    """Return *value* as JSON without spaces."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
