"""Reading an object as the server does: types first, then without what says nothing.

The server decodes into typed structures: a number where a text belongs is a 400, and a null, an
empty list or an empty map of labels is as good as absent, so it is not in the answer either. The
types listed here are those that people get wrong in manifests; a custom resource is kept as sent.
"""

from __future__ import annotations

import copy
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.api_errors import ApiError, bad_request
from container_update.emulator.kubernetes.resources import Resource


@dataclass(frozen=True)
class Struct:
    """A structure and the types of those of its fields that are checked.

    A type is 'string', 'bool', 'int32', 'bytes', another Struct, ``[type]`` for a list or
    ``{'*': type}`` for a map.
    """

    name: str
    fields: Mapping[str, Any]


_STRINGS = {"*": "string"}
_METADATA = Struct(
    "ObjectMeta",
    {"name": "string", "namespace": "string", "labels": _STRINGS, "annotations": _STRINGS},
)
_ENV = Struct("EnvVar", {"name": "string", "value": "string"})
_MOUNT = Struct("VolumeMount", {"name": "string", "mountPath": "string", "subPath": "string"})
_CONTAINER = Struct(
    "Container",
    {
        "name": "string",
        "image": "string",
        "command": ["string"],
        "args": ["string"],
        "env": [_ENV],
        "envFrom": [Struct("EnvFromSource", {})],
        "volumeMounts": [_MOUNT],
        "ports": [Struct("ContainerPort", {"containerPort": "int32", "name": "string"})],
    },
)
_POD_SPEC = Struct(
    "PodSpec",
    {
        "containers": [_CONTAINER],
        "initContainers": [_CONTAINER],
        "volumes": [Struct("Volume", {"name": "string"})],
        "nodeSelector": _STRINGS,
        "nodeName": "string",
        "restartPolicy": "string",
        "hostNetwork": "bool",
        "terminationGracePeriodSeconds": "int64",
    },
)
_TEMPLATE = Struct("PodTemplateSpec", {"metadata": _METADATA, "spec": _POD_SPEC})
_SELECTOR = Struct("LabelSelector", {"matchLabels": _STRINGS})


def _workload(name: str, **fields: Any) -> Struct:
    spec = Struct(f"{name}Spec", {"template": _TEMPLATE, "selector": _SELECTOR} | fields)
    return Struct(name, {"metadata": _METADATA, "spec": spec})


_JOB = _workload("Job", completions="int32", parallelism="int32", backoffLimit="int32")
_STRUCTS: Mapping[str, Struct] = {
    "configmaps": Struct(
        "ConfigMap",
        {
            "metadata": _METADATA,
            "data": _STRINGS,
            "binaryData": {"*": "bytes"},
            "immutable": "bool",
        },
    ),
    "secrets": Struct(
        "Secret",
        {
            "metadata": _METADATA,
            "stringData": _STRINGS,
            "data": {"*": "bytes"},
            "type": "string",
            "immutable": "bool",
        },
    ),
    "pods": Struct("Pod", {"metadata": _METADATA, "spec": _POD_SPEC}),
    "deployments": _workload("Deployment", replicas="int32", paused="bool"),
    "replicasets": _workload("ReplicaSet", replicas="int32"),
    "daemonsets": _workload("DaemonSet"),
    "statefulsets": _workload("StatefulSet", replicas="int32", serviceName="string"),
    "jobs": _JOB,
    "cronjobs": Struct(
        "CronJob",
        {
            "metadata": _METADATA,
            "spec": Struct(
                "CronJobSpec",
                {
                    "schedule": "string",
                    "suspend": "bool",
                    "jobTemplate": Struct("JobTemplateSpec", _JOB.fields),
                },
            ),
        },
    ),
    "services": Struct(
        "Service",
        {
            "metadata": _METADATA,
            "spec": Struct(
                "ServiceSpec",
                {
                    "selector": _STRINGS,
                    "type": "string",
                    "ports": [Struct("ServicePort", {"port": "int32", "name": "string"})],
                },
            ),
        },
    ),
}
_ANYTHING = Struct("", {"metadata": _METADATA})

_TEXT_MAPS = frozenset(
    {"annotations", "binaryData", "data", "labels", "matchLabels", "nodeSelector", "stringData"}
)
_DROPPED_WHEN_EMPTY = _TEXT_MAPS | {"limits", "requests", "overhead", "disruptedPods"}
_KEPT_WHEN_EMPTY = frozenset({"endpoints", "rules"})
_KEPT_WHEN_NULL = frozenset({"lastProbeTime"})


