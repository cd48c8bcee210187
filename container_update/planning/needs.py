# SPDX-License-Identifier: Apache-2.0
"""What of a plan has to be there before the server can judge another write of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from container_update.model.objects import Json, ObjectKey
from container_update.model.plan import Action
from container_update.planning.order import DEFINITION, RBAC, wave_of
from container_update.planning.steps import ConfigStep, ManifestStep, ObjectStep
from container_update.workloads.registry import is_workload

_SERVICE = ("apiregistration.k8s.io", "APIService")
_NAMESPACE = ("", "Namespace")
_MAKERS = frozenset({_NAMESPACE, DEFINITION, _SERVICE})
_LIMITS = frozenset({("", "LimitRange"), ("", "ResourceQuota")})


def makers(steps: Iterable[ObjectStep]) -> tuple[ObjectStep, ...]:
    """Return the steps without which others may be impossible: see :func:`maker`."""
    return tuple(step for step in steps if (step.key.group, step.key.kind) in _MAKERS)


def maker(step: ObjectStep, of: Iterable[ObjectStep]) -> ObjectKey | None:
    """Return what makes a step possible at all: it creates the namespace, or has the server serve
    the kind as it is to be; None where none of these steps does."""
    return next((each.key for each in of if each is not step and _makes(each, step.key)), None)


def _makes(step: ObjectStep, key: ObjectKey) -> bool:
    kind = (step.key.group, step.key.kind)
    if kind == _NAMESPACE:
        return step.action is Action.CREATE and step.key.name == key.namespace
    spec = (_content(step) or {}).get("spec") or {}
    if kind == DEFINITION:
        names = spec.get("names") or {}
        return (spec.get("group"), names.get("kind")) == (key.group, key.kind)
    return kind == _SERVICE and spec.get("group") == key.group


def needed_first(step: ObjectStep, steps: Sequence[ObjectStep]) -> ObjectKey | None:
    """Return what the plan writes before a step and why the server may refuse that one now: an
    object that it names and is created, or what says what its namespace may have and is changed."""
    named = frozenset(_named(step.key, _content(step) or {}))
    for other in steps:
        if other is step or other.action is Action.DELETE:  # what is removed goes last
            continue
        is_new, is_limit = other.before is None, _limits(other.key, step.key.namespace)
        if (other.key in named) if is_new else is_limit:
            return other.key
    return None


def started_first(step: ObjectStep, steps: Iterable[ObjectStep]) -> ObjectKey | None:
    """Return a workload of an earlier wave: it may be an operator that makes the step's kind."""
    workloads = (other for other in steps if is_workload(other.key))
    return next((each.key for each in workloads if wave_of(each) < wave_of(step)), None)


def _limits(key: ObjectKey, namespace: str) -> bool:
    """Tell whether an object says what a namespace may have: its quotas, its own labels."""
    if (key.group, key.kind) == _NAMESPACE:
        return key.name == namespace
    return (key.group, key.kind) in _LIMITS and key.namespace == namespace


def _named(key: ObjectKey, body: Json) -> Iterator[ObjectKey]:
    """Yield what admission looks up as it lets an object in: of a Pod its account, priority and
    runtime class, of a binding its role (Kubernetes documentation, "Admission Control in
    Kubernetes"; "Using RBAC Authorization", privilege escalation)."""
    if (key.group, key.kind) == ("", "Pod"):
        spec = body.get("spec") or {}
        yield ObjectKey("", "ServiceAccount", key.namespace, _text(spec, "serviceAccountName"))
        yield ObjectKey("scheduling.k8s.io", "PriorityClass", "", _text(spec, "priorityClassName"))
        yield ObjectKey("node.k8s.io", "RuntimeClass", "", _text(spec, "runtimeClassName"))
    if key.group == RBAC and key.kind in ("RoleBinding", "ClusterRoleBinding"):
        role = body.get("roleRef") or {}
        space = key.namespace if role.get("kind") == "Role" else ""
        yield ObjectKey(RBAC, _text(role, "kind"), space, _text(role, "name"))


def _text(body: Json, name: str) -> str:
    value: Any = body.get(name)
    return value if isinstance(value, str) else ""


def _content(step: ObjectStep) -> Json | None:
    return step.content if isinstance(step, ConfigStep | ManifestStep) else None
