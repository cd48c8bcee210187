"""Decoding of objects: types are checked, and empty values are removed.

The server decodes into typed structures. A number instead of a text is a 400; a null, an empty list
or an empty map of labels counts as absent and is not returned, nor is a field that does not exist.
Only types that are often wrong in manifests are checked; those of a custom resource, whose schema
says which fields exist, in :mod:`structural`.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.api_errors import ApiError, undecodable
from container_update.emulator.kubernetes.resources import Resource
from container_update.emulator.kubernetes.rules import schema, structural


@dataclass(frozen=True)
class Struct:
    """A structure with the types of its checked fields.

    A type is 'string', 'bool', 'int32', 'bytes', another Struct, ``[type]`` for a list or
    ``{'*': type}`` for a map.
    """

    name: str
    fields: Mapping[str, Any]


def _struct(name: str, /, **fields: Any) -> Struct:
    return Struct(name, fields)


_STRINGS, _BYTES = {"*": "string"}, {"*": "bytes"}
_METADATA = _struct(
    "ObjectMeta", name="string", namespace="string", labels=_STRINGS, annotations=_STRINGS
)
_CONTAINER = _struct(
    "Container",
    name="string",
    image="string",
    command=["string"],
    args=["string"],
    env=[_struct("EnvVar", name="string", value="string")],
    envFrom=[_struct("EnvFromSource")],
    volumeMounts=[_struct("VolumeMount", name="string", mountPath="string", subPath="string")],
    ports=[_struct("ContainerPort", containerPort="int32", name="string")],
)
_POD_SPEC = _struct(
    "PodSpec",
    containers=[_CONTAINER],
    initContainers=[_CONTAINER],
    volumes=[_struct("Volume", name="string")],
    nodeSelector=_STRINGS,
    nodeName="string",
    restartPolicy="string",
    hostNetwork="bool",
    terminationGracePeriodSeconds="int64",
)
_TEMPLATE = _struct("PodTemplateSpec", metadata=_METADATA, spec=_POD_SPEC)
_SELECTOR = _struct("LabelSelector", matchLabels=_STRINGS)


def _object(name: str, /, **fields: Any) -> Struct:
    return _struct(name, metadata=_METADATA, **fields)


def _with_spec(name: str, /, **fields: Any) -> Struct:
    return _object(name, spec=_struct(f"{name}Spec", **fields))


def _workload(name: str, /, **fields: Any) -> Struct:
    return _with_spec(name, template=_TEMPLATE, selector=_SELECTOR, **fields)


_JOB = _workload("Job", completions="int32", parallelism="int32", backoffLimit="int32")
_JOB_TEMPLATE = Struct("JobTemplateSpec", _JOB.fields)
_SERVICE_PORT = _struct("ServicePort", port="int32", name="string")
_STRUCTS: Mapping[str, Struct] = {
    "configmaps": _object("ConfigMap", data=_STRINGS, binaryData=_BYTES, immutable="bool"),
    "secrets": _object("Secret", stringData=_STRINGS, data=_BYTES, type="string", immutable="bool"),
    "pods": _object("Pod", spec=_POD_SPEC),
    "deployments": _workload("Deployment", replicas="int32", paused="bool"),
    "replicasets": _workload("ReplicaSet", replicas="int32"),
    "daemonsets": _workload("DaemonSet"),
    "statefulsets": _workload("StatefulSet", replicas="int32", serviceName="string"),
    "jobs": _JOB,
    "cronjobs": _with_spec("CronJob", schedule="string", suspend="bool", jobTemplate=_JOB_TEMPLATE),
    "services": _with_spec("Service", selector=_STRINGS, type="string", ports=[_SERVICE_PORT]),
}
_ANYTHING = Struct("", {"metadata": _METADATA})

_TEXT_MAPS = frozenset(
    {"annotations", "binaryData", "data", "labels", "matchLabels", "nodeSelector", "stringData"}
)
_DROPPED_WHEN_EMPTY = _TEXT_MAPS | {"limits", "requests", "overhead", "disruptedPods"}
_KEPT_WHEN_EMPTY = frozenset({"endpoints", "rules"})
_KEPT_WHEN_NULL = frozenset({"lastProbeTime"})


def read(kind: Resource, body: Json) -> Json:
    """Return a copy of *body* as the server decodes it; raise 400 for a wrong type."""
    stated = body.get("kind")
    if stated and stated != kind.kind:
        raise _unreadable(kind, f"the object provided is a {stated}")
    if kind.custom:
        new = structural.pruned(kind, body)
    else:
        problem = _problem(_STRUCTS.get(kind.key, _ANYTHING), body, "", kind.kind)
        if problem:
            raise _unreadable(kind, problem)
        new = _stored(kind, without_empty(body))
    return {**new, "kind": kind.kind, "apiVersion": kind.api_version}


def _stored(kind: Resource, body: Json) -> Json:
    try:
        return schema.stored(kind, body)
    except ApiError as error:
        raise _unreadable(kind, error.message) from error


def _unreadable(kind: Resource, problem: str) -> ApiError:
    return undecodable(kind.kind, kind.versions[0], problem)


def without_empty(value: Any) -> Any:
    """Return a deep copy without nulls, empty lists and empty maps of texts."""
    if isinstance(value, dict):
        return {key: _field(key, entry) for key, entry in value.items() if _is_kept(key, entry)}
    if isinstance(value, list):
        return [without_empty(entry) for entry in value]
    return value


def _field(key: str, value: Any) -> Any:
    if key in _TEXT_MAPS and isinstance(value, dict):
        return {name: "" if text is None else copy.deepcopy(text) for name, text in value.items()}
    return without_empty(value)


def _is_kept(key: str, value: Any) -> bool:
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


def _problem(expected: Any, value: Any, path: str, owner: str) -> str:
    """Return the message of the server's decoder about *value*; '' if it is valid."""
    if value is None:
        return ""
    if isinstance(expected, Struct):
        return _struct_problem(expected, value, path, owner)
    if not _fits(expected, value):
        return _mismatch(value, path, owner, _go_type(expected))
    if isinstance(expected, list):
        return _first_problem(expected[0], value, path, owner)
    if isinstance(expected, dict):
        return _first_problem(expected["*"], value.values(), path, owner)
    return base64_problem(value) if expected == "bytes" else ""


