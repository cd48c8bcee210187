# SPDX-License-Identifier: Apache-2.0
"""Pods that still run the old image although their workload's template has the new one. Pure.

A ReplicaSet, and a DaemonSet or StatefulSet with ``OnDelete``, leaves its pods as they are when
somebody writes a new template. Source: Kubernetes API reference, ReplicaSet; "Update strategies".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from container_update.model.objects import Json, ObjectKey
from container_update.model.plan import Action, ImageChange
from container_update.workloads import pod_template
from container_update.workloads.ownership import owned_pods
from container_update.workloads.registry import known_kind


def as_its_pods(
    workload: Json, changes: Sequence[ImageChange], live: Mapping[ObjectKey, Json]
) -> tuple[Json, list[ImageChange]]:
    """Return a workload with the images that its pods run, and the image changes that they lack.

    An undo restores the workload that is returned. With the images in its live template no replaced
    pod could come back.

    Only a pod with the old package's image counts. An image that a webhook has put into a pod is in
    neither package, and the next pod would get it again.

    :param changes: what the packages change, all of it in the template already.
    """
    lacking = [change for change in changes if _is_lacking(change, workload, live)]
    if lacking:
        workload = pod_template.with_images(workload, {c.container: c.old for c in lacking})
    return workload, lacking


def _is_lacking(change: ImageChange, workload: Json, live: Mapping[ObjectKey, Json]) -> bool:
    if known_kind(ObjectKey.of(workload)).action(workload, [change], ()) is not Action.EVICT:
        return False
    namespace = workload["metadata"]["namespace"]
    pods = (body for key, body in live.items() if (key.kind, key.namespace) == ("Pod", namespace))
    return any(
        pod_template.images(pod).get(change.container) == change.old
        for pod in owned_pods(workload, pods, ())
    )
