# SPDX-License-Identifier: Apache-2.0
"""Label and field selectors.

A label selector is a text in a request ('app=a,tier in (x, y)') or an object in a spec
(``matchLabels``, ``matchExpressions``); both become one predicate over labels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.api_errors import bad_request

Labels = Mapping[str, str]
Predicate = Callable[[Labels], bool]

_REQUIREMENT = re.compile(
    r"""\s*(?:
        !\s*(?P<absent>[\w./-]+)
      | (?P<key>[\w./-]+)\s+(?P<set>in|notin)\s*\((?P<values>[^()]*)\)
      | (?P<equal_key>[\w./-]+)\s*(?P<sign>==|=|!=)\s*(?P<value>[\w.-]*)
      | (?P<present>[\w./-]+)
    )\s*(?:,(?=\s*[\w!])|$)""",
    re.VERBOSE,
)


def parse(text: str) -> Predicate:
    """Return the predicate of a selector text; raise 400 for an invalid one."""
    requirements: list[Predicate] = []
    position = 0
    while position < len(text.rstrip()):
        match = _REQUIREMENT.match(text, position)
        if not match:
            raise bad_request(f'unable to parse requirement: found "{text[position:].strip()}"')
        requirements.append(_of_match(match))
        position = match.end()
    return lambda labels: all(requirement(labels) for requirement in requirements)


def _of_match(match: re.Match[str]) -> Predicate:
    part = match.groupdict()
    if part["absent"]:
        return _requirement(part["absent"], "DoesNotExist", ())
    if part["present"]:
        return _requirement(part["present"], "Exists", ())
    if part["set"]:
        values = [value.strip() for value in part["values"].split(",")]
        return _requirement(part["key"], "In" if part["set"] == "in" else "NotIn", values)
    operator = "NotIn" if part["sign"] == "!=" else "In"
    return _requirement(part["equal_key"], operator, (part["value"],))


def _requirement(key: str, operator: str, values: Iterable[str]) -> Predicate:
    listed = frozenset(values)
    if operator == "In":
        return lambda labels: labels.get(key) in listed
    if operator == "NotIn":
        return lambda labels: labels.get(key) not in listed
    if operator == "Exists":
        return lambda labels: key in labels
    return lambda labels: key not in labels


def matches(selector: Json | None, labels: Labels) -> bool:
    """Return whether a LabelSelector selects *labels*: None selects nothing, an empty one all."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(
        _requirement(entry["key"], entry["operator"], entry.get("values") or ())(labels)
        for entry in selector.get("matchExpressions") or ()
    )


def text_of(selector: Json | None) -> str:
    """Return a LabelSelector object as a text; '<none>' for an empty one."""
    selector = selector or {}
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for entry in selector.get("matchExpressions") or ():
        key, values = entry["key"], ",".join(sorted(entry.get("values") or ()))
        form = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }
        parts.append(form[entry["operator"]])
    return ",".join(parts) or "<none>"


# --- fields -----------------------------------------------------------------------------------

_COMMON_FIELDS = ("metadata.name", "metadata.namespace")
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "pods": (
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
        "spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName",
    ),
    "events": (
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
        "involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion",
        "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type",
    ),
    "secrets": ("type",),
    "namespaces": ("status.phase",),
    "nodes": ("spec.unschedulable",),
    "replicasets": ("status.replicas",),
    "jobs": ("status.successful",),
    "services": ("spec.clusterIP", "spec.type"),
}  # fmt: skip
"""Fields that the API server supports in selectors, by resource."""


def parse_fields(resource: str, text: str) -> Callable[[Json], bool]:
    """Return the predicate of a field selector over objects of *resource*.

    :raises ApiError: 400 if it is invalid or names a field that is not supported.
    """
    tests: list[tuple[str, str, bool]] = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        match = re.fullmatch(r"([^=!]+)(==|=|!=)(.*)", part)
        if not match:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        path, sign, value = match.groups()
        if path not in _COMMON_FIELDS and path not in _FIELDS.get(resource, ()):
            raise bad_request(f"field label not supported: {path}")
        tests.append((path, value, sign != "!="))
    return lambda item: all((_field(item, path) == value) is equal for path, value, equal in tests)


def _field(item: Json, path: str) -> str:
    value: Any = item
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "false" if path == "spec.unschedulable" else ""
    if path == "source":
        return str(value.get("component", ""))
    return str(value)
