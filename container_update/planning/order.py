# SPDX-License-Identifier: Apache-2.0
"""The order of the steps of a plan: by kind, and in waves where the manifests ask for them. Pure.

An object comes after those that it needs: after its Namespace, its CustomResourceDefinition, the
role that it binds, the configuration that it reads when it starts. Objects that need running pods
come after the workloads: an autoscaler, a custom object that a webhook of the same VNF converts.
Admission webhooks come last: without their pods they would refuse every request. Objects are
removed in the reverse order, with two exceptions: what cannot be created again as it was goes last,
and an object with finalizers goes before the workloads, of which its controller may be one. What
may refuse the objects of a new package, and is not in it, goes before they are written.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, groupby
from types import MappingProxyType
from typing import TypeVar

from container_update.model.errors import PackageError
from container_update.model.objects import DEFINITION, FieldPath, Json, Manifest, ObjectKey, get_at
from container_update.model.plan import Plan, Step
from container_update.planning.comparison.meaning import is_less
from container_update.planning.steps import ConfigStep, ManifestStep, ObjectStep
from container_update.workloads.registry import is_workload

StepT = TypeVar("StepT", bound=Step)

_Place = tuple[int, int, int]

ORDER_ANNOTATION = "container-update/order"
"""On an object: the number of its wave. Each wave is Ready before the next one begins; without it:
0."""

RBAC = "rbac.authorization.k8s.io"
_ADMISSION, _STORAGE = "admissionregistration.k8s.io", "storage.k8s.io"

Kinds = frozenset[tuple[str, str]]
"""(group, kind) of each."""


def _kinds(group: str, *kinds: str) -> Kinds:
    return frozenset((group, kind) for kind in kinds)


LIMITS = _kinds("", "ResourceQuota", "LimitRange")
"""What may refuse the pods of a namespace."""
_JUDGES: Sequence[Kinds] = (
    _kinds("apiregistration.k8s.io", "APIService"),
    _kinds(_ADMISSION, "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
    | _kinds(_ADMISSION, "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"),
    _kinds(_ADMISSION, "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding"),
)
"""What may refuse the requests of any client."""
_DENIES = LIMITS | _kinds(
    _ADMISSION,
    "ValidatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
)
"""What may only refuse other writes, and changes none of them."""
QUOTA = ("", "ResourceQuota")
_HOOK = ("clientConfig", "service")
_CALLS: Mapping[tuple[str, str], FieldPath] = {
    DEFINITION: ("spec", "conversion", "webhook", *_HOOK),
    **dict.fromkeys(_JUDGES[0], ("spec", "service")),
    **dict.fromkeys(_JUDGES[1], _HOOK),
}
"""Where an object names a Service that the API server calls; :data:`_HOOK`: in each webhook."""
_CLASSES = (
    _kinds("scheduling.k8s.io", "PriorityClass")
    | _kinds("node.k8s.io", "RuntimeClass")
    | _kinds("networking.k8s.io", "IngressClass", "ServiceCIDR")
    | _kinds("resource.k8s.io", "DeviceClass")
    | _kinds("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration")
)
"""What other objects name, or get as their default when they are created."""
_STORED: Sequence[Kinds] = (
    _kinds(_STORAGE, "CSIDriver", "StorageClass", "VolumeAttributesClass"),
    _kinds("", "PersistentVolume"),
    _kinds("", "PersistentVolumeClaim"),
)
_BEFORE: Sequence[Kinds] = (
    _kinds("", "Namespace"),
    frozenset({DEFINITION}),
    LIMITS | _CLASSES,
    _kinds("", "ServiceAccount") | _kinds(RBAC, "Role", "ClusterRole"),
    _kinds(RBAC, "RoleBinding", "ClusterRoleBinding"),  # the server looks up the role's rules
    *_STORED,
    _kinds("", "ConfigMap", "Secret"),
    _kinds("", "Service"),
)
_AFTER: Sequence[Kinds] = (_kinds("autoscaling", "HorizontalPodAutoscaler"), *_JUDGES)
"""An object comes after those that it names, so none names another one of its own rank."""
REST = len(_BEFORE)
"""The rank of all other kinds, custom ones among them."""
_WORKLOADS, _NEEDS_WORKLOADS = REST + 1, REST + 2
_CONFIGURATION = REST - 2
"""The rank of ConfigMaps and Secrets, before that of Services."""
_PLACES: Mapping[tuple[str, str], int] = {
    kind: first + number
    for first, ranks in ((0, _BEFORE), (_NEEDS_WORKLOADS, _AFTER))
    for number, kinds in enumerate(ranks)
    for kind in kinds
}
_LOST = frozenset().union(_kinds("", "Namespace"), {DEFINITION}, *_STORED)
"""With them goes what no undo brings back."""


def rank(key: ObjectKey) -> int:
    """Return the place of a kind in the order of creation, a lower one first."""
    return _PLACES.get((key.group, key.kind), _WORKLOADS if is_workload(key) else REST)


def hinders(key: ObjectKey) -> bool:
    """Tell whether an object may refuse other writes: an undo removes it first."""
    return judges(key) or (key.group, key.kind) in LIMITS


def judges(key: ObjectKey) -> bool:
    """Tell whether an object may refuse other requests, for another reason than a limit."""
    return any((key.group, key.kind) in kinds for kinds in _JUDGES)


def frees(step: Step) -> bool:
    """Tell whether a step removes what may refuse the other writes of its plan: it comes first."""
    return step.is_removal and (step.key.group, step.key.kind) in _DENIES


def lifts_a_limit(step: Step) -> bool:
    """Tell whether a step lets the server allow more: its undo comes after the pods are back, which
    may need that."""
    if frees(step):
        return True
    is_quota = (step.key.group, step.key.kind) == QUOTA
    if not (is_quota and isinstance(step, ManifestStep) and step.before is not None):
        return False
    before, after = (get_at(body, ("spec", "hard")) or {} for body in (step.old, step.content))
    return any(name not in after or is_less(before[name], after[name]) for name in before)


def groups(
    steps: Iterable[StepT], among: Mapping[ObjectKey, Json] = MappingProxyType({})
) -> Iterator[tuple[StepT, ...]]:
    """Yield the steps of a plan in their order; those of a group are carried out at the same time.

    Traffic moves when every wave is Ready, and old objects are removed at the very end, in it last
    what an undo cannot bring back.

    :param among: the objects, or manifests, of the whole VNF.
    """
    place = partial(_place, converted=converters(among), defined=frozenset(defined_by(among)))
    for _, group in groupby(sorted(steps, key=place), key=place):
        yield tuple(group)


def in_groups(
    *phases: Iterable[StepT], among: Mapping[ObjectKey, Json] = MappingProxyType({})
) -> tuple[StepT, ...]:
    """Return the steps of a plan with the numbers of their groups, phase after phase.

    >>> in_groups((), ())
    ()
    """
    in_order = chain.from_iterable(groups(phase, among) for phase in phases)
    return tuple(
        replace(step, group=number) for number, group in enumerate(in_order) for step in group
    )


def arrange(plan: Plan) -> Plan:
    """Return a plan in the order of :func:`groups`, unless its planner has chosen another one."""
    if any(step.group for step in plan.steps):
        return plan
    among = {manifest.key: manifest.body for manifest in plan.manifests}
    return replace(plan, steps=in_groups(plan.steps, among=among))


def in_order(manifests: Iterable[Manifest]) -> tuple[Manifest, ...]:
    """Return manifests in the order of their creation; those of one kind in the order given."""
    return tuple(sorted(manifests, key=lambda each: (wave(each.body), rank(each.key))))


def _place(step: Step, converted: Container[tuple[str, str]], defined: Kinds) -> _Place:
    key = step.key
    kind, by_wave, by_kind = (key.group, key.kind), wave_of(step), rank(step.key)
    if isinstance(step, ObjectStep) and step.is_removal and _CONFIGURATION <= by_kind <= REST:
        is_held = has_finalizers(step.old) if by_kind == REST else _is_held(step.old)
        by_kind = _NEEDS_WORKLOADS if is_held or kind in defined else by_kind
    if kind in converted:
        by_kind = _NEEDS_WORKLOADS
    if step.is_removal:
        return (3 if kind in _LOST else 2), -by_wave, -by_kind
    return int(step.is_switch), by_wave, by_kind


def has_finalizers(live: Json) -> bool:
    """Tell whether a controller, perhaps the VNF's own, has to let an object go."""
    return bool(live["metadata"].get("finalizers"))


