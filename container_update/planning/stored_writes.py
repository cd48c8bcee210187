# SPDX-License-Identifier: Apache-2.0
"""A plan as the API server would store it, from what it answers to dry runs, and which of them it
cannot judge yet. Pure.

A server drops fields that it does not support, keeps what cannot be taken away, and spells a
quantity in one way. So not all that differs between two manifests changes an object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from container_update.model.objects import DEFINITION, Json, Manifest, ObjectKey, Source
from container_update.model.plan import Action, FieldChange, Note, Place, Plan, Reason, Step
from container_update.planning.comparison import diff, live_objects, meaning
from container_update.planning.comparison.live_objects import manifest_name
from container_update.planning.order import LIMITS, RBAC, converters, wave_of
from container_update.planning.steps import ConfigStep, ManifestStep, ObjectStep
from container_update.planning.steps.manifest import without_recorded_digest
from container_update.workloads import api_resources, pod_template
from container_update.workloads.registry import is_workload

Stored = Mapping[Place, tuple[Json | None, Json]]
"""For a step, by its place: the object as it is, None where there is none, and as it would be."""

_ZERO_VALUES = frozenset({"0", '""', "false", "null"})
"""What a server leaves out: it means the same as no value."""


def as_stored(plan: Plan, stored: Stored) -> Plan:
    """Return the plan without steps that change nothing, with notes on what is not stored."""
    sources = {manifest.key: manifest.source for manifest in plan.manifests}
    steps: list[Step] = []
    notes: list[Note] = []
    unchanged: list[ObjectKey] = []
    for step in plan.steps:
        if not isinstance(step, ManifestStep) or step.place not in stored or step.content is None:
            steps.append(step)
            continue
        live, then = stored[step.place]
        notes += _note_dropped(step.key, step.content, then, source_of(step, sources))
        if live is None:
            steps.append(step)
            continue
        void = dict.fromkeys(_without_effect(step, live, then))
        notes += (_note_kept(step.key, c) for c in void if not _is_live(c, step, live))
        is_built_in = api_resources.is_built_in(step.key.group)
        if not meaning.is_same(_content(live), _content(then), built_in=is_built_in):
            steps.append(_effective(step, void, live, then, source_of(step, sources)))
            continue
        unchanged.append(step.key)
        if not void:
            notes.append(Note(step.key, "the API server stores the new manifest as it was"))
    return replace(
        plan,
        steps=tuple(steps),
        notes=(*plan.notes, *notes),
        unchanged=(*plan.unchanged, *unchanged),
    )


def source_of(step: ObjectStep, sources: Mapping[ObjectKey, Source]) -> Source | None:
    """Return where the manifest of a step's object is, also while that has a temporary name."""
    content = step.content if isinstance(step, ManifestStep) else None
    named = replace(step.key, name=manifest_name(content)) if content else step.key
    return sources.get(step.key) or sources.get(named)


def _effective(
    step: ManifestStep, void: Container[FieldChange], live: Json, then: Json, source: Source | None
) -> Step:
    """Return the step without void reasons, and without new pods where the template stays."""
    reasons = tuple(reason for reason in step.reasons if reason.cause not in void)
    if not reasons:
        changes = _changes(step.key, _content(live), _content(then), source)
        reasons = tuple(Reason(f"{each.path} differs ({each.place})", each) for each in changes)
    rolls = step.action in (Action.ROLL, Action.EVICT)
    if rolls and pod_template.pod_template(live) == pod_template.pod_template(then):
        step = replace(step, action=Action.REPLACE)
    return replace(step, reasons=reasons)


_STEP = re.compile(r"[.\[]")


def _without_effect(step: ManifestStep, live: Json, then: Json) -> Iterator[FieldChange]:
    """Yield the differences between the packages that would change nothing in the object."""
    is_changed = _covers_path(_changes(step.key, _content(live), _content(then)))
    causes = (reason.cause for reason in step.reasons)
    yield from (c for c in causes if isinstance(c, FieldChange) and not is_changed(c.path))


def _is_live(change: FieldChange, step: ManifestStep, live: Json) -> bool:
    """Tell whether the object has what the new package says, as after ``kubectl get -o yaml``, or
    has no more of the field than that: in another version of the API it may be elsewhere."""
    said = _changes(step.key, _content(live), _content(step.content or {}))
    differs = _covers_path(each for each in said if (each.new is None) == (change.new is None))
    return not differs(change.path)


def _covers_path(changes: Iterable[FieldChange]) -> Callable[[str], bool]:
    """Return what tells whether a field is among these changes, within one or around one."""
    paths = {change.path for change in changes}
    around = {outer for path in paths for outer in _around(path)}
    return lambda path: path in around or not paths.isdisjoint(_around(path))


