"""What may be written, and what the server makes of it.

Three steps, each a module or two: the *shape* (types, empty fields), the *defaults* and what
*admission* adds to a pod, and *validation*. All pure but for the lookup that admission is handed.
"""

from __future__ import annotations

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import api_errors
from container_update.emulator.kubernetes.resources import Resource
from container_update.emulator.kubernetes.rules import (
    admission,
    defaults,
    initial_status,
    metadata,
    shape,
    updates,
    validation,
)
from container_update.emulator.kubernetes.rules.admission import Lookup

__all__ = ["changed_object", "complete_new", "counts_as_change", "new_object"]


def new_object(kind: Resource, namespace: str, body: Json, lookup: Lookup) -> Json:
    """The object that a create request asks for, not yet named or stamped.

    *lookup* reads other objects by resource, namespace and name. ApiError 400, 403 or 422 where the
    request is refused. *body* is not changed.
    """
    new = shape.read(kind, body)
    new["metadata"] = metadata.for_create(kind, namespace, new.get("metadata") or {})
    initial_status.reset(kind, new)
    defaults.apply(kind, new)
    if kind.key == "pods":
        admission.admit_pod(new, lookup)
    _refuse(kind, new, metadata.errors(kind, new) + validation.errors(kind, new))
    return new


def complete_new(kind: Resource, new: Json) -> None:
    """What the server derives from the name and the uid it has just given, written into *new*."""
    name, uid = new["metadata"].get("name", ""), new["metadata"]["uid"]
    if kind.key == "jobs":
        defaults.label_job(new, name, uid)
    if kind.key == "namespaces":
        new["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name
    if kind.key == "customresourcedefinitions":
        initial_status.establish(new)


def changed_object(kind: Resource, old: Json, body: Json, subresource: str) -> Json:
    """What a write of *body* over *old* leaves, with *old*'s identity, version and generation.

    ApiError 400 or 422 where it is refused. Neither argument is changed.
    """
    if subresource in updates.SUBRESOURCES:
        return updates.SUBRESOURCES[subresource](kind, old, body)
    new = shape.read(kind, body)
    new["metadata"] = metadata.for_update(old["metadata"], new.get("metadata") or {})
    updates.keep(kind, old, new)
    defaults.apply(kind, new)
    updates.derive(kind, old, new)
    _refuse(
        kind,
        new,
        metadata.errors(kind, new) + validation.errors(kind, new, old),
    )
    return new


def counts_as_change(old: Json, new: Json) -> bool:
    """Whether a write counts in ``metadata.generation``: anything but metadata and status."""
    apart = ("metadata", "status")
    return {key: value for key, value in old.items() if key not in apart} != {
        key: value for key, value in new.items() if key not in apart
    }


def _refuse(kind: Resource, new: Json, errors: list[api_errors.FieldError]) -> None:
    if errors:
        name = new["metadata"].get("name", "")
        raise api_errors.invalid(kind.group, kind.kind, name, errors)