def _first_problem(expected: Any, entries: Iterable[Any], path: str, owner: str) -> str:
    for entry in entries:
        problem = _problem(expected, entry, path, owner)
        if problem:
            return problem
    return ""


def _fits(expected: Any, value: Any) -> bool:
    if isinstance(expected, (list, dict)):
        return isinstance(value, type(expected))
    return isinstance(value, _PYTHON_TYPES[expected]) and isinstance(value, bool) == (
        expected == "bool"
    )


def _struct_problem(expected: Struct, value: Any, path: str, owner: str) -> str:
    if not isinstance(value, dict):
        return _mismatch(value, path, owner, _go_type(expected))
    for key, kind in expected.fields.items():
        if key in value:
            problem = _problem(kind, value[key], f"{path}.{key}", expected.name or owner)
            if problem:
                return problem
    return ""


def _go_type(expected: Any) -> str:
    if isinstance(expected, Struct):
        return f"v1.{expected.name}"
    if isinstance(expected, list):
        return f"[]{_go_type(expected[0])}"
    if isinstance(expected, dict):
        return f"map[string]{_go_type(expected['*'])}"
    return _GO_TYPES.get(expected, str(expected))


def _mismatch(value: Any, path: str, owner: str, expected: str) -> str:
    kinds = {bool: "bool", int: "number", float: "number", str: "string", list: "array"}
    json_kind = kinds.get(type(value), "object")
    return (
        f"json: cannot unmarshal {json_kind} into Go struct field {owner}{path} of type {expected}"
    )


_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/]")


def base64_problem(text: str) -> str:
    """Return the message of the server's decoder about base64; '' if it is valid."""
    clean = text.replace("\r", "").replace("\n", "")
    body = clean.rstrip("=")
    wrong = _NOT_BASE64.search(body)
    padding = len(clean) - len(body)
    if wrong:
        bad = wrong.start()
    elif len(clean) % 4 == 0 and padding <= 2:
        return ""
    else:
        bad = len(clean) if padding > 2 else len(clean) - len(clean) % 4
    return f"illegal base64 data at input byte {bad}"
