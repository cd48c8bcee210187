# SPDX-License-Identifier: Apache-2.0
"""Every path by which a pod spec names a ConfigMap or a Secret, with the keys it uses. Pure.

Source: Kubernetes API reference, PodSpec (1.36).
"""

from __future__ import annotations

import enum
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from container_update.model.objects import FieldPath, Json, get_at

KEYS_ALL = None
"""A use of the whole object, with any of its keys."""


class Reach(enum.Enum):
    """What it takes for new content to reach the containers that use it."""

    VOLUME = "volume"
    """The kubelet refreshes the mounted files by itself."""
    CONTAINER = "container"
    """A container sees it when it starts: environment, subPath mounts."""
    POD = "pod"
    """Only a new pod sees it: it is used to mount a volume, or by an init container."""


@dataclass(frozen=True)
class Use:
    """One place of a pod spec that names a ConfigMap or Secret."""

    kind: str
    """'ConfigMap' or 'Secret'."""
    name: str
    keys: frozenset[str] | None
    """The data keys used, None for all."""
    what: str
    """The place in words: 'env CMENV of container nginx'."""
    path: FieldPath
    """The place below the pod spec."""
    containers: frozenset[str]
    """The containers that see the content; empty where no container does by itself."""
    reach: Reach
    optional: bool = False
    """The pod starts without it, so that its coming and going changes the pod too."""


def uses(pod_spec: Mapping[str, Any]) -> tuple[Use, ...]:
    """Return every use of a ConfigMap or Secret in *pod_spec*, a live one or a manifest's."""
    return (*_environment(pod_spec), *_volumes(pod_spec), *_image_pull_secrets(pod_spec))


# --- containers ---------------------------------------------------------------------------------

_GROUPS = {
    "initContainers": "init container",
    "containers": "container",
    "ephemeralContainers": "ephemeral container",
}


def _all_containers(pod_spec: Mapping[str, Any]) -> Iterator[tuple[str, int, Json]]:
    for group in _GROUPS:
        for index, container in enumerate(pod_spec.get(group) or ()):
            yield group, index, container


def _reach_of_start(group: str, container: Mapping[str, Any]) -> Reach:
    # an init container runs again only in a new pod, an ephemeral one never
    restarts = group == "containers" or container.get("restartPolicy") == "Always"
    return Reach.CONTAINER if restarts else Reach.POD


def _environment(pod_spec: Mapping[str, Any]) -> Iterator[Use]:
    for group, index, container in _all_containers(pod_spec):
        name = str(container.get("name"))
        for kind, reference, keys, what, path in _environment_references(container):
            if reference.get("name"):
                yield Use(
                    kind,
                    str(reference["name"]),
                    keys,
                    f"{what} of {_GROUPS[group]} {name}",
                    (group, index, *path),
                    frozenset({name}),
                    _reach_of_start(group, container),
                    bool(reference.get("optional")),
                )


def _environment_references(
    container: Json,
) -> Iterator[tuple[str, Json, frozenset[str] | None, str, FieldPath]]:
    """Yield kind, reference, keys, words and field path of each reference in an environment."""
    for number, env in enumerate(container.get("env") or ()):
        for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
            reference = (env.get("valueFrom") or {}).get(field) or {}
            keys, what = frozenset({str(reference.get("key"))}), f"env {env.get('name')}"
            yield kind, reference, keys, what, ("env", number, "valueFrom", field)
    for number, env_from in enumerate(container.get("envFrom") or ()):
        for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            reference = env_from.get(field) or {}
            yield kind, reference, KEYS_ALL, "envFrom", ("envFrom", number, field)


# --- volumes ------------------------------------------------------------------------------------

MOUNTING_SECRETS = (
    ("azureFile", "secretName"),
    ("cephfs", "secretRef", "name"),
    ("cinder", "secretRef", "name"),
    ("csi", "nodePublishSecretRef", "name"),
    ("flexVolume", "secretRef", "name"),
    ("iscsi", "secretRef", "name"),
    ("rbd", "secretRef", "name"),
    ("scaleIO", "secretRef", "name"),
    ("storageos", "secretRef", "name"),
)
"""The fields of a volume, by plug-in, that name the Secret that it is mounted with."""
_WHOLE = "."


