# SPDX-License-Identifier: Apache-2.0
"""The order of the steps of a plan: by kind, and in waves where the manifests ask for them. Pure.

What others need comes first: a Namespace before what is in it, a CustomResourceDefinition before
objects of its kind, configuration before what reads it as it starts. What judges the requests of
others comes last: an admission webhook whose pods are not there yet would refuse them all. To
remove, it is the other way round, but that what cannot be created again as it was goes last of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby
from typing import TypeVar

from container_update.model.errors import PackageError
from container_update.model.objects import Json, Manifest, ObjectKey, get_at
from container_update.model.plan import Plan, Step
from container_update.planning.comparison.live_objects import is_less
from container_update.planning.steps import ConfigStep, ManifestStep, ObjectStep
from container_update.workloads.registry import is_workload

StepT = TypeVar("StepT", bound=Step)

ORDER_ANNOTATION = "container-update/order"
"""On an object: the number of its wave. Each wave is Ready before the next one begins; without it:
0."""

DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")
"""(group, kind) of what makes the server serve another kind."""

RBAC = "rbac.authorization.k8s.io"
_RANKS: Sequence[frozenset[tuple[str, str]]] = (
    frozenset({("", "Namespace")}),
    frozenset({DEFINITION}),
    frozenset({("", "ResourceQuota"), ("", "LimitRange"), ("scheduling.k8s.io", "PriorityClass")}),
    frozenset(
        {
            ("", "ServiceAccount"),
            *((RBAC, kind) for kind in ("ClusterRole", "ClusterRoleBinding")),
            *((RBAC, kind) for kind in ("Role", "RoleBinding")),
        }
    ),
    frozenset(
        {
            *(("storage.k8s.io", kind) for kind in ("CSIDriver", "StorageClass")),
            *(("", kind) for kind in ("PersistentVolume", "PersistentVolumeClaim")),
        }
    ),
    frozenset({("", "ConfigMap"), ("", "Secret")}),
    frozenset({("", "Service")}),
)
_REST, _WORKLOADS, _JUDGES = len(_RANKS), len(_RANKS) + 1, len(_RANKS) + 2
_LIMITS = 2
"""The rank of quotas and limits."""
_LOST = frozenset({0, 1, 4})
"""The ranks of Namespaces, definitions and storage: with them goes what no undo brings back."""
_JUDGE_GROUPS = frozenset({"admissionregistration.k8s.io", "apiregistration.k8s.io"})


def rank(key: ObjectKey) -> int:
    """Return the place of a kind in the order of creation: what is less comes first."""
    for number, kinds in enumerate(_RANKS):
        if (key.group, key.kind) in kinds:
            return number
    if key.group in _JUDGE_GROUPS:
        return _JUDGES
    return _WORKLOADS if is_workload(key) else _REST


def hinders(key: ObjectKey) -> bool:
    """Tell whether an object may refuse the writes of others: it is the first to go in an undo."""
    return rank(key) in (_LIMITS, _JUDGES)


def lifts_a_limit(step: Step) -> bool:
    """Tell whether a step lets a quota allow more: its undo comes after the pods are back, which
    may need the room."""
    is_quota = (step.key.group, step.key.kind) == ("", "ResourceQuota")
    if not (is_quota and isinstance(step, ManifestStep) and step.before is not None):
        return False
    before, after = (get_at(body, ("spec", "hard")) or {} for body in (step.old, step.content))
    return any(name not in after or is_less(before[name], after[name]) for name in before)


def groups(steps: Iterable[StepT]) -> Iterator[tuple[StepT, ...]]:
    """Yield the steps of a plan in their order; those of a group are carried out at the same time.

    Traffic moves when every wave is Ready, and what is old is removed at the very end, in it last
    what an undo cannot bring back.
    """
    ordered = sorted(steps, key=_place)
    for _, group in groupby(ordered, key=_place):
        yield tuple(group)


def in_groups(*phases: Iterable[StepT]) -> tuple[StepT, ...]:
    """Return the steps of a plan with the numbers of their groups, phase after phase.

    >>> in_groups((), ())
    ()
    """
    in_order = chain.from_iterable(map(groups, phases))
    return tuple(
        replace(step, group=number) for number, group in enumerate(in_order) for step in group
    )


def arranged(plan: Plan) -> Plan:
    """Return a plan in the order of :func:`groups`, unless its planner has chosen another one."""
    if any(step.group for step in plan.steps):
        return plan
    return replace(plan, steps=in_groups(plan.steps))


def in_order(manifests: Iterable[Manifest]) -> tuple[Manifest, ...]:
    """Return manifests in the order of their creation; those of one kind in the order given."""
    return tuple(sorted(manifests, key=lambda each: (wave(each.body), rank(each.key))))


def _place(step: Step) -> tuple[int, int, int]:
    by_wave, by_kind = wave_of(step), rank(step.key)
    if step.is_removal:
        return (3 if by_kind in _LOST else 2), -by_wave, -by_kind
    return int(step.is_switch), by_wave, by_kind


def wave_of(step: Step) -> int:
    """Return the wave of a step, which its object says."""
    content = step.content if isinstance(step, ConfigStep | ManifestStep) else None
    before = step.before if isinstance(step, ObjectStep) else None
    return wave(content or before or {})


def wave(body: Json) -> int:
    """Return the wave that an object's annotation says.

    :raises PackageError: it says something else than a whole number.
    """
    metadata = body.get("metadata") or {}
    value = str((metadata.get("annotations") or {}).get(ORDER_ANNOTATION, "0"))
    if not value.removeprefix("-").isdecimal():
        raise PackageError(
            f"{body.get('kind')} {metadata.get('name')}: expected a whole number in the annotation "
            f"{ORDER_ANNOTATION}, found {value!r}"
        )
    return int(value)
