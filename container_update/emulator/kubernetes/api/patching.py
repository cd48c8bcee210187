# SPDX-License-Identifier: Apache-2.0
"""Patches: JSON patch (RFC 6902), merge patch (RFC 7386), strategic merge patch.

The last is Kubernetes' own: lists of objects are merged by a key if the type has one (the API
reference calls it "patch merge key"), and a patch may have directives (``$patch``, ``$retainKeys``,
``$setElementOrder/x``, ``$deleteFromPrimitiveList/x``). A server-side apply is in :mod:`writing`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

import jsonpatch

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.api_errors import ApiError, bad_request
from container_update.emulator.kubernetes.resources import Resource

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

Patcher = Callable[[Json, Any], Json]


def check_type(kind: Resource, content_type: str) -> None:
    """Raise ApiError (415) for a type of patch that is not supported."""
    supported = [*_patchers(kind), APPLY_PATCH]
    if content_type in supported:
        return
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        f"{', '.join(supported)}"
    )
    raise ApiError(415, "UnsupportedMediaType", message, {})


def apply(kind: Resource, content_type: str, base: Json, patch: Any) -> Json:
    """Return *base* with *patch* applied; neither is changed.

    :raises ApiError: 400 for an invalid patch, 415 for an unsupported type, 422 for a patch that
        cannot be applied.
    """
    check_type(kind, content_type)
    return _patchers(kind)[content_type](base, patch)


def _patchers(kind: Resource) -> Mapping[str, Patcher]:
    return _CUSTOM_PATCHERS if kind.custom else _PATCHERS


def _json_patch(base: Json, patch: Any) -> Json:
    if not isinstance(patch, list):
        raise bad_request("a JSON patch is a list of operations")
    try:
        patched: Json = jsonpatch.apply_patch(base, patch)
    except jsonpatch.InvalidJsonPatch as error:
        raise bad_request(f"not a JSON patch: {error}") from error
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
        message = "the server rejected our request due to an error in our request"
        raise ApiError(422, "Invalid", message, {}) from error
    return patched


def _merge_patch(base: Json, patch: Any) -> Json:
    _require_object(patch)
    return dict(_merge(copy.deepcopy(base), copy.deepcopy(patch)))


def _merge(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    if not isinstance(target, dict):
        target = {}
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = _merge(target.get(key), value)
    return target


def _strategic_patch(base: Json, patch: Any) -> Json:
    _require_object(patch)
    return _merged_map(copy.deepcopy(base), copy.deepcopy(patch))


def _require_object(patch: Any) -> None:
    if not isinstance(patch, dict):
        raise bad_request("the patch is not an object")


_CUSTOM_PATCHERS: Mapping[str, Patcher] = {JSON_PATCH: _json_patch, MERGE_PATCH: _merge_patch}
_PATCHERS: Mapping[str, Patcher] = {**_CUSTOM_PATCHERS, STRATEGIC_PATCH: _strategic_patch}


# --- strategic merge ----------------------------------------------------------------------------

_MERGE_KEYS: Mapping[str, tuple[str, ...]] = {
    "addresses": ("type",),
    "conditions": ("type",),
    "containers": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "podIPs": ("ip",),
    "ports": ("containerPort", "port"),
    "resourceClaims": ("name",),
    "schedulingGates": ("name",),
    "secrets": ("name",),
    "taints": ("key",),
    "topologySpreadConstraints": ("topologyKey",),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
    "webhooks": ("name",),
}
"""A list's field to the keys that identify its elements: the first that all of them have. Any other
list (tolerations, command, envFrom, ...) is replaced as a whole."""

_MERGED_TEXTS = frozenset({"finalizers"})
_PATCH, _RETAIN = "$patch", "$retainKeys"
_ORDER, _REMOVE = "$setElementOrder/", "$deleteFromPrimitiveList/"


def _merged_map(target: Json, patch: Json) -> Json:
    directive = patch.pop(_PATCH, None)
    if directive == "replace":
        return {key: _without_nulls(value) for key, value in patch.items() if value is not None}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise bad_request(f"unknown patch type found: {directive}")
    retained = patch.pop(_RETAIN, None)
    if retained is not None:
        target = {key: value for key, value in target.items() if key in retained}
    orders = _take(patch, _ORDER)
    for field, values in _take(patch, _REMOVE).items():
        target[field] = [entry for entry in target.get(field, []) if entry not in values]
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = _merged_field(key, target.get(key), value)
    for field, order in orders.items():
        if isinstance(target.get(field), list):
            target[field] = _order(field, target[field], order)
    return target


def _take(patch: Json, prefix: str) -> dict[str, Any]:
    """Remove the directives with *prefix* from the patch and return them by field."""
    keys = [key for key in patch if key.startswith(prefix)]
    return {key[len(prefix) :]: patch.pop(key) for key in keys}


def _merged_field(key: str, target: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return _merged_map(target if isinstance(target, dict) else {}, value)
    if not isinstance(value, list):
        return value
    current = target if isinstance(target, list) else []
    if key in _MERGED_TEXTS:
        return [*current, *(entry for entry in value if entry not in current)]
    merge_key = _merge_key(key, [*current, *value])
    if merge_key is None:
        return [_without_nulls(entry) for entry in value if not _is_directive(entry)]
    return _merged_list(current, value, merge_key)


def _merge_key(field: str, elements: list[Any]) -> str | None:
    """Return the key by which the elements of *field* are merged; None: the list is replaced."""
    plain = [entry for entry in elements if isinstance(entry, dict) and not _is_directive(entry)]
    for key in _MERGE_KEYS.get(field, ()):
        if all(key in entry for entry in plain):
            return key
    return None


def _is_directive(entry: Any) -> bool:
    return isinstance(entry, dict) and set(entry) == {_PATCH}


def _merged_list(current: list[Any], patch: list[Any], key: str) -> list[Any]:
    """Return the list with elements merged in place and new ones at the end."""
    if any(_is_directive(entry) and entry[_PATCH] == "replace" for entry in patch):
        current = []
    merged = list(current)
    for entry in patch:
        if _is_directive(entry):
            continue
        index = next((at for at, known in enumerate(merged) if known[key] == entry[key]), None)
        if entry.get(_PATCH) == "delete":
            merged = [known for known in merged if known[key] != entry[key]]
        elif index is None:
            merged.append(_merged_map({}, entry))
        else:
            merged[index] = _merged_map(merged[index], entry)
    return merged


def _order(field: str, elements: list[Any], order: list[Any]) -> list[Any]:
    """Return the elements in this order; others stay behind their predecessors."""
    key = _merge_key(field, elements)
    identity: Callable[[Any], Any] = str if key is None else itemgetter(key)
    positions = {identity(entry): position for position, entry in enumerate(order)}
    rank, ranks = -1, []
    for element in elements:
        rank = positions.get(identity(element), rank)
        ranks.append(rank)
    return [element for _, element in sorted(zip(ranks, elements, strict=True), key=lambda p: p[0])]


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_nulls(entry)
            for key, entry in value.items()
            if entry is not None and key != _PATCH
        }
    return value