def _volumes(pod_spec: Mapping[str, Any]) -> Iterator[Use]:
    for index, volume in enumerate(pod_spec.get("volumes") or ()):
        volume_name, path = str(volume.get("name")), ("volumes", index)
        containers, reach, sub_paths = _mounts(pod_spec, volume_name)
        for kind, name, source, what, field in _volume_sources(volume):
            if name:
                yield Use(
                    kind,
                    str(name),
                    _visible_keys(source, sub_paths),
                    f"{what} {volume_name}",
                    (*path, *field),
                    containers,
                    reach,
                    bool(source.get("optional")),
                )
        yield from _mounting_secret(volume, f"volume {volume_name}", path)


def _volume_sources(volume: Json) -> Iterator[tuple[str, object, Json, str, FieldPath]]:
    """Yield kind, name, source, words and field of each ConfigMap or Secret in a volume."""
    config_map, secret = volume.get("configMap") or {}, volume.get("secret") or {}
    yield "ConfigMap", config_map.get("name"), config_map, "volume", ("configMap",)
    yield "Secret", secret.get("secretName"), secret, "volume", ("secret",)
    for index, projection in enumerate((volume.get("projected") or {}).get("sources") or ()):
        for field, kind in (("configMap", "ConfigMap"), ("secret", "Secret")):
            source = projection.get(field) or {}
            path = ("projected", "sources", index, field)
            yield kind, source.get("name"), source, "projected volume", path


def _mounts(
    pod_spec: Mapping[str, Any], volume: str
) -> tuple[frozenset[str], Reach, frozenset[str] | None]:
    """Return who mounts a volume, how far it reaches, and what of it; None: perhaps all."""
    names: set[str] = set()
    sub_paths: set[str] = set()
    reach = Reach.VOLUME
    for group, _, container in _all_containers(pod_spec):
        for mount in container.get("volumeMounts") or ():
            if mount.get("name") != volume:
                continue
            names.add(str(container.get("name")))
            # what a subPathExpr comes to, only the kubelet knows: the whole volume, then
            sub_paths.add(posixpath.normpath(mount.get("subPath") or _WHOLE))
            start = _reach_of_start(group, container)
            if start is Reach.POD:
                reach = Reach.POD
            elif (mount.get("subPath") or mount.get("subPathExpr")) and reach is Reach.VOLUME:
                reach = Reach.CONTAINER
    whole = not sub_paths or _WHOLE in sub_paths
    return frozenset(names), reach, None if whole else frozenset(sub_paths)


def _visible_keys(source: Json, sub_paths: frozenset[str] | None) -> frozenset[str] | None:
    """Return the keys of a ConfigMap or Secret in a volume that a container can see."""
    if not source.get("items"):
        return sub_paths
    keys = frozenset(
        str(item.get("key"))
        for item in source["items"]
        if sub_paths is None
        or any(f"{item.get('path')}/".startswith(f"{below}/") for below in sub_paths)
    )
    return keys or KEYS_ALL


def _mounting_secret(volume: Json, what: str, path: FieldPath) -> Iterator[Use]:
    for plugin, *names in MOUNTING_SECRETS:
        if value := get_at(volume, (plugin, *names)):
            yield Use(
                "Secret",
                str(value),
                KEYS_ALL,
                f"{what}, mounted with it by {plugin},",
                (*path, plugin, *names),
                frozenset(),
                Reach.POD,
            )


# --- the pod itself -----------------------------------------------------------------------------


def _image_pull_secrets(pod_spec: Mapping[str, Any]) -> Iterator[Use]:
    for index, reference in enumerate(pod_spec.get("imagePullSecrets") or ()):
        if reference.get("name"):
            yield Use(
                "Secret",
                str(reference["name"]),
                KEYS_ALL,
                "imagePullSecrets of the pod",
                ("imagePullSecrets", index),
                frozenset(),
                Reach.CONTAINER,
            )
