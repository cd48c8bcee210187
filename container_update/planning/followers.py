# SPDX-License-Identifier: Apache-2.0
"""How Services and autoscalers that stay follow their pods when these change. Pure.

A change does not apply the manifest of an object that the request does not list. Where it replaces
pods, their Service has to select the new ones all the same, or all traffic would be lost, and their
autoscaler has to name the new workload.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from container_update.model.errors import PlanError
from container_update.model.objects import Json, Manifest, ObjectKey
from container_update.planning.release_labels import RELEASE_LABEL, loser, selector_of
from container_update.planning.steps.new_objects import new_object
from container_update.workloads.traffic import scales, selects


@dataclass(frozen=True)
class Move:
    """A workload whose pods a change replaces."""

    workload: ObjectKey
    """By its name in the cluster now."""
    name: str
    """The name that the new manifest gives it."""
    before: Json
    """The labels of its pods, as ``traffic.selects`` takes them."""
    after: Json
    beside: bool = False
    """The new pods run beside the old ones for a while."""


def followers(
    kept: Mapping[ObjectKey, Manifest], live: Mapping[ObjectKey, Json], moves: Sequence[Move]
) -> Iterator[tuple[Manifest, Manifest]]:
    """Yield objects that have to follow their pods, before and after; refuse one that cannot."""
    for key, manifest in kept.items():
        if key not in live:
            continue
        now = replace(manifest, body=new_object(live[key], key.namespace, {}))
        then = None
        if (key.group, key.kind) == ("", "Service"):
            then = _service(now, live, moves)
        elif key.kind == "HorizontalPodAutoscaler":
            then = _autoscaler(now, moves)
        if then is not None:
            yield now, replace(now, body=then)


def _autoscaler(now: Manifest, moves: Sequence[Move]) -> Json | None:
    for move in moves:
        if move.beside and scales(now, move.workload):
            body = copy.deepcopy(now.body)
            body["spec"]["scaleTargetRef"]["name"] = move.name
            return body
    return None


def _service(now: Manifest, live: Mapping[ObjectKey, Json], moves: Sequence[Move]) -> Json | None:
    selector = selector_of(now.body)
    moved = [
        move
        for move in moves
        if move.workload.namespace == now.key.namespace and selects(selector, move.before)
    ]
    if not moved:
        return None
    own = {label: value for label, value in selector.items() if label != RELEASE_LABEL}
    then = {label: _value(label, now, moved) for label in own}
    if then == own and not any(move.beside for move in moved):
        return None
    _refuse_losers(now, then, live, moved)
    return {**now.body, "spec": {**now.body["spec"], "selector": then}}


def _value(label: str, service: Manifest, moved: Sequence[Move]) -> str:
    """Return the value that the new pods have for a label of the selector."""
    values = {(move.after["metadata"].get("labels") or {}).get(label) for move in moved}
    if len(values) == 1 and None not in values:
        return str(values.pop())
    names = ", ".join(str(move.workload) for move in moved)
    found = "no such label" if values == {None} else "different values"
    raise PlanError(
        f"{service.key}: sends traffic to {names} and selects pods by the label {label}: expected "
        f"one value of it on the new pods, found {found}: all traffic would be lost, add "
        f"{service.source.path} to the lcm-kubernetes-def-files of the request"
    )


def _refuse_losers(
    service: Manifest,
    then: Mapping[str, str],
    live: Mapping[ObjectKey, Json],
    moved: Sequence[Move],
) -> None:
    """Raise PlanError where a workload that does not change would lose the traffic."""
    changing = {move.workload for move in moved}
    if key := loser(service.key, selector_of(service.body), then, live, changing):
        raise PlanError(
            f"{service.key}: sends traffic to {key} too, which does not change, and would "
            f"lose it: add {service.source.path}, with a selector that selects both, to the "
            "lcm-kubernetes-def-files of the request"
        )
