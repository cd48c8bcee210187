"""The texts that cells are made of."""

from __future__ import annotations

from typing import Any

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.tables import durations

NONE = "<none>"


def age(item: Json) -> str:
    """The time since the object was created."""
    return durations.age(item["metadata"].get("creationTimestamp"))


def joined(values: Any) -> str:
    """The values with commas between; '<none>' where there are none."""
    return ",".join(map(str, values)) or NONE


def label_text(labels: Json | None) -> str:
    """'a=b,c=d', ordered by key."""
    return joined(f"{key}={value}" for key, value in sorted((labels or {}).items()))
