"""What differs: live configuration against the new package, old manifests against new ones.

Pure. A Secret's value never leaves this module: the details of a change tell sizes.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from container_update.model.errors import PackageError
from container_update.model.objects import Json, Manifest
from container_update.model.plan import Change, ConfigChange, ImageChange
from container_update.workloads import pod_template
from container_update.workloads.registry import is_workload

# --- configuration ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Content:
    """What a ConfigMap or Secret holds, however it is spelled."""

    data: Mapping[str, bytes]
    """``data``, ``binaryData`` and ``stringData`` as bytes by key."""
    type: str
    """A Secret's type, '' for a ConfigMap."""
    immutable: bool


def content(body: Mapping[str, Any]) -> Content:
    """Return the content of a ConfigMap or Secret, live or from a manifest.

    Source: API reference, ConfigMap and Secret; ``stringData`` overwrites ``data``.

    :raises ValueError: a value that the server would refuse; the message names the field only.
    """
    secret = body.get("kind") == "Secret"
    data: dict[str, bytes] = {}
    for field, encoded in (("data", secret), ("binaryData", True), ("stringData", False)):
        if field == ("binaryData" if secret else "stringData"):
            continue
        entries = body.get(field)
        if entries is not None and not isinstance(entries, Mapping):
            raise ValueError(f"{field}: expected a map of strings")
        for key, value in (entries or {}).items():
            data[str(key)] = _bytes(f"{field}.{key}", value, encoded=encoded)
    kind = str(body.get("type") or "Opaque") if secret else ""
    return Content(data, kind, bool(body.get("immutable")))


def _bytes(field: str, value: object, *, encoded: bool) -> bytes:
    if value is None:
        return b""
    if not isinstance(value, str):
        raise ValueError(
            f"{field}: expected a string, found a value of type {type(value).__name__}: "
            "put it in quotes"
        )
    if not encoded:
        return value.encode()
    try:
        return base64.b64decode("".join(value.split()), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"{field}: expected base64, found something else") from None


def config_change(new: Manifest, live: Json | None) -> Change | None:
    """How the live object differs from what the new package says; None where it does not.

    Labels and annotations do not count: they alone change nothing for a container.

    :param new: the manifest of a ConfigMap or Secret.
    :param live: the object in the cluster, None where there is none.
    :raises PackageError: the manifest has a value that the server would refuse.
    """
    try:
        wanted = content(new.body)
    except ValueError as error:
        raise PackageError(f"{new.source}: {new.key}: {error}") from None
    if live is None:
        keys = frozenset(wanted.data)
        return Change(new.key, ConfigChange.CREATE, keys, True, new.source, ("is not there yet",))
    found = content(live)
    if wanted == found:
        return None
    keys = frozenset(
        key for key in {*wanted.data, *found.data} if wanted.data.get(key) != found.data.get(key)
    )
    retyped = wanted.type != found.type
    recreate = found.immutable or retyped
    how = ConfigChange.RECREATE if recreate else ConfigChange.REPLACE
    return Change(new.key, how, keys, retyped, new.source, tuple(_details(wanted, found, keys)))


def _details(wanted: Content, found: Content, keys: frozenset[str]) -> Iterator[str]:
    for key in sorted(keys):
        old, new = found.data.get(key), wanted.data.get(key)
        if old is None:
            yield f"key {key}: new, {len(new or b'')} bytes"
        elif new is None:
            yield f"key {key}: removed"
        else:
            yield f"key {key}: other content, {len(old)} -> {len(new)} bytes"
    if wanted.type != found.type:
        yield f"type: {found.type} -> {wanted.type}"
    if wanted.immutable != found.immutable:
        yield f"immutable: {str(found.immutable).lower()} -> {str(wanted.immutable).lower()}"
    if found.immutable:
        yield "is immutable: deleted and created again"


# --- images -------------------------------------------------------------------------------------


def images(body: Mapping[str, Any]) -> dict[str, str]:
    """Container name to image, init containers too, of a workload or its manifest."""
    return {
        str(container.get("name")): str(container.get("image", ""))
        for _, container in pod_template.containers(pod_template.pod_spec(body))
    }


def image_changes(old: Manifest, new: Manifest) -> tuple[ImageChange, ...]:
    """Return the containers of the old manifest that the new one gives another image, in order.

    :raises PackageError: a container of the old manifest is not in the new one, or has no image.
    """
    wanted = images(new.body)
    changes = []
    for group, container in pod_template.containers(pod_template.pod_spec(old.body)):
        name, image = str(container.get("name")), str(container.get("image", ""))
        if name not in wanted:
            raise PackageError(
                f"{new.source}: {new.key}: expected a container {name} as in {old.source}, found "
                f"{', '.join(wanted) or 'none'}: containers are matched by name, so keep the name"
            )
        if image and not wanted[name]:
            raise PackageError(
                f"{new.source}: {new.key}: container {name}: expected an image, as in "
                f"{old.source}, found none"
            )
        if wanted[name] != image:
            init = pod_template.runs_to_its_end(group, container)
            changes.append(ImageChange(name, image, wanted[name], init))
    return tuple(changes)


# --- everything else ----------------------------------------------------------------------------

_CONTENT_FIELDS = frozenset({"data", "binaryData", "stringData", "type", "immutable"})


def ignored_fields(old: Manifest, new: Manifest) -> tuple[str, ...]:
    """Return the field paths that differ between two manifests and do not take effect, in order.

    Everything but configuration content and container images. Lists of named things (containers,
    volumes, env, ports) are matched by name, so that one insertion is one path.
    """
    old_body, new_body = old.body, new.body
    if old.key.is_config:
        old_body = {k: v for k, v in old_body.items() if k not in _CONTENT_FIELDS}
        new_body = {k: v for k, v in new_body.items() if k not in _CONTENT_FIELDS}
    elif is_workload(old.key):
        new_images = images(new_body)
        old_body = pod_template.with_images(old_body, new_images)
    return tuple(_paths(old_body, new_body, ""))


def _paths(old: object, new: object, path: str) -> Iterator[str]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in (*old, *(key for key in new if key not in old)):
            below = f"{path}.{key}" if path else str(key)
            yield from _paths(old.get(key), new.get(key), below)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _list_paths(old, new, path)
    elif not _same(old, new):
        yield path


def _list_paths(old: list[Any], new: list[Any], path: str) -> Iterator[str]:
    old_by_name, new_by_name = _by_name(old), _by_name(new)
    if old_by_name is None or new_by_name is None:
        if old != new:
            yield path
        return
    for name in (*old_by_name, *(name for name in new_by_name if name not in old_by_name)):
        yield from _paths(old_by_name.get(name), new_by_name.get(name), f"{path}[{name}]")


def _by_name(items: list[Any]) -> dict[str, Any] | None:
    """Name to item, or None where the items have no names of their own."""
    if not all(isinstance(item, Mapping) and "name" in item for item in items):
        return None
    named = {str(item["name"]): item for item in items}
    return named if len(named) == len(items) else None


def _same(old: object, new: object) -> bool:
    """Return whether two values are the same to the API server: absent, empty and null are."""
    return old == new or (_empty(old) and _empty(new))


def _empty(value: object) -> bool:
    return value is None or (isinstance(value, (dict, list)) and not value)
