# SPDX-License-Identifier: Apache-2.0
"""ResourceQuota: how many objects, and what resources of pods, a namespace may have.

Numbers of objects (``pods``, ``secrets``, ``count/deployments.apps``), and CPU and memory of pods
(``requests.cpu``, ``limits.memory``, ``cpu``). Source: Kubernetes documentation, "Resource Quotas".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import pod_state
from container_update.emulator.kubernetes.api_errors import forbidden
from container_update.emulator.kubernetes.resources import Resource
from container_update.emulator.kubernetes.rules import quantity

List = Callable[[str, str], list[Json]]
"""Lists the objects of a resource in a namespace."""


def admit(kind: Resource, new: Json, objects: List) -> None:
    """Raise 403 where a quota of the namespace has no room for *new*."""
    metadata = new["metadata"]
    namespace = metadata.get("namespace", "")
    for quota in objects("resourcequotas", namespace):
        hard = (quota.get("spec") or {}).get("hard") or {}
        title = quota["metadata"]["name"]
        concerned = [name for name in sorted(hard) if _resource_of(name) in _names(kind)]
        for name in concerned:
            if missing := _without(name, new):
                text = f"failed quota: {title}: must specify {name} for: {','.join(missing)}"
                raise forbidden(kind.group, kind.plural, metadata["name"], text, [])
        for name in concerned:
            asked, used = _amount(name, new), _sum(name, objects(kind.key, namespace))
            if used + asked > quantity.value(hard[name]):
                text = (
                    f"exceeded quota: {title}, requested: {name}={_text(asked)}, "
                    f"used: {name}={_text(used)}, limited: {name}={hard[name]}"
                )
                raise forbidden(kind.group, kind.plural, metadata["name"], text, [])


def usage(quota: Json, kinds: Iterable[Resource], objects: List) -> Json:
    """Return what the namespace of a quota uses of all that the quota limits."""
    namespace = quota["metadata"]["namespace"]
    by_name = {name: kind for kind in kinds for name in _names(kind)}
    return {
        name: _text(_sum(name, objects(by_name[resource].key, namespace)))
        for name in sorted((quota.get("spec") or {}).get("hard") or {})
        if (resource := _resource_of(name)) in by_name
    }


_COMPUTE = ("cpu", "memory", "ephemeral-storage")


def _names(kind: Resource) -> set[str]:
    whole = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
    return {whole} if kind.group else {whole, kind.plural}


def _resource_of(name: str) -> str:
    """Return the plural, with its group, of what an entry of a quota counts."""
    if _container_part(name):
        return "pods"
    return name.removeprefix("count/")


def _container_part(name: str) -> tuple[str, str] | None:
    """Return which part of a container's resources an entry sums up; None: it counts objects."""
    part, _, resource = name.rpartition(".")
    if resource not in _COMPUTE or part not in ("", "limits", "requests"):
        return None
    return part or "requests", resource


def _without(name: str, pod: Json) -> list[str]:
    """Return the containers that do not say what the quota sums up."""
    part = _container_part(name)
    if part is None:
        return []
    return [
        entry["name"]
        for entry in pod["spec"].get("containers", [])
        if part[1] not in entry.get("resources", {}).get(part[0], {})
    ]


def _sum(name: str, items: list[Json]) -> Fraction:
    return sum((_amount(name, item) for item in items), Fraction(0))


def _amount(name: str, item: Json) -> Fraction:
    """Return what an object counts: a pod that has ended counts only as an object."""
    part = _container_part(name)
    if (part or name == "pods") and pod_state.is_finished(item):
        return Fraction(0)
    if part is None:
        return Fraction(1)
    amounts = (
        quantity.value(entry.get("resources", {}).get(part[0], {}).get(part[1], 0))
        for entry in item["spec"].get("containers", [])
    )
    return sum(amounts, Fraction(0))


def _text(amount: Fraction) -> str:
    return quantity.canonical(f"{int(amount * 1000)}m")
