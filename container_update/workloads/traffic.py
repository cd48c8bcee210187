# SPDX-License-Identifier: Apache-2.0
"""Which pods a selector selects, and which get the traffic of a Service. Pure.

Source: Kubernetes API reference, LabelSelector, Service, EndpointSlice: an endpoint whose condition
``ready`` is not false gets traffic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from container_update.model.objects import Json, Manifest, ObjectKey, get_at
from container_update.workloads.pod_status import is_ready
from container_update.workloads.readiness import DONE, Readiness, RolloutState

SERVICE_LABEL = "kubernetes.io/service-name"
"""On an EndpointSlice: the Service it belongs to."""


def service_readiness(
    service: Json, slices: Sequence[Json], pods: Sequence[Json], old: frozenset[str]
) -> Readiness:
    """Judge whether a Service's endpoints are the ready pods that it selects.

    :param slices: all EndpointSlices of the namespace.
    :param pods: all of the namespace.
    :param old: UIDs of the pods of workloads that will be deleted. They get no traffic any more,
        unless the Service still selects them: then they serve until they are gone.
    """
    spec = service["spec"]
    selector = spec.get("selector") or {}
    if not selector or spec.get("type") == "ExternalName":
        return DONE
    selected = {pod["metadata"]["uid"]: pod for pod in pods if selects(selector, pod)}
    desired = {uid for uid, pod in selected.items() if is_ready(pod)}
    served = _served_pods(service["metadata"]["name"], slices)
    stale = (served & old) - selected.keys()
    message = ""
    if stale:
        message = f"{len(stale)} old pods still get its traffic"
    elif desired - served:
        message = f"{len(desired - served)} ready pods get no traffic of it yet"
    elif served - desired and not spec.get("publishNotReadyAddresses"):
        message = f"{len(served - desired)} other pods still get its traffic"
    return Readiness(RolloutState.PROGRESSING, message) if message else DONE


def selects(selector: Mapping[str, Any] | None, body: Mapping[str, Any]) -> bool:
    """Tell whether a Service's selector selects pods; an empty one selects none."""
    return bool(selector) and matches({"matchLabels": selector}, body)


def matches(selector: Mapping[str, Any] | None, body: Mapping[str, Any]) -> bool:
    """Tell whether a label selector selects pods; an empty one selects all, None none."""
    if selector is None:
        return False
    labels = (body.get("metadata") or {}).get("labels") or {}
    wanted, expressions = selector.get("matchLabels"), selector.get("matchExpressions")
    return (wanted or {}).items() <= labels.items() and all(
        _is_met(expression, labels) for expression in expressions or ()
    )


def _is_met(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or ()
    is_there = labels.get(key) in values if values else key in labels
    return is_there != (expression["operator"] in {"NotIn", "DoesNotExist"})


def _served_pods(name: str, slices: Sequence[Json]) -> set[str]:
    return {
        str((endpoint.get("targetRef") or {}).get("uid"))
        for body in slices
        if (body["metadata"].get("labels") or {}).get(SERVICE_LABEL) == name
        for endpoint in body.get("endpoints") or ()
        if (endpoint.get("conditions") or {}).get("ready") is not False
    }


def scales(scaler: Manifest, workload: ObjectKey) -> bool:
    """Tell whether an object is an autoscaler of a workload, which is in its namespace.

    Source: API reference, HorizontalPodAutoscalerSpec, ``scaleTargetRef``.
    """
    target = get_at(scaler.body, ("spec", "scaleTargetRef"))
    named = (get_at(target, ("kind",)), get_at(target, ("name",)), scaler.key.namespace)
    return named == (workload.kind, workload.name, workload.namespace)
