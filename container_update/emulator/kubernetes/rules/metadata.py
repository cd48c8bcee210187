# SPDX-License-Identifier: Apache-2.0
"""An object's metadata: what a client may set, and which names and labels are valid."""

from __future__ import annotations

import re

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.api_errors import (
    FieldError,
    forbidden_field,
    invalid_value,
    not_decodable,
    required_error,
)
from container_update.emulator.kubernetes.resources import Resource

_SET_BY_CLIENT = ("name", "generateName", "labels", "annotations", "ownerReferences", "finalizers")
_CHANGED_BY_CLIENT = ("labels", "annotations", "ownerReferences", "finalizers")

_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_VALUE = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"

_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    f"for validation is '{_SUBDOMAIN}')"
)
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    f"for validation is '{LABEL}')"
)
_LABEL_KEY = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_KEY_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    f"validation is '{_LABEL_KEY}')"
)
_LABEL_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    f"'12345', regex used for validation is '{_LABEL_VALUE}')"
)
_LABEL_NAMED = frozenset({"namespaces", "services"})
_STANDARD_FINALIZERS = frozenset({"foregroundDeletion", "kubernetes", "orphan"})
_PATH_NAMED = frozenset({"roles", "rolebindings", "clusterroles", "clusterrolebindings"})


def for_create(kind: Resource, namespace: str, sent: Json) -> Json:
    """Return the metadata of a new object; raise 500 if *sent* has a resourceVersion."""
    if sent.get("resourceVersion"):
        raise not_decodable("resourceVersion should not be set on objects to be created")
    new = {key: sent[key] for key in _SET_BY_CLIENT if sent.get(key)}
    if kind.namespaced:
        new["namespace"] = namespace
    if sent.get("generation") and not kind.generation:
        new["generation"] = sent["generation"]  # no rule of the kind says otherwise
    return new


def for_update(old: Json, sent: Json) -> Json:
    """Return the metadata of a changed object: *old* with what the client may change."""
    new = {key: value for key, value in old.items() if key not in _CHANGED_BY_CLIENT}
    new.update({key: sent[key] for key in _CHANGED_BY_CLIENT if sent.get(key)})
    return new


def errors(kind: Resource, new: Json, old: Json | None = None) -> list[FieldError]:
    """Return the errors in the metadata of *new*, or in changing *old* into it."""
    metadata = new["metadata"]
    name = metadata.get("name")
    if not name and not metadata.get("generateName"):
        return [required_error("metadata.name", "name or generateName is required")]
    problems = name_errors(kind, name) if name else []
    problems += label_errors("metadata.labels", metadata.get("labels", {}))
    problems += _label_key_errors("metadata.annotations", metadata.get("annotations", {}))
    problems += _owner_errors(metadata.get("ownerReferences", []))
    return problems + _finalizer_errors(kind, metadata, (old or {}).get("metadata", {}))


def _owner_errors(owners: list[Json]) -> list[FieldError]:
    problems = [
        invalid_value(f"metadata.ownerReferences.{key}", owner.get(key, ""), "must not be empty")
        for owner in owners
        for key in ("apiVersion", "kind", "name", "uid")
        if not owner.get(key)
    ]
    controllers = [f"{each['kind']}/{each['name']}" for each in owners if each.get("controller")]
    if len(controllers) > 1:
        why = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{' and '.join(controllers[:2])}"
        )
        problems.append(invalid_value("metadata.ownerReferences", owners, why))
    return problems


def _finalizer_errors(kind: Resource, metadata: Json, old: Json) -> list[FieldError]:
    finalizers, known = metadata.get("finalizers", []), old.get("finalizers", [])
    why = "name is neither a standard finalizer name nor is it fully qualified"
    is_core = not kind.custom and kind.key != "customresourcedefinitions"
    problems = [
        invalid_value(f"metadata.finalizers[{index}]", name, why)
        for index, name in enumerate(finalizers)
        if is_core and "/" not in name and name not in _STANDARD_FINALIZERS
    ]
    added = [name for name in finalizers if name not in known]
    if "deletionTimestamp" in old and added:
        listed = ", ".join(f'"{name}"' for name in added)
        why = (
            "no new finalizers can be added if the object is being deleted, found new finalizers "
            f"[]string{{{listed}}}"
        )
        problems.append(forbidden_field("metadata.finalizers", why))
    return problems


def name_errors(kind: Resource, name: str) -> list[FieldError]:
    """Return the errors in the name of an object of *kind*."""
    if kind.key in _PATH_NAMED:
        return []
    pattern, longest, rule = _SUBDOMAIN, 253, _SUBDOMAIN_RULE
    if kind.key in _LABEL_NAMED:
        pattern, longest, rule = LABEL, 63, label_rule(name)
    problems = []
    if kind.key == "cronjobs" and len(name) > 52:
        problems.append(invalid_value("metadata.name", name, "must be no more than 52 characters"))
    if len(name) > longest:
        problems.append(
            invalid_value("metadata.name", name, f"must be no more than {longest} bytes")
        )
    if not re.fullmatch(pattern, name):
        problems.append(invalid_value("metadata.name", name, rule))
    return problems


def _label_key_errors(field: str, labels: Json) -> list[FieldError]:
    names = ((key, key.rpartition("/")[2]) for key in labels)
    return [
        invalid_value(field, key, f"name part {_LABEL_KEY_RULE}")
        for key, name in names
        if not re.fullmatch(_LABEL_KEY, name)
    ]


def label_rule(name: str) -> str:
    """Return what the server says about a name that is no label."""
    return "must not contain dots" if "." in name else _LABEL_RULE


def label_errors(field: str, labels: Json) -> list[FieldError]:
    """Return the errors in the keys and values of *labels* at *field*."""
    problems = _label_key_errors(field, labels)
    for value in labels.values():
        if len(value) > 63:
            problems.append(invalid_value(field, value, "must be no more than 63 bytes"))
        if not re.fullmatch(_LABEL_VALUE, value):
            problems.append(invalid_value(field, value, _LABEL_VALUE_RULE))
    return problems
