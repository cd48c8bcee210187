# SPDX-License-Identifier: Apache-2.0
"""The plan of an uninstallation: what of a VNF instance is deleted, and what stays. Pure.

Deleted is what bears the instance's label, or what its record lists and nobody else's label claims;
never what merely has a name from a package. What holds data, or what others may use too, stays
unless it is asked for.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from container_update.model.objects import Json, ObjectKey, instance_of
from container_update.model.plan import Action, Note, Plan, Reason
from container_update.planning.configuration import Live
from container_update.planning.order import in_groups
from container_update.planning.steps import ManifestStep
from container_update.workloads.kinds.statefulset import first_ordinal

KEEP_ANNOTATION = "helm.sh/resource-policy"
"""``keep``: Helm and this program leave the object where it is."""

_CLAIMS = ("", "PersistentVolumeClaim")


@dataclass(frozen=True)
class Included:
    """What is deleted besides, which otherwise stays."""

    data: bool = False
    """PersistentVolumeClaims, and with them their volumes."""
    shared: bool = False
    """Namespaces, CustomResourceDefinitions and everything else that is in no namespace."""


def uninstall_plan(  # noqa: PLR0913, PLR0917
    live: Live,
    recorded: Container[ObjectKey],
    namespace: str,
    instance_id: str | None,
    included: Included = Included(),
    goes_with: Mapping[ObjectKey, str] | None = None,
) -> Plan:
    """Return the plan that deletes what is the instance's.

    :param live: what exists of what may be the instance's.
    :param recorded: the objects that the instance's record lists.
    :param goes_with: what is deleted with an object, in words, where that is more than itself.
    """
    own = [key for key in live if _is_own(key, live[key], recorded, instance_id)]
    staying = {key: why for key in own if (why := _why_it_stays(key, live[key], included))}
    steps = []
    for key in (key for key in own if key not in staying):
        more = (goes_with or {}).get(key)
        reason = Reason(f"with it goes {more}" if more else "is the instance's")
        steps.append(ManifestStep(key, Action.DELETE, live[key], reasons=(reason,)))
    return Plan(
        namespace=namespace,
        instance_id=instance_id,
        steps=in_groups(steps),
        unchanged=tuple(staying),
        notes=tuple(Note(key, f"stays: {why}") for key, why in staying.items()),
    )


def _is_own(
    key: ObjectKey, body: Json, recorded: Container[ObjectKey], instance_id: str | None
) -> bool:
    owner = instance_of(body)
    return owner == instance_id if owner else key in recorded


def _why_it_stays(key: ObjectKey, body: Json, included: Included) -> str:
    annotations = body["metadata"].get("annotations") or {}
    if annotations.get(KEEP_ANNOTATION) == "keep":
        return f"its annotation {KEEP_ANNOTATION} says so"
    if (key.group, key.kind) == _CLAIMS and not included.data:
        return "it holds data"
    if not body["metadata"].get("namespace") and not included.shared:
        return "it is in no namespace, others may use it"
    return ""


def claims_of(body: Json, names: Container[str]) -> Iterator[str]:
    """Yield the names of the PersistentVolumeClaims that a StatefulSet's controller created.

    Source: API reference, StatefulSet: they are called TEMPLATE-SET-ORDINAL, and stay when it goes.

    :param names: of the claims that exist.
    """
    spec, name = body.get("spec") or {}, body["metadata"]["name"]
    for template in spec.get("volumeClaimTemplates") or ():
        number = first_ordinal(body)
        while (claim := f"{template['metadata']['name']}-{name}-{number}") in names:
            yield claim
            number += 1