def _around(path: str) -> Iterator[str]:
    """Yield a field, and all that it is within."""
    yield path
    yield from (path[: end.start()] for end in _STEP.finditer(path))


def _note_kept(key: ObjectKey, change: FieldChange) -> Note:
    how = "keeps it" if change.new is None else "stores it as it was"
    text = f"{change.path} differs ({change.place}), but the API server {how}: changes nothing"
    return Note(key, text)


def _note_dropped(key: ObjectKey, said: Json, then: Json, source: Source | None) -> Iterator[Note]:
    """Yield the fields of a manifest that the server would not store."""
    for change in _changes(key, _content(said), _content(then), source):
        if change.new is None and change.old not in _ZERO_VALUES:
            yield Note(key, f"{change.path} ({change.place}): the API server does not store it")


_NOWHERE = Source("", 0)


def _changes(
    key: ObjectKey, old: Json, new: Json, source: Source | None = None
) -> tuple[FieldChange, ...]:
    at = source or _NOWHERE
    return diff.field_changes(Manifest(key, old, at), Manifest(key, new, at))


def _content(body: Json) -> Json:
    """Return what a manifest decides on: all but the status and what the server notes."""
    content = {name: value for name, value in body.items() if name not in live_objects.NOT_CONTENT}
    metadata = without_recorded_digest(body)["metadata"]
    own = {name: dict(metadata.get(name) or {}) for name in ("labels", "annotations")}
    own["annotations"].pop(_GENERATION, None)
    return {**content, "metadata": {name: value for name, value in own.items() if value}}


_GENERATION = "deprecated.daemonset.template.generation"
"""What the server counts in an annotation of a DaemonSet."""


# --- what has to be there before another write can be judged ------------------------------------

_SERVICE = ("apiregistration.k8s.io", "APIService")
_NAMESPACE = ("", "Namespace")
_MAKERS = frozenset({_NAMESPACE, DEFINITION, _SERVICE})


@dataclass(frozen=True)
class Makers:
    """The steps without which others are impossible."""

    steps: tuple[ObjectStep, ...]
    converters: Mapping[tuple[str, str], ObjectKey]
    """See :func:`~container_update.planning.order.converters`."""

    @classmethod
    def of(cls, steps: Iterable[ObjectStep], manifests: Iterable[Manifest]) -> Makers:
        """Return those of a plan."""
        found = converters({manifest.key: manifest.body for manifest in manifests})
        services = {*found.values()}
        kept = (s for s in steps if (s.key.group, s.key.kind) in _MAKERS or s.key in services)
        return cls(tuple(kept), found)

    def maker(self, step: ObjectStep) -> ObjectKey | None:
        """Return the object without which a step is impossible: its namespace that is created, the
        definition of its kind, or the Service of the webhook that converts it; None where the plan
        writes none of them."""
        others = (each for each in self.steps if each is not step)
        return next((each.key for each in others if self._makes(each, step.key)), None)

    def _makes(self, step: ObjectStep, key: ObjectKey) -> bool:
        service = self.converters.get((key.group, key.kind))
        return _makes(step, key) or (step.action is Action.CREATE and step.key == service)


def _makes(step: ObjectStep, key: ObjectKey) -> bool:
    kind = (step.key.group, step.key.kind)
    if kind == _NAMESPACE:
        return step.action is Action.CREATE and step.key.name == key.namespace
    spec = (_planned_object(step) or {}).get("spec") or {}
    if kind == DEFINITION:
        names = spec.get("names") or {}
        return (spec.get("group"), names.get("kind")) == (key.group, key.kind)
    return kind == _SERVICE and spec.get("group") == key.group


def needed_first(step: ObjectStep, steps: Sequence[ObjectStep]) -> ObjectKey | None:
    """Return the object whose step has to come first: one that is named, or a limit."""
    named = frozenset(_named_objects(step.key, _planned_object(step) or {}))
    for other in steps:
        if other is step or other.action is Action.DELETE:  # removals come last
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
    """Tell whether an object limits a namespace: a quota, a range, or the labels of a Namespace."""
    if (key.group, key.kind) == _NAMESPACE:
        return key.name == namespace
    return (key.group, key.kind) in LIMITS and key.namespace == namespace


def _named_objects(key: ObjectKey, body: Json) -> Iterator[ObjectKey]:
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


def _planned_object(step: ObjectStep) -> Json | None:
    return step.content if isinstance(step, ConfigStep | ManifestStep) else None
