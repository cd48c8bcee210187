# SPDX-License-Identifier: Apache-2.0
"""What the server warns of: it stores the object all the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_CONTAINERS = frozenset({"containers", "initContainers"})


def of(value: Any, path: str = "") -> Iterator[str]:
    """Yield what is doubtful in an object of a built-in kind: an env that hides another one."""
    if not isinstance(value, dict):
        return
    for name, below in value.items():
        place = f"{path}.{name}" if path else name
        if name in _CONTAINERS and isinstance(below, list):
            for index, container in enumerate(below):
                yield from _hidden(container, f"{place}[{index}].env")
        else:
            yield from of(below, place)


def _hidden(container: Any, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, entry in enumerate(container.get("env") or ()):
        name = str(entry.get("name"))
        if name in seen and f"$({name})" not in str(entry.get("value", "")):
            yield (
                f'{path}[{index}]: hides previous definition of "{name}", which may be dropped '
                "when using apply"
            )
        seen.add(name)
