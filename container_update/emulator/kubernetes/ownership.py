"""Who owns what: owner references, and which labels things have."""

from __future__ import annotations

from container_update.emulator.json_type import Json


def labels_of(obj: Json) -> dict[str, str]:
    """The object's labels; none is an empty dict."""
    found: dict[str, str] | None = obj["metadata"].get("labels")
    return found or {}


def owner_references(obj: Json) -> list[Json]:
    """The object's owner references; none is an empty list."""
    found: list[Json] | None = obj["metadata"].get("ownerReferences")
    return found or []


def controller_of(obj: Json) -> Json | None:
    """The reference to the one owner that controls the object."""
    for owner in owner_references(obj):
        if owner.get("controller"):
            return owner
    return None


def controller_uid(obj: Json) -> str | None:
    """The UID of the object's controller."""
    owner = controller_of(obj)
    return owner["uid"] if owner is not None else None


def reference_to(owner: Json) -> Json:
    """The owner reference by which *owner* controls an object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def adopted(obj: Json, owner: Json) -> Json:
    """The object with *owner* as its controller."""
    return _with_owners(obj, [*owner_references(obj), reference_to(owner)])


def released(obj: Json, uid: str) -> Json:
    """The object without the owner of this UID."""
    return _with_owners(obj, [owner for owner in owner_references(obj) if owner["uid"] != uid])


def is_deleting(obj: Json) -> bool:
    """Its deletion was asked for and is not finished."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def _with_owners(obj: Json, owners: list[Json]) -> Json:
    metadata = {key: value for key, value in obj["metadata"].items() if key != "ownerReferences"}
    if owners:
        metadata["ownerReferences"] = owners
    return {**obj, "metadata": metadata}
