# SPDX-License-Identifier: Apache-2.0
"""Which writes are valid, and what the server stores for them.

A write passes through *shape* (types, empty fields), *defaults*, *admission* (additions to a pod)
and *validation*. All are pure, except for the lookup function of admission.
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
    """Return the object for a create request, still without uid and timestamp.

    :param body: the request's body; it is not changed.
    :param lookup: reads other objects.
    :raises ApiError: 400, 403 or 422 for an invalid request.
    """
    new = shape.read(kind, body)
    new["metadata"] = metadata.for_create(kind, namespace, new.get("metadata") or {})
    initial_status.reset(kind, new)
    defaults.apply(kind, new)
    if kind.key == "pods":
        admission.admit_pod(new, lookup)
    _raise_invalid(kind, new, metadata.errors(kind, new) + validation.errors(kind, new))
    return new


def complete_new(kind: Resource, new: Json) -> None:
    """Write into *new* what the server derives from its name and uid."""
    name, uid = new["metadata"].get("name", ""), new["metadata"]["uid"]
    if kind.key == "jobs":
        defaults.label_job(new, name, uid)
    if kind.key == "namespaces":
        defaults.label_namespace(new)
    if kind.key in defaults.PROTECTION:
        finalizers = new["metadata"].get("finalizers", [])
        new["metadata"]["finalizers"] = [*finalizers, defaults.PROTECTION[kind.key]]
    if kind.key == "customresourcedefinitions":
        new["status"] = initial_status.of_definition(new)


def changed_object(kind: Resource, old: Json, body: Json, subresource: str) -> Json:
    """Return the object after a write of *body*, with the version and generation of *old*.

    Neither argument is changed.

    :raises ApiError: 400 or 422 for an invalid request.
    """
    if subresource in updates.SUBRESOURCES:
        return updates.SUBRESOURCES[subresource](kind, old, body)
    new = shape.read(kind, body)
    new["metadata"] = metadata.for_update(old["metadata"], new.get("metadata") or {})
    updates.keep(kind, old, new)
    defaults.apply(kind, new)
    updates.derive(kind, old, new)
    if kind.key == "namespaces":
        defaults.label_namespace(new)
    _raise_invalid(kind, new, metadata.errors(kind, new, old) + validation.errors(kind, new, old))
    return new


_COUNTED_METADATA = {"deployments": "annotations", "endpointslices": "labels"}


def counts_as_change(kind: Resource, old: Json, new: Json) -> bool:
    """Return whether a write changes more than metadata and status: ``generation`` counts it.

    Of some kinds it counts annotations or labels too.
    """
    others = {"metadata": None, "status": None}
    part = _COUNTED_METADATA.get(kind.key, "")
    changed = old["metadata"].get(part) != new["metadata"].get(part)
    return changed or {**old, **others} != {**new, **others}


def _raise_invalid(kind: Resource, new: Json, errors: list[api_errors.FieldError]) -> None:
    if errors:
        name = new["metadata"].get("name", "")
        raise api_errors.invalid(kind.group, kind.kind, name, errors)