def _is_held(live: Json) -> bool:
    """Tell whether a finalizer is no part of Kubernetes: a controller has set it."""
    finalizers = live["metadata"].get("finalizers") or ()
    domains = (f".{each.partition('/')[0]}" for each in finalizers if "/" in each)
    return not all(domain.endswith(".kubernetes.io") for domain in domains)


def defined_by(among: Mapping[ObjectKey, Json]) -> Iterator[tuple[str, str]]:
    """Yield the kinds that the VNF defines: their controller is likely one of its workloads."""
    for key, body in among.items():
        if (key.group, key.kind) == DEFINITION:
            yield body["spec"]["group"], body["spec"]["names"]["kind"]


def converters(among: Mapping[ObjectKey, Json]) -> dict[tuple[str, str], ObjectKey]:
    """Return the kinds whose objects a webhook of the same VNF converts between their versions, and
    the Service of that webhook.

    :param among: the objects, or manifests, of the VNF.
    """
    return {
        (body["spec"]["group"], body["spec"]["names"]["kind"]): service
        for key, body in among.items()
        if (key.group, key.kind) == DEFINITION
        for service in called_services(key, body)
        if service in among
    }


def called_services(key: ObjectKey, body: Json) -> Iterator[ObjectKey]:
    """Yield the Services that the API server calls: of webhooks, conversions, APIServices."""
    path = _CALLS.get((key.group, key.kind), ())
    holders = body.get("webhooks") if path == _HOOK else [body]
    for holder in holders if path and isinstance(holders, list) else ():
        if isinstance(service := get_at(holder, path), dict):
            names = (str(service.get(name, "")) for name in ("namespace", "name"))
            yield ObjectKey("", "Service", *names)


def wave_of(step: Step) -> int:
    """Return the wave of a step, which its object says."""
    content = step.content if isinstance(step, ConfigStep | ManifestStep) else None
    before = step.before if isinstance(step, ObjectStep) else None
    return wave(content or before or {})


def wave(body: Json) -> int:
    """Return the wave that an object's annotation says; PackageError for another text."""
    metadata = body.get("metadata") or {}
    value = str((metadata.get("annotations") or {}).get(ORDER_ANNOTATION, "0"))
    if not value.removeprefix("-").isdecimal():
        raise PackageError(
            f"{body.get('kind')} {metadata.get('name')}: expected a whole number in the annotation "
            f"{ORDER_ANNOTATION}, found {value!r}"
        )
    return int(value)
