# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of a Deployment's rollout: the next size of each ReplicaSet. Pure.

Source: the Deployment's documentation of ``maxSurge`` and ``maxUnavailable``: at most ``replicas +
maxSurge`` pods, at least ``replicas - maxUnavailable`` available ones.
"""

from __future__ import annotations

import math

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.objects import annotations_of

DESIRED = "deployment.kubernetes.io/desired-replicas"
MAX = "deployment.kubernetes.io/max-replicas"


def scaled_value(value: int | str, total: int, *, up: bool) -> int:
    """Return an absolute number, or a percentage ('25%') of *total*, rounded up or down."""
    if isinstance(value, int):
        return value
    exact = int(value.removesuffix("%")) * total
    return -(-exact // 100) if up else exact // 100


def replicas(obj: Json) -> int:
    """Return how many pods the object's spec asks for."""
    return int(obj["spec"].get("replicas", 1))


def is_rolling(deployment: Json) -> bool:
    """Return whether its strategy is RollingUpdate."""
    return bool(_strategy(deployment).get("type", "RollingUpdate") == "RollingUpdate")


def limits(deployment: Json) -> tuple[int, int]:
    """Return maxSurge and maxUnavailable as numbers, which round up and down.

    If both are 0, one pod may be unavailable: otherwise the rollout could not start.
    """
    if not is_rolling(deployment):
        return 0, 0
    desired = replicas(deployment)
    rolling = _strategy(deployment).get("rollingUpdate") or {}
    surge = scaled_value(rolling.get("maxSurge", "25%"), desired, up=True)
    unavailable = scaled_value(rolling.get("maxUnavailable", "25%"), desired, up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return surge, min(unavailable, desired)


def max_replicas(deployment: Json) -> int:
    """Return how many pods there may be at most during a rollout."""
    return replicas(deployment) + limits(deployment)[0]


def total_replicas(sets: list[Json]) -> int:
    """Return the sum of the replicas in the ReplicaSets' specs."""
    return sum(map(replicas, sets))


def total_status(sets: list[Json], field: str) -> int:
    """Return the sum of a field of the ReplicaSets' status."""
    return sum(entry.get("status", {}).get(field, 0) for entry in sets)


def next_size_of_new(deployment: Json, sets: list[Json], new: Json | None) -> int:
    """Return the next size of the new ReplicaSet.

    :param sets: all ReplicaSets, the new one included if it exists.
    """
    desired, size = replicas(deployment), replicas(new) if new is not None else 0
    if not is_rolling(deployment) or size > desired:
        return desired
    room = max_replicas(deployment) - total_replicas(sets)
    return size + max(0, min(room, desired - size))


def next_sizes_of_old(deployment: Json, new: Json, old: list[Json]) -> dict[str, int]:
    """Return by name the next sizes of those *old* ReplicaSets (oldest first) that may shrink.

    Unavailable pods are deleted first.
    """
    sets = [new, *old]
    minimum = replicas(deployment) - limits(deployment)[1]
    unavailable = replicas(new) - total_status([new], "availableReplicas")
    surplus = total_replicas(sets) - minimum - unavailable
    sizes = {entry["metadata"]["name"]: replicas(entry) for entry in old}
    before = dict(sizes)
    for entry in old:
        unavailable = replicas(entry) - total_status([entry], "availableReplicas")
        fewer = max(0, min(surplus, unavailable))
        surplus -= fewer
        sizes[entry["metadata"]["name"]] -= fewer
    if surplus <= 0:
        return _changes(before, sizes)
    spare = total_status(sets, "availableReplicas") - minimum
    for name, size in sizes.items():
        fewer = max(0, min(spare, size))
        spare -= fewer
        sizes[name] -= fewer
    return _changes(before, sizes)


def proportional_sizes(deployment: Json, sets: list[Json]) -> dict[str, int]:
    """Return the sizes of several active ReplicaSets after a scaling during a rollout.

    Each changes in proportion to its size; the largest takes the rest from rounding.
    """
    allowed = max_replicas(deployment) if replicas(deployment) else 0
    missing = allowed - total_replicas(sets)
    by_size = sorted(sets, key=replicas, reverse=True)
    sizes = {entry["metadata"]["name"]: replicas(entry) for entry in by_size}
    left = missing
    for entry in by_size:
        part = _proportional_change(deployment, entry)
        part = min(max(part, 0), left) if missing > 0 else max(min(part, 0), left)
        sizes[entry["metadata"]["name"]] += part
        left -= part
    if by_size:
        largest = by_size[0]["metadata"]["name"]
        sizes[largest] = max(0, sizes[largest] + left)
    return sizes


def _proportional_change(deployment: Json, entry: Json) -> int:
    """Return by how much the ReplicaSet grows with its Deployment."""
    if not replicas(deployment):
        return -replicas(entry)
    before = int(annotations_of(entry).get(MAX, 0))
    before = before or deployment.get("status", {}).get("replicas", 0)
    if not before:
        return 0
    grown = replicas(entry) * max_replicas(deployment) / before
    return math.floor(grown + 0.5) - replicas(entry)


def _strategy(deployment: Json) -> Json:
    return deployment["spec"].get("strategy") or {}


def _changes(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {name: size for name, size in after.items() if size != before[name]}
