# SPDX-License-Identifier: Apache-2.0
"""Schemas of what an update reads: which fields of an object in a package are text, lists or
mappings.

The API server would refuse most violations too, but only in the middle of an update; and names
become parts of URLs and of lines on a terminal, so they must be what Kubernetes allows. Fields that
an update does not read are not checked. Source: Kubernetes API reference; "Object Names and IDs".
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from container_update.model.objects import Json, ObjectKey
from container_update.model.schema import (
    CONTROL,
    LINE,
    TEXT,
    TRUTH,
    WHOLE,
    Fields,
    ListOf,
    MapOf,
    Schema,
    Text,
    Violation,
)
from container_update.workloads.config_references import MOUNTING_SECRETS
from container_update.workloads.registry import kind_of

# --- names and texts ----------------------------------------------------------------------------

_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"

KIND = Text("a kind", r"[A-Za-z][A-Za-z0-9]{0,62}")
API_VERSION = Text("a version", r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[a-z0-9]{1,63}")
_NAME = Text("a name of lower-case letters, digits, - and .", rf"(?=.{{1,253}}\Z){_SUBDOMAIN}")
"""The name of an object of a kind that this project knows (RFC 1123 subdomain)."""
_OTHER_NAME = Text("a name without / and %", rf"(?!\.{{1,2}}\Z)[^\s/%?#{CONTROL}]{{1,253}}")
"""The name of an object of any other kind (path segment name)."""
NAMESPACE = Text("a name of lower-case letters, digits and -", _LABEL)
ANY_NAMESPACE = Text(NAMESPACE.description, rf"({_LABEL})?")
"""As the records of a VNFM and the keys of objects have it: empty for none."""
_KEY = Text("a key of letters, digits, -, _ and .", r"[-._a-zA-Z0-9]{1,253}")
_WORD = Text("text without spaces", rf"[^\s{CONTROL}]*")

# --- objects ------------------------------------------------------------------------------------

_LABELS = MapOf(LINE, TEXT)
_METADATA = Fields({"labels": _LABELS, "annotations": _LABELS})
_DATA = MapOf(_KEY)
"""The values are checked where they are compared."""
_CONFIG = Fields(
    {
        "metadata": _METADATA,
        "data": _DATA,
        "binaryData": _DATA,
        "stringData": _DATA,
        "type": _WORD,
        "immutable": TRUTH,
    }
)


def _below(path: Sequence[str], schema: Schema) -> Schema:
    """Return the schema of nested mappings with something in the last one."""
    for name in reversed(path):
        schema = Fields({name: schema})
    return schema


_KEY_REFERENCE = Fields({"name": TEXT, "key": TEXT})
_ITEMS = ListOf(Fields({"key": TEXT, "path": TEXT}))
_CONFIG_MAP, _SECRET = (Fields({name: TEXT, "items": _ITEMS}) for name in ("name", "secretName"))
_VALUE_FROM = Fields(dict.fromkeys(("configMapKeyRef", "secretKeyRef"), _KEY_REFERENCE))
_ENV_FROM = Fields(dict.fromkeys(("configMapRef", "secretRef"), _KEY_REFERENCE))
_VOLUMES = ListOf(
    Fields(
        {
            "name": LINE,
            "configMap": _CONFIG_MAP,
            "secret": _SECRET,
            "image": Fields({"reference": _WORD}),
            "persistentVolumeClaim": Fields({"claimName": TEXT}),
            "projected": Fields(
                {"sources": ListOf(Fields({"configMap": _CONFIG_MAP, "secret": _CONFIG_MAP}))}
            ),
            **{plugin: _below(path, TEXT) for plugin, *path in MOUNTING_SECRETS},
        },
        {"name"},
    )
)
_CONTAINERS = ListOf(
    Fields(
        {
            "name": _WORD,
            "image": _WORD,
            "restartPolicy": TEXT,
            "env": ListOf(Fields({"name": LINE, "valueFrom": _VALUE_FROM}, {"name"})),
            "envFrom": ListOf(_ENV_FROM),
            "volumeMounts": ListOf(Fields({"name": LINE, "subPath": TEXT}, {"name"})),
        },
        {"name"},
    )
)
_POD_SPEC = Fields(
    {
        "containers": _CONTAINERS,
        "initContainers": _CONTAINERS,
        "ephemeralContainers": _CONTAINERS,
        "volumes": _VOLUMES,
        "imagePullSecrets": ListOf(_KEY_REFERENCE),
    }
)
_POD = Fields({"metadata": _METADATA, "spec": _POD_SPEC})
_EXPRESSION = Fields({"key": TEXT, "operator": TEXT, "values": ListOf(TEXT)}, {"key", "operator"})
_SELECTOR = Fields({"matchLabels": _LABELS, "matchExpressions": ListOf(_EXPRESSION)})
_SCALE = Fields({"replicas": WHOLE, "selector": _SELECTOR})
_WORKLOAD = Fields({"metadata": _METADATA, "spec": _SCALE})
_OTHER = Fields({"metadata": _METADATA})
_PORTS = ListOf(Fields({}))
_READ: Mapping[tuple[str, str], Schema] = {
    ("", "Service"): _below(["spec"], Fields({"type": TEXT, "selector": _LABELS, "ports": _PORTS})),
    ("networking.k8s.io", "NetworkPolicy"): _below(["spec"], Fields({"podSelector": _SELECTOR})),
    ("policy", "PodDisruptionBudget"): _below(["spec"], Fields({"selector": _SELECTOR})),
}
"""What is read of the spec of a kind that is neither configuration nor a workload."""
_IDENTITY, _OTHER_IDENTITY = (
    Fields({"metadata": Fields({"name": name, "namespace": NAMESPACE})})
    for name in (_NAME, _OTHER_NAME)
)


# --- what a package has -------------------------------------------------------------------------


def first_violation(key: ObjectKey, body: Json) -> Violation | None:
    """Return the first violation in an object; None if there is none."""
    violations = (each for schema in _schemas_of(key) for each in schema.violations(body))
    return next(violations, None)


def _schemas_of(key: ObjectKey) -> tuple[Schema, ...]:
    if key.is_config:
        return _IDENTITY, _CONFIG
    kind = kind_of(key)
    if kind is None:
        read = _READ.get((key.group, key.kind))
        return (_OTHER_IDENTITY, _OTHER, *([read] if read else []))
    return _IDENTITY, _WORKLOAD, _pods_below(tuple(kind.template_path))


@functools.cache
def _pods_below(path: tuple[str, ...]) -> Schema:
    return _below(path, _POD)
