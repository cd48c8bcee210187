# SPDX-License-Identifier: Apache-2.0
"""Labels and annotations: the manifest's are laid over the live ones, the others stay."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from container_update.model.objects import Json, Manifest
from container_update.workloads import pod_template

_FIELDS = ("labels", "annotations")

TEMPLATE_ANNOTATIONS = "template annotations"
"""In ``Dropped``: an annotation that only the old manifest's pod template had."""

_OF_ONE_OBJECT = (
    "container-update/",
    "deployment.kubernetes.io/",
    "kubectl.kubernetes.io/last-applied-configuration",
    "kubernetes.io/change-cause",
)
"""How the names begin of what is about one object, and not about the one in its place."""

Dropped = tuple[tuple[str, str], ...]
"""(field, name) of what only the old manifest had: 'labels', 'annotations' or the above."""


def dropped_metadata(old: Manifest | None, new: Manifest) -> Dropped:
    """Return the labels and annotations that only the old manifest has."""
    if old is None:
        return ()
    return tuple(sorted(stated_metadata(old.body) - stated_metadata(new.body)))


def stated_metadata(body: Json) -> frozenset[tuple[str, str]]:
    """Return the labels and annotations that a manifest has, as those of ``Dropped``."""
    template = pod_template.pod_template(body)
    of_template = {} if template is body else template.get("metadata") or {}
    stated = {field: body["metadata"].get(field) for field in _FIELDS}
    stated[TEMPLATE_ANNOTATIONS] = of_template.get("annotations")
    return frozenset((field, name) for field, names in stated.items() for name in names or ())


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
    """Return a workload that takes the place of a live one, with the other labels and annotations
    of that one, and the other annotations of its pod template."""
    result = copy.deepcopy(body)
    own = pod_template.pod_template(result).setdefault("metadata", {})
    its = pod_template.pod_template(live).get("metadata") or {}
    places = [(field, field, result["metadata"], live["metadata"]) for field in _FIELDS]
    for kind, field, into, found in (*places, (TEMPLATE_ANNOTATIONS, "annotations", own, its)):
        names = [n for n in found.get(field) or () if not n.startswith(_OF_ONE_OBJECT)]
        others = {name: found[field][name] for name in names if (kind, name) not in dropped}
        assign(into, field, {**others, **(into.get(field) or {})})
    return result


def written_metadata(
    manifest: Json, removed: Dropped, before: Json | None
) -> list[tuple[str, str]]:
    """Return (field, name) of each label and annotation that differs from *before*, or goes."""
    own = [(field, name) for field in _FIELDS for name in manifest["metadata"].get(field) or ()]
    if before is not None:
        own = [e for e in own if value_of(before, *e) != value_of(manifest, *e)]
    return [*own, *(entry for entry in removed if entry[0] in _FIELDS)]


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
