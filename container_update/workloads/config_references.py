"""Every path by which a pod spec names a ConfigMap or a Secret, with the keys it uses.

Source: Kubernetes API reference, PodSpec (1.36). A table of readers, one for each place; all they
do is turn a piece of the spec into :class:`Use` values. Pure.
"""

from __future__ import annotations

import enum
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from container_update.model.objects import Json

KEYS_ALL = None
"""A use of the whole object, whatever its keys."""


class Reach(enum.Enum):
    """What it takes for new content to reach the containers that use it."""

    VOLUME = "volume"
    """The kubelet refreshes the mounted files by itself."""
    CONTAINER = "container"
    """A container sees it when it starts: environment, subPath mounts."""
    POD = "pod"
    """Only a new pod sees it: what is used to mount a volume, or by an init container."""


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
    path: str
    """The place as a field path below the pod spec."""
    containers: frozenset[str]
    """The containers that see the content; empty where no container does by itself."""
    reach: Reach
    optional: bool = False
    """The pod starts without it, so that its coming and going changes the pod too."""


def uses(pod_spec: Mapping[str, Any]) -> tuple[Use, ...]:
    """Every use of a ConfigMap or Secret in *pod_spec* (a live one or a manifest's), in order."""
    return (
        *_environment(pod_spec),
        *_volumes(pod_spec),
        *_image_pull_secrets(pod_spec),
    )


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
    """Return an init container runs again only in a new pod; an ephemeral one is never started
    again."""
    restarts = group == "containers" or container.get("restartPolicy") == "Always"
    return Reach.CONTAINER if restarts else Reach.POD


def _environment(pod_spec: Mapping[str, Any]) -> Iterator[Use]:
    for group, index, container in _all_containers(pod_spec):
        name = str(container.get("name"))
        owner = f"{_GROUPS[group]} {name}"
        path = f"{group}[{index}]"
        reach = _reach_of_start(group, container)
        for number, env in enumerate(container.get("env") or ()):
            source = env.get("valueFrom") or {}
            for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
                reference = source.get(field)
                if reference and reference.get("name"):
                    yield Use(
                        kind,
                        str(reference["name"]),
                        frozenset({str(reference.get("key"))}),
                        f"env {env.get('name')} of {owner}",
                        f"{path}.env[{number}].valueFrom.{field}",
                        frozenset({name}),
                        reach,
                        bool(reference.get("optional")),
                    )
        for number, env_from in enumerate(container.get("envFrom") or ()):
            for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
                reference = env_from.get(field)
                if reference and reference.get("name"):
                    yield Use(
                        kind,
                        str(reference["name"]),
                        KEYS_ALL,
                        f"envFrom of {owner}",
                        f"{path}.envFrom[{number}].{field}",
                        frozenset({name}),
                        reach,
                        bool(reference.get("optional")),
                    )


# --- volumes ------------------------------------------------------------------------------------

_VOLUME_SECRETS: Mapping[str, tuple[str, ...]] = {
    "azureFile": ("secretName",),
    "cephfs": ("secretRef", "name"),
    "cinder": ("secretRef", "name"),
    "csi": ("nodePublishSecretRef", "name"),
    "flexVolume": ("secretRef", "name"),
    "iscsi": ("secretRef", "name"),
    "rbd": ("secretRef", "name"),
    "scaleIO": ("secretRef", "name"),
    "storageos": ("secretRef", "name"),
}
"""Volume plug-in to where it names the Secret that it mounts with."""


@dataclass(frozen=True)
class _Mounts:
    """Who mounts a volume, and what of it."""

    containers: frozenset[str]
    reach: Reach
    sub_paths: frozenset[str] | None
    """What of the volume is mounted, None where all of it is or may be."""

    def keys(self, source: Mapping[str, Any]) -> frozenset[str] | None:
        """Return the keys of a ConfigMap or Secret in the volume that a container can see."""
        items = source.get("items")
        if not items:
            return self.sub_paths
        shown = frozenset(str(i.get("key")) for i in items if self._show(str(i.get("path"))))
        return shown or KEYS_ALL

    def _show(self, path: str) -> bool:
        paths = self.sub_paths
        return paths is None or any(f"{path}/".startswith(f"{below}/") for below in paths)


@dataclass(frozen=True)
class _Place:
    """A place that puts a ConfigMap or Secret into a volume."""

    what: str
    path: str
    mounts: _Mounts

    def use(self, kind: str, name: object, source: Json) -> Iterator[Use]:
        if name:
            yield Use(
                kind,
                str(name),
                self.mounts.keys(source),
                self.what,
                self.path,
                self.mounts.containers,
                self.mounts.reach,
                bool(source.get("optional")),
            )


_WHOLE = "."


def _mounts(pod_spec: Mapping[str, Any], volume: str) -> _Mounts:
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
    return _Mounts(frozenset(names), reach, None if whole else frozenset(sub_paths))


def _volumes(pod_spec: Mapping[str, Any]) -> Iterator[Use]:
    for index, volume in enumerate(pod_spec.get("volumes") or ()):
        name, path = str(volume.get("name")), f"volumes[{index}]"
        mounts = _mounts(pod_spec, name)
        yield from _content_volume(volume, f"volume {name}", path, mounts)
        yield from _projected(volume, f"projected volume {name}", path, mounts)
        yield from _mounting_secret(volume, f"volume {name}", path)


def _content_volume(volume: Json, what: str, path: str, mounts: _Mounts) -> Iterator[Use]:
    config_map, secret = volume.get("configMap") or {}, volume.get("secret") or {}
    place = _Place(what, f"{path}.configMap", mounts)
    yield from place.use("ConfigMap", config_map.get("name"), config_map)
    place = _Place(what, f"{path}.secret", mounts)
    yield from place.use("Secret", secret.get("secretName"), secret)


def _projected(volume: Json, what: str, path: str, mounts: _Mounts) -> Iterator[Use]:
    sources: Iterable[Json] = (volume.get("projected") or {}).get("sources") or ()
    for index, projection in enumerate(sources):
        for field, kind in (("configMap", "ConfigMap"), ("secret", "Secret")):
            source = projection.get(field) or {}
            place = _Place(what, f"{path}.projected.sources[{index}].{field}", mounts)
            yield from place.use(kind, source.get("name"), source)


def _mounting_secret(volume: Json, what: str, path: str) -> Iterator[Use]:
    for plugin, field_path in _VOLUME_SECRETS.items():
        name: Any = volume.get(plugin)
        for field in field_path:
            name = (name or {}).get(field)
        if name:
            yield Use(
                "Secret",
                str(name),
                KEYS_ALL,
                f"{what}, mounted with it by {plugin},",
                ".".join((path, plugin, *field_path)),
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
                f"imagePullSecrets[{index}]",
                frozenset(),
                Reach.CONTAINER,
            )
