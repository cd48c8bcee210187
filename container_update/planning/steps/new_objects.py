# SPDX-License-Identifier: Apache-2.0
"""Bodies of objects that are created, from manifests or from earlier live objects."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping

from container_update.model.objects import Json, without_server_fields
from container_update.workloads import pod_template

_TOKEN_VOLUME = re.compile(r"kube-api-access-[a-z0-9]{5}")
"""The name of the token volume that admission adds (ServiceAccount admission plug-in)."""


_BINDING = frozenset(
    {
        *("pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller"),
        "volume.kubernetes.io/selected-node",
    }
)
"""Annotations of a claim that its controllers set when they bind it."""


def new_object(body: Json, namespace: str, labels: Mapping[str, str]) -> Json:
    """Return a body that can be created; *labels* are laid under its own."""
    created = copy.deepcopy(without_server_fields(body))
    metadata = created["metadata"]
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = {**labels, **(metadata.get("labels") or {})}
    return created


def pod_of(workload: Json) -> Json:
    """Return a pod as the controller of a workload creates it, for the server to try."""
    at, template = workload["metadata"], pod_template.pod_template(workload)
    owner = {"apiVersion": workload["apiVersion"], "kind": workload["kind"], "controller": True}
    owners = [{**owner, "name": at["name"], "uid": at["uid"]}]
    own = {"name": at["name"], "namespace": at["namespace"], "ownerReferences": owners}
    spec = dict(pod_template.pod_spec(workload))
    claims = (each["metadata"]["name"] for each in workload["spec"].get("volumeClaimTemplates", ()))
    added = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    spec["volumes"] = [*(spec.get("volumes") or ()), *added]
    metadata = {**(template.get("metadata") or {}), **own}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def stable_part(body: Json) -> Json:
    """Return an object without its status, its version, and who wrote which field."""
    moving = ("managedFields", "resourceVersion", "generation")
    metadata = {name: v for name, v in body["metadata"].items() if name not in moving}
    content = {name: value for name, value in body.items() if name != "status"}
    return {**content, "metadata": metadata}


def created_again(body: Json, namespace: str) -> Json:
    """Return a body for an object that was deleted.

    A claim gets a new volume: the one that it was bound to went with it (Kubernetes documentation,
    "Persistent Volumes", Binding and Reclaiming).
    """
    created = new_object(body, namespace, {})
    if created.get("kind") == "PersistentVolumeClaim":
        (created.get("spec") or {}).pop("volumeName", None)
        annotations = created["metadata"].get("annotations") or {}
        for name in annotations.keys() & _BINDING:
            del annotations[name]
    return created


def recreated_pod(live: Json, images: Mapping[str, str]) -> Json:
    """Return a Pod to create in place of *live*, from its spec, with other images.

    Left out: what the server put in or refuses at creation: status, server-set metadata, nodeName,
    ephemeralContainers (422), and the token volume of admission with its mounts, which admission
    adds again.
    """
    pod = new_object(pod_template.with_images(live, images), live["metadata"]["namespace"], {})
    spec = pod["spec"]
    spec.pop("nodeName", None)
    spec.pop("ephemeralContainers", None)
    tokens = {v["name"] for v in spec.get("volumes") or () if _is_token_volume(v)}
    spec["volumes"] = [v for v in spec.get("volumes") or () if v["name"] not in tokens]
    for _, container in pod_template.containers(spec):
        mounts = container.get("volumeMounts") or ()
        container["volumeMounts"] = [m for m in mounts if m["name"] not in tokens]
    return pod


def _is_token_volume(volume: Json) -> bool:
    sources = (volume.get("projected") or {}).get("sources") or ()
    has_token = any("serviceAccountToken" in source for source in sources)
    return has_token and _TOKEN_VOLUME.fullmatch(volume["name"]) is not None
