# SPDX-License-Identifier: Apache-2.0
"""What all API objects have: a key, labels, owners, finalizers, conditions. Pure."""

from __future__ import annotations

from container_update.emulator.json_type import Json

Key = tuple[str, str]
"""Namespace ('' for none) and name."""


def key_of(obj: Json) -> Key:
    """Return the object's key."""
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def labels_of(obj: Json) -> dict[str, str]:
    """Return the object's labels, or an empty dict."""
    return obj["metadata"].get("labels") or {}


def annotations_of(obj: Json) -> dict[str, str]:
    """Return the object's annotations, or an empty dict."""
    return obj["metadata"].get("annotations") or {}


def is_deleting(obj: Json) -> bool:
    """Return whether the object is marked as deleted and still exists."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def condition_of(obj: Json, kind: str) -> Json | None:
    """Return the condition of that type in the object's status, or None."""
    conditions = obj.get("status", {}).get("conditions") or []
    return next((entry for entry in conditions if entry["type"] == kind), None)


def is_established(definition: Json) -> bool:
    """Tell whether the objects of a CustomResourceDefinition are served."""
    condition = condition_of(definition, "Established")
    return condition is not None and condition["status"] == "True"


def new_condition(
    kind: str, status: str, reason: str, message: str, now: str, **more: object
) -> Json:
    """Return a condition for an object's status; *now* is when it became so."""
    times = {"lastTransitionTime": now, **more}
    return {"type": kind, "status": status, "reason": reason, "message": message, **times}


def has_finalizer(obj: Json, finalizer: str) -> bool:
    """Return whether the finalizer holds the object."""
    return finalizer in (obj["metadata"].get("finalizers") or [])


def without_finalizer(obj: Json, finalizer: str) -> Json:
    """Return the object without the finalizer, which it has."""
    kept = [entry for entry in obj["metadata"]["finalizers"] if entry != finalizer]
    return {**obj, "metadata": {**obj["metadata"], "finalizers": kept}}


def owner_references(obj: Json) -> list[Json]:
    """Return the object's owner references, or an empty list."""
    return obj["metadata"].get("ownerReferences") or []


def controller_of(obj: Json) -> Json | None:
    """Return the reference to the one owner that controls the object, or None."""
    return next((owner for owner in owner_references(obj) if owner.get("controller")), None)


def reference_to(owner: Json) -> Json:
    """Return the owner reference by which *owner* controls an object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def adopt(obj: Json, owner: Json) -> Json:
    """Return the object with *owner* as its controller."""
    return _with_owners(obj, [*owner_references(obj), reference_to(owner)])


def release(obj: Json, uid: str) -> Json:
    """Return the object without the owner of this UID."""
    return _with_owners(obj, [owner for owner in owner_references(obj) if owner["uid"] != uid])


def _with_owners(obj: Json, owners: list[Json]) -> Json:
    metadata = {key: value for key, value in obj["metadata"].items() if key != "ownerReferences"}
    if owners:
        metadata["ownerReferences"] = owners
    return {**obj, "metadata": metadata}
