# SPDX-License-Identifier: Apache-2.0
"""ResourceQuota: how many objects of a resource a namespace may have.

Only numbers of objects (``pods``, ``secrets``, ``count/deployments.apps``), no CPU and memory.
Source: Kubernetes documentation, "Resource Quotas", "Object count quota".
"""

from __future__ import annotations

from collections.abc import Callable

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
    whole = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
    for quota in objects("resourcequotas", namespace):
        hard = (quota.get("spec") or {}).get("hard") or {}
        for name in sorted({kind.plural, f"count/{whole}"} & hard.keys()):
            used = sum(_counts(name, item) for item in objects(kind.key, namespace))
            if used >= quantity.value(hard[name]):
                text = (
                    f"exceeded quota: {quota['metadata']['name']}, requested: {name}=1, "
                    f"used: {name}={used}, limited: {name}={hard[name]}"
                )
                raise forbidden(kind.group, kind.plural, metadata["name"], text, [])


def _counts(name: str, item: Json) -> bool:
    """Tell whether an object counts: for ``pods`` only one that has not ended does."""
    return name != "pods" or not pod_state.is_finished(item)
