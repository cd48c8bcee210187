# SPDX-License-Identifier: Apache-2.0
"""Labels and annotations: the manifest's are laid over the live ones, the others stay."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from container_update.model.objects import Json, Manifest

_FIELDS = ("labels", "annotations")

_OF_ONE_OBJECT = (
    "container-update/",
    "deployment.kubernetes.io/",
    "kubectl.kubernetes.io/last-applied-configuration",
    "kubernetes.io/change-cause",
)
"""How the names begin of what is about one object, and not about the one in its place."""

Dropped = tuple[tuple[str, str], ...]
"""(field, name) of what only the old manifest had: 'labels' or 'annotations'."""


def dropped_metadata(old: Manifest | None, new: Manifest) -> Dropped:
    """Return the labels and annotations that only the old manifest has."""
    if old is None:
        return ()
    return tuple(sorted(stated_metadata(old.body) - stated_metadata(new.body)))


def stated_metadata(body: Json) -> frozenset[tuple[str, str]]:
    """Return the labels and annotations that a manifest has, as those of ``Dropped``."""
    return frozenset((f, name) for f in _FIELDS for name in body["metadata"].get(f) or ())


def lay_over(changed: Json, manifest: Json, removed: Dropped) -> None:
    """Lay a manifest's labels and annotations over an object's; the server takes null for ''."""
    own = changed["metadata"]
    for field in _FIELDS:
        said = (manifest["metadata"].get(field) or {}).items()
        given = {name: "" if value is None else value for name, value in said}
        values = {**(own.get(field) or {}), **given}
        gone = {name for kind, name in removed if kind == field}
        assign(own, field, {name: value for name, value in values.items() if name not in gone})


def with_metadata_of_others(body: Json, live: Json, dropped: Dropped) -> Json:
    """Return a workload in the place of a live one, with its other labels and annotations."""
    result = copy.deepcopy(body)
    own = result["metadata"]
    for field in _FIELDS:
        found = live["metadata"].get(field) or {}
        names = [n for n in found if not n.startswith(_OF_ONE_OBJECT) and (field, n) not in dropped]
        assign(own, field, {**{n: found[n] for n in names}, **(own.get(field) or {})})
    return result


def written_metadata(
    manifest: Json, removed: Dropped, before: Json | None
) -> list[tuple[str, str]]:
    """Return (field, name) of each label and annotation that differs from *before*, or goes."""
    own = [(field, name) for field in _FIELDS for name in manifest["metadata"].get(field) or ()]
    if before is not None:
        own = [e for e in own if value_of(before, *e) != value_of(manifest, *e)]
    return [*own, *removed]


def restore(changed: Json, before: Json, names: list[tuple[str, str]]) -> None:
    """Give the labels and annotations of *names* the values that they had before."""
    for field, name in names:
        values = dict(changed["metadata"].get(field) or {})
        values.pop(name, None)
        if (old := value_of(before, field, name)) is not None:
            values[name] = old
        assign(changed["metadata"], field, values)


def value_of(body: Json, field: str, name: str) -> Any:
    """Return the value of a label or annotation, None where there is none."""
    return (body["metadata"].get(field) or {}).get(name)


def assign(target: Json, field: str, values: Mapping[str, Any]) -> None:
    """Set a field, or remove it where there are no values."""
    if values:
        target[field] = dict(values)
    else:
        target.pop(field, None)
