# SPDX-License-Identifier: Apache-2.0
"""The pod template of a workload: its content, and copies with other content.

Source: Kubernetes API reference, PodTemplateSpec.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from container_update.model.objects import Json, get_at
from container_update.model.plan import VOLUME
from container_update.workloads.kind import WorkloadKind
from container_update.workloads.registry import kind_of_body

DIGEST_ANNOTATION = "container-update/config-digest"
"""On a pod template: identifies the configuration that its pods were started with."""


def template_path(workload: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the path of the pod template; of an unknown kind it is ``spec.template``."""
    return (kind_of_body(workload) or WorkloadKind).template_path


def pod_template(workload: Mapping[str, Any]) -> Json:
    """Return the pod template itself, not a copy; empty where the object has none."""
    template = get_at(workload, template_path(workload))
    return template if isinstance(template, dict) else {}


def pod_spec(workload: Mapping[str, Any]) -> Json:
    """Return the pods' ``spec``; empty where the object has none."""
    spec = pod_template(workload).get("spec")
    return spec if isinstance(spec, dict) else {}


def containers(spec: Mapping[str, Any]) -> Iterator[tuple[str, Json]]:
    """Yield (list it stands in, container) of a manifest, init containers first."""
    for group in ("initContainers", "containers"):
        for container in spec.get(group) or ():
            if isinstance(container, dict):  # of an unknown kind it may be anything
                yield group, container


def host_ports(workload: Mapping[str, Any]) -> str:
    """Return the ports of the node that its pods take, '' where there are none."""
    spec = pod_spec(workload)
    ports = [port for _, each in containers(spec) for port in each.get("ports") or ()]
    name = "containerPort" if spec.get("hostNetwork") else "hostPort"
    return ", ".join(str(port[name]) for port in ports if port.get(name))


def claims(workload: Mapping[str, Any]) -> dict[str, str]:
    """Return volume to PersistentVolumeClaim; a StatefulSet's templates are volumes of its pods."""
    return {
        str(volume["name"]): str(volume["persistentVolumeClaim"].get("claimName"))
        for volume in pod_spec(workload).get("volumes") or ()
        if volume.get("persistentVolumeClaim")
    }


def image_volumes(spec: Mapping[str, Any]) -> Iterator[tuple[str, Json]]:
    """Yield each volume that is an image: (its name among those of containers, its ``image``)."""
    for volume in spec.get("volumes") or ():
        image = volume.get("image") if isinstance(volume, dict) else None
        if isinstance(image, dict):
            yield f"{VOLUME}{volume.get('name')}", image


def images(workload: Mapping[str, Any]) -> dict[str, str]:
    """Return container name to image of a workload or its manifest; init containers too, and
    volumes that are an image."""
    spec = pod_spec(workload)
    images = {str(each.get("name")): str(each.get("image", "")) for _, each in containers(spec)}
    return images | {name: str(image.get("reference", "")) for name, image in image_volumes(spec)}


def runs_to_its_end(group: str, container: Mapping[str, Any]) -> bool:
    """Return whether it is an init container that runs once, and no sidecar (KEP-753)."""
    return group == "initContainers" and container.get("restartPolicy") != "Always"


def with_images(workload: Json, images: Mapping[str, str]) -> Json:
    """Return a copy in which the containers and volumes named in *images* have those images; all
    else it shares with the workload."""
    changed = _with_own_template(workload)
    spec = pod_spec(changed)
    for name in ("initContainers", "containers", "volumes"):
        if isinstance(spec.get(name), list):
            spec[name] = [{**each} if isinstance(each, dict) else each for each in spec[name]]
    for _, container in containers(spec):
        if container.get("name") in images:
            container["image"] = images[str(container["name"])]
    for volume in spec.get("volumes") or ():
        for name, image in image_volumes({"volumes": [volume]}):
            if name in images:
                volume["image"] = {**image, "reference": images[name]}
    return changed


def _with_own_template(workload: Json) -> Json:
    """Return a copy with a pod template, metadata and spec of its own; it shares the rest."""
    changed = template = {**workload}
    for name in template_path(workload):
        if isinstance(template.get(name), dict):
            template[name] = template = {**template[name]}
    for name in ("metadata", "spec"):
        if isinstance(template.get(name), dict):
            template[name] = {**template[name]}
    return changed


def config_digest(workload: Mapping[str, Any]) -> str | None:
    """Return the configuration digest on the pod template, None where there is none."""
    annotations = (pod_template(workload).get("metadata") or {}).get("annotations") or {}
    digest = annotations.get(DIGEST_ANNOTATION)
    return None if digest is None else str(digest)


def with_digest(workload: Json, digest: str | None) -> Json:
    """Return a copy whose pod template has that digest, or has none; see :func:`with_images`."""
    changed = _with_own_template(workload)
    template = pod_template(changed)
    metadata = template.get("metadata") or {}
    annotations = dict(metadata.get("annotations") or {})
    annotations.pop(DIGEST_ANNOTATION, None)
    if digest is not None:
        annotations[DIGEST_ANNOTATION] = digest
    if annotations or "annotations" in metadata:
        metadata["annotations"] = annotations
    if not metadata.get("annotations"):
        metadata.pop("annotations", None)
    if metadata:
        template["metadata"] = metadata
    return changed
