# SPDX-License-Identifier: Apache-2.0
"""An object's metadata: what a client may set, and which names and labels are valid."""

from __future__ import annotations

import re

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.api_errors import (
    FieldError,
    bad_request,
    invalid_value,
    required,
)
from container_update.emulator.kubernetes.resources import Resource

_SET_BY_CLIENT = ("name", "generateName", "labels", "annotations", "ownerReferences", "finalizers")
_CHANGED_BY_CLIENT = ("labels", "annotations", "ownerReferences", "finalizers")

_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SERVICE = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_VALUE = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"

_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    f"for validation is '{_SUBDOMAIN}')"
)
LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    f"for validation is '{LABEL}')"
)
_SERVICE_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    f"regex used for validation is '{_SERVICE}')"
)
_LABEL_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    f"'12345', regex used for validation is '{_LABEL_VALUE}')"
)
_NAME_RULES = {
    "namespaces": (LABEL, 63, LABEL_RULE),
    "services": (_SERVICE, 63, _SERVICE_RULE),
}
_PATH_NAMED = frozenset({"roles", "rolebindings", "clusterroles", "clusterrolebindings"})


def for_create(kind: Resource, namespace: str, sent: Json) -> Json:
    """Return the metadata of a new object; raise 400 if *sent* has a resourceVersion."""
    if sent.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    new = {key: sent[key] for key in _SET_BY_CLIENT if sent.get(key)}
    if kind.namespaced:
        new["namespace"] = namespace
    return new


def for_update(old: Json, sent: Json) -> Json:
    """Return the metadata of a changed object: *old* with what the client may change."""
    new = {key: value for key, value in old.items() if key not in _CHANGED_BY_CLIENT}
    new.update({key: sent[key] for key in _CHANGED_BY_CLIENT if sent.get(key)})
    return new


def errors(kind: Resource, new: Json) -> list[FieldError]:
    """Return the errors in the metadata of *new*."""
    metadata = new["metadata"]
    name = metadata.get("name")
    if not name and not metadata.get("generateName"):
        return [required("metadata.name", "name or generateName is required")]
    problems = name_errors(kind, name) if name else []
    problems += label_errors("metadata.labels", metadata.get("labels", {}))
    for index, owner in enumerate(metadata.get("ownerReferences", [])):
        field = f"metadata.ownerReferences[{index}]"
        problems += [
            required(f"{field}.{key}", "must not be empty")
            for key in ("apiVersion", "kind", "name", "uid")
            if not owner.get(key)
        ]
    return problems


def name_errors(kind: Resource, name: str) -> list[FieldError]:
    """Return the errors in the name of an object of *kind*."""
    if kind.key in _PATH_NAMED:
        return []
    pattern, longest, rule = _NAME_RULES.get(kind.key, (_SUBDOMAIN, 253, _SUBDOMAIN_RULE))
    problems = []
    if len(name) > longest:
        problems.append(
            invalid_value("metadata.name", name, f"must be no more than {longest} bytes")
        )
    if not re.fullmatch(pattern, name):
        problems.append(invalid_value("metadata.name", name, rule))
    return problems


def label_errors(field: str, labels: Json) -> list[FieldError]:
    """Return the errors in the values of *labels* at *field*."""
    problems = []
    for value in labels.values():
        if len(value) > 63:
            problems.append(invalid_value(field, value, "must be no more than 63 bytes"))
        if not re.fullmatch(_LABEL_VALUE, value):
            problems.append(invalid_value(field, value, _LABEL_VALUE_RULE))
    return problems