def read(kind: Resource, body: Json) -> Json:
    """A copy of *body* as the server understands it; 400 where a type is wrong."""
    stated = body.get("kind")
    if stated and stated != kind.kind:
        raise bad_request(
            f'{kind.kind} in version "{kind.versions[0]}" cannot be handled as a {kind.kind}: the '
            f"object provided is a {stated}"
        )
    if kind.custom:
        new = copy.deepcopy(body)
    else:
        problem = _problem(_STRUCTS.get(kind.key, _ANYTHING), body, "", kind.kind)
        if problem:
            raise _unreadable(kind, problem)
        new = without_empty(body)
    return {**new, "kind": kind.kind, "apiVersion": kind.api_version}


def _unreadable(kind: Resource, problem: str) -> ApiError:
    return bad_request(
        f'{kind.kind} in version "{kind.versions[0]}" cannot be handled as a {kind.kind}: {problem}'
    )


def without_empty(value: Any) -> Any:
    """A deep copy without nulls, empty lists and empty maps of texts."""
    if isinstance(value, dict):
        return {
            key: _field(key, entry) for key, entry in value.items() if _says_something(key, entry)
        }
    if isinstance(value, list):
        return [without_empty(entry) for entry in value]
    return value


def _field(key: str, value: Any) -> Any:
    if key in _TEXT_MAPS and isinstance(value, dict):
        return {name: "" if text is None else copy.deepcopy(text) for name, text in value.items()}
    return without_empty(value)


def _says_something(key: str, value: Any) -> bool:
    if value is None:
        return key in _KEPT_WHEN_NULL
    if value == []:
        return key in _KEPT_WHEN_EMPTY
    if value == {}:
        return key not in _DROPPED_WHEN_EMPTY
    return not (value == "" and key == "value")


# --- types ------------------------------------------------------------------------------------

_GO_TYPES = {"bytes": "[]uint8"}
_PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "bytes": (str,),
    "bool": (bool,),
    "int32": (int,),
    "int64": (int,),
}


def _problem(wanted: Any, value: Any, path: str, owner: str) -> str:
    """What is wrong with *value*, in the words of the server's decoder; '' where nothing is."""
    if value is None:
        return ""
    if isinstance(wanted, Struct):
        return _struct_problem(wanted, value, path, owner)
    if not _fits(wanted, value):
        return _mismatch(value, path, owner, _go_type(wanted))
    if isinstance(wanted, list):
        return _first(_problem(wanted[0], entry, path, owner) for entry in value)
    if isinstance(wanted, dict):
        return _first(_problem(wanted["*"], entry, path, owner) for entry in value.values())
    return base64_problem(value) if wanted == "bytes" else ""


def _fits(wanted: Any, value: Any) -> bool:
    if isinstance(wanted, (list, dict)):
        return isinstance(value, type(wanted))
    return isinstance(value, _PYTHON_TYPES[wanted]) and isinstance(value, bool) == (
        wanted == "bool"
    )


def _struct_problem(wanted: Struct, value: Any, path: str, owner: str) -> str:
    if not isinstance(value, dict):
        return _mismatch(value, path, owner, _go_type(wanted))
    return _first(
        _problem(kind, value[key], f"{path}.{key}", wanted.name or owner)
        for key, kind in wanted.fields.items()
        if key in value
    )


def _first(problems: Iterable[str]) -> str:
    return next((problem for problem in problems if problem), "")


def _go_type(wanted: Any) -> str:
    if isinstance(wanted, Struct):
        return f"v1.{wanted.name}"
    if isinstance(wanted, list):
        return f"[]{_go_type(wanted[0])}"
    if isinstance(wanted, dict):
        return f"map[string]{_go_type(wanted['*'])}"
    return _GO_TYPES.get(wanted, str(wanted))


def _mismatch(value: Any, path: str, owner: str, wanted: str) -> str:
    found = {bool: "bool", int: "number", float: "number", str: "string", list: "array"}
    json_kind = found.get(type(value), "object")
    return f"json: cannot unmarshal {json_kind} into Go struct field {owner}{path} of type {wanted}"


_BASE64 = frozenset(string.ascii_letters + string.digits + "+/")


def base64_problem(text: str) -> str:
    """Where *text* stops being base64, in the decoder's words; '' where it is all right."""
    clean = text.replace("\r", "").replace("\n", "")
    body = clean.rstrip("=")
    bad = next((place for place, char in enumerate(body) if char not in _BASE64), None)
    if bad is None:
        padding = len(clean) - len(body)
        if len(clean) % 4 == 0 and padding <= 2:
            return ""
        bad = len(clean) if padding > 2 else len(clean) - len(clean) % 4
    return f"illegal base64 data at input byte {bad}"
