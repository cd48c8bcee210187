"""The arithmetic of a Deployment's rollout: how many pods each ReplicaSet may have next. Pure.

The rules are those that the Deployment's documentation gives for ``maxSurge`` and
``maxUnavailable``: no more than ``replicas + maxSurge`` pods, no fewer than ``replicas -
maxUnavailable`` available ones.
"""

from __future__ import annotations

import math

from container_update.emulator.json_type import Json

DESIRED = "deployment.kubernetes.io/desired-replicas"
MOST = "deployment.kubernetes.io/max-replicas"


def share(value: int | str, total: int, *, up: bool) -> int:
    """An absolute number, or a percentage ('25%') of *total*, rounded up or down."""
    if isinstance(value, int):
        return value
    exact = int(value.removesuffix("%")) * total
    return -(-exact // 100) if up else exact // 100


def replicas(obj: Json) -> int:
    """How many pods the object asks for."""
    found: int = obj["spec"].get("replicas", 1)
    return found


def is_rolling(deployment: Json) -> bool:
    """Its strategy is RollingUpdate."""
    return bool(_strategy(deployment).get("type", "RollingUpdate") == "RollingUpdate")


def limits(deployment: Json) -> tuple[int, int]:
    """How many pods there may be too many and too few while rolling.

    The surge rounds up, the lack rounds down. Where both come to nothing one pod may lack: else
    the rollout could not begin.
    """
    if not is_rolling(deployment):
        return 0, 0
    wanted = replicas(deployment)
    rolling = _strategy(deployment).get("rollingUpdate") or {}
    surge = share(rolling.get("maxSurge", "25%"), wanted, up=True)
    lack = share(rolling.get("maxUnavailable", "25%"), wanted, up=False)
    if surge == 0 and lack == 0:
        lack = 1
    return surge, min(lack, wanted)


def most(deployment: Json) -> int:
    """The most pods that there may be."""
    return replicas(deployment) + limits(deployment)[0]


def asked(sets: list[Json]) -> int:
    """How many pods the ReplicaSets ask for together."""
    return sum(map(replicas, sets))


def counted(sets: list[Json], field: str) -> int:
    """The sum of a field of the ReplicaSets' status."""
    return sum(entry.get("status", {}).get(field, 0) for entry in sets)


def next_size_of_new(deployment: Json, sets: list[Json], new: Json | None) -> int:
    """How many pods the new ReplicaSet may ask for now.

    :param sets: all ReplicaSets, the new one included where there is one.
    """
    wanted, size = replicas(deployment), replicas(new) if new is not None else 0
    if not is_rolling(deployment) or size > wanted:
        return wanted
    room = most(deployment) - asked(sets)
    return size + max(0, min(room, wanted - size))


def next_sizes_of_old(deployment: Json, new: Json, old: list[Json]) -> dict[str, int]:
    """By name, the ReplicaSets among *old* (oldest first) that may shrink now, and to what.

    Pods that are not available go first: nobody misses them.
    """
    sets = [new, *old]
    least = replicas(deployment) - limits(deployment)[1]
    lacking = replicas(new) - counted([new], "availableReplicas")
    may_go = asked(sets) - least - lacking
    sizes = {entry["metadata"]["name"]: replicas(entry) for entry in old}
    before = dict(sizes)
    for entry in old:
        idle = replicas(entry) - counted([entry], "availableReplicas")
        gone = max(0, min(may_go, idle))
        may_go -= gone
        sizes[entry["metadata"]["name"]] -= gone
    if may_go <= 0:
        return _changed(before, sizes)
    spare = counted(sets, "availableReplicas") - least
    for name, size in sizes.items():
        gone = max(0, min(spare, size))
        spare -= gone
        sizes[name] -= gone
    return _changed(before, sizes)


def proportional_sizes(deployment: Json, sets: list[Json]) -> dict[str, int]:
    """The sizes of several active ReplicaSets after the Deployment was scaled in mid-rollout.

    Each grows or shrinks with its share; the largest takes what rounding leaves over.
    """
    wanted = replicas(deployment)
    allowed = most(deployment) if wanted else 0
    missing = allowed - asked(sets)
    by_size = sorted(sets, key=replicas, reverse=True)
    sizes = {entry["metadata"]["name"]: replicas(entry) for entry in by_size}
    left = missing
    for entry in by_size:
        part = _share_of(deployment, entry)
        part = min(max(part, 0), left) if missing > 0 else max(min(part, 0), left)
        sizes[entry["metadata"]["name"]] += part
        left -= part
    if by_size:
        largest = by_size[0]["metadata"]["name"]
        sizes[largest] = max(0, sizes[largest] + left)
    return sizes


def _share_of(deployment: Json, entry: Json) -> int:
    """By how much the ReplicaSet grows with its Deployment."""
    if not replicas(deployment):
        return -replicas(entry)
    annotations = entry["metadata"].get("annotations") or {}
    before = int(annotations.get(MOST, 0)) or deployment.get("status", {}).get("replicas", 0)
    if not before:
        return 0
    grown = replicas(entry) * most(deployment) / before
    return math.floor(grown + 0.5) - replicas(entry)


def _strategy(deployment: Json) -> Json:
    found: Json = deployment["spec"].get("strategy") or {}
    return found


def _changed(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {name: size for name, size in after.items() if size != before[name]}
