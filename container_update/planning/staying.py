# SPDX-License-Identifier: Apache-2.0
"""What of a VNF instance no operation deletes, or only one that is asked to. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from container_update.model.objects import DEFINITION, KEEP_ANNOTATION, Json, ObjectKey, is_kept
from container_update.model.plan import Reason
from container_update.planning.order import called_services
from container_update.planning.steps import ObjectStep, ScaleStep
from container_update.workloads.claim_retention import WHEN_DELETED, WHEN_SCALED, deletes_claims

HOLDS_DATA = frozenset(
    {"CustomResourceDefinition", "Namespace", "PersistentVolume", "PersistentVolumeClaim"}
)
"""Kinds that are deleted with data that no undo could bring back."""

_CLAIMS = ("", "PersistentVolumeClaim")


@dataclass(frozen=True)
class Included:
    """Which objects an uninstallation deletes that stay unless they are asked for."""

    data: bool = False
    """PersistentVolumeClaims, and with them their volumes."""
    shared: bool = False
    """Namespaces, CustomResourceDefinitions and everything else that is in no namespace."""


def why_it_stays(key: ObjectKey, live: Json, included: Included | None = None) -> str:
    """Return why an object is not deleted, or ''; without *included*: no data is."""
    if is_kept(live):
        return f"its annotation {KEEP_ANNOTATION} says so"
    if included is None:
        return "no undo could bring back its data" if key.kind in HOLDS_DATA else ""
    if (key.group, key.kind) == _CLAIMS and not included.data:
        return "it holds data"
    if not (live["metadata"].get("namespace") or included.shared):
        return "it is cluster-scoped, others may use it"
    return ""


def why_they_stay(
    live: Mapping[ObjectKey, Json], included: Included | None = None
) -> dict[ObjectKey, str]:
    """Return the objects that stay, and why; with each the Namespace that it is in and the
    definition of its kind, which the server would delete it with.

    A webhook's configuration, or an APIService, does not stay without its Service: the API server
    would refuse every request (ingress-nginx, kube-prometheus). A definition stays, with
    its objects, which nothing converts any more.
    """
    staying = {key: why for key in live if (why := why_it_stays(key, live[key], included))}
    going = live.keys() - staying
    for key in [key for key in staying if not is_kept(live[key])]:
        gone = [service for service in called_services(key, live[key]) if service in going]
        if gone and key.kind in HOLDS_DATA:
            staying[key] += f"; {gone[0]}, which converts its objects, is deleted"
        elif gone:
            del staying[key]
    for key, body in live.items():
        if key in staying or (key.group, key.kind) not in {DEFINITION, ("", "Namespace")}:
            continue
        inside = next((each for each in staying if _goes_with(each, key, body)), None)
        if inside is not None:
            staying[key] = f"{inside} stays, and would be deleted with it"
    return staying


def _goes_with(key: ObjectKey, outer: ObjectKey, body: Json) -> bool:
    if outer.kind == "Namespace":
        return key.namespace == outer.name
    spec = body["spec"]
    return (key.group, key.kind) == (spec["group"], spec["names"]["kind"])


# --- claims that the server would delete ----------------------------------------------------------

StepT = TypeVar("StepT", bound=ObjectStep)


def with_claims_kept(step: StepT) -> StepT:
    """Return a step, with one reason more where claims would go and are made to stay."""
    if isinstance(step, ScaleStep):
        when, ends = WHEN_SCALED, step.is_scale_in
    else:
        when, ends = WHEN_DELETED, step.is_removal
    if not (ends and deletes_claims(step.old, when)):
        return step
    text = f"its volume claims stay: {when} of its retention policy is set to Retain first"
    return replace(step, reasons=(*step.reasons, Reason(text)))
