# SPDX-License-Identifier: Apache-2.0
"""LimitRange: what the containers of a namespace request and are limited to.

Limits of the type ``Container`` only. Source: Kubernetes documentation, "Limit Ranges".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.api_errors import forbidden
from container_update.emulator.kubernetes.rules import initial_status, quantity

List = Callable[[str, str], list[Json]]
"""Lists the objects of a resource in a namespace."""


def admit(pod: Json, objects: List) -> None:
    """Give a new pod the defaults of its namespace; raise 403 where it is outside the limits."""
    metadata, spec = pod["metadata"], pod["spec"]
    ranges = objects("limitranges", metadata["namespace"])
    limits = [limit for entry in ranges for limit in entry.get("spec", {}).get("limits", [])]
    limits = [limit for limit in limits if limit.get("type") == "Container"]
    containers = [*spec.get("initContainers", []), *spec.get("containers", [])]
    written = [text for each in containers for limit in limits for text in _fill(each, limit)]
    if written:
        text = f"LimitRanger plugin set: {'; '.join(written)}"
        metadata["annotations"] = metadata.get("annotations", {}) | {_ANNOTATION: text}
        initial_status.reset_pod(pod)
    beyond = [text for each in containers for limit in limits for text in _beyond(each, limit)]
    if beyond:
        raise forbidden("", "pods", metadata.get("name", ""), ", ".join(beyond), [])


_ANNOTATION = "kubernetes.io/limit-ranger"


def _fill(container: Json, limit: Json) -> Iterator[str]:
    """Write what a container does not say, and yield what was written."""
    for part, source in (("requests", "defaultRequest"), ("limits", "default")):
        for name, amount in limit.get(source, {}).items():
            stated = container["resources"].setdefault(part, {})
            if name not in stated:
                stated[name] = amount
                yield f"{name} {part[:-1]} for container {container['name']}"


def _beyond(container: Json, limit: Json) -> Iterator[str]:
    for bound, sign in (("min", 1), ("max", -1)):
        for name, amount in limit.get(bound, {}).items():
            part = "requests" if bound == "min" else "limits"
            stated = container["resources"].get(part, {}).get(name)
            if stated is None or sign * (quantity.value(stated) - quantity.value(amount)) < 0:
                yield f"{bound}imum {name} usage per Container is {amount}"
