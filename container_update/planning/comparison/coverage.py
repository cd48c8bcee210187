# SPDX-License-Identifier: Apache-2.0
"""Whether a live object has everything that its own manifest says. Pure."""

from __future__ import annotations

import re
from typing import Any

from container_update.model.objects import Json
from container_update.planning.comparison.diff import is_empty, named_items

_QUANTITIES = frozenset(
    {"averageValue", "capacity", "divisor", "hard", "limits", "requests", "sizeLimit"}
)
"""Fields that are quantities, or mappings of them."""
_QUANTITY = re.compile(r"([0-9.]+)(m|[kMGTPE]|[KMGTPE]i)?")
_FACTORS = {"": 1.0, "m": 0.001} | {
    f"{prefix}{i}": float(base**power)
    for i, base in (("", 1000), ("i", 1024))
    for power, prefix in enumerate("kMGTPE" if not i else "KMGTPE", start=1)
}


def covers(live: Json, manifest: Json) -> bool:
    """Tell whether a live object has everything that its manifest says.

    What else it has does not count: the server adds defaults. The server may also spell a quantity
    differently (1000m, 1). Replicas do not count: an autoscaler or an operator owns them.
    """
    fields = {name: value for name, value in manifest.items() if name not in NOT_CONTENT}
    spec = fields.get("spec")
    if isinstance(spec, dict):
        fields["spec"] = {name: value for name, value in spec.items() if name != "replicas"}
    return _has(fields, live) and all(
        _has(manifest["metadata"].get(name), live["metadata"].get(name))
        for name in ("labels", "annotations")
    )


NOT_CONTENT = frozenset({"apiVersion", "kind", "metadata", "status"})


def _has(said: Any, live: Any) -> bool:
    if is_empty(said):
        return True
    if isinstance(said, dict):
        return isinstance(live, dict) and all(
            _is_same_quantity(value, live.get(name))
            if name in _QUANTITIES
            else _has(value, live.get(name))
            for name, value in said.items()
        )
    if isinstance(said, list):
        return isinstance(live, list) and _has_items(said, live)
    return str(said) == str(live) or (said == "" and live is None)


def _has_items(said: list[Any], live: list[Any]) -> bool:
    named, live_named = named_items(said), named_items(live)
    if named is not None and live_named is not None:
        return all(
            name in live_named and _has(said[index], live[live_named[name]])
            for name, index in named.items()
        )
    return len(said) == len(live) and all(map(_has, said, live))


def _is_same_quantity(said: Any, live: Any) -> bool:
    """Tell whether a quantity, or each of a mapping of them, is the live one."""
    if isinstance(said, dict):
        return all(_is_same_quantity(said[name], (live or {}).get(name)) for name in said)
    number = _number(said)
    return _has(said, live) if number is None else number == _number(live)


def _number(value: object) -> float | None:
    """Return what a quantity comes to (API reference, Quantity); None for another text."""
    found = _QUANTITY.fullmatch(str(value))
    try:
        return None if found is None else float(found[1]) * _FACTORS[found[2] or ""]
    except ValueError:
        return None
