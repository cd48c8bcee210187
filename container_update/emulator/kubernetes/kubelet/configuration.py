# SPDX-License-Identifier: Apache-2.0
"""The configuration that a container sees: its environment and its mounted files.

Pure, except for the lookup function. A missing object or key is left out if its reference is
optional; otherwise it is a :class:`MissingConfiguration` with the kubelet's message.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.rules.admission import Lookup

CONFIG_RESOURCES = {"ConfigMap": "configmaps", "Secret": "secrets"}
_REFERENCES = {
    **dict.fromkeys(("configMap", "configMapRef", "configMapKeyRef"), "configmaps"),
    **dict.fromkeys(("secret", "secretRef", "secretKeyRef"), "secrets"),
}
"""The fields that refer to one."""
_VARIABLE = re.compile(r"\$(\$|\(([^)]*)\))")
_TOKEN = b"emulated-token"


class MissingConfiguration(Exception):  # noqa: N818 - the kubelet waits for it
    """A required ConfigMap, Secret or key does not exist (yet)."""


def container_of(pod: Json, name: str) -> Json:
    """Return the pod's container or init container of that name."""
    spec = pod["spec"]
    containers: list[Json] = [*(spec.get("initContainers") or []), *spec["containers"]]
    return next(entry for entry in containers if entry["name"] == name)


def references(pod: Json) -> set[tuple[str, str]]:
    """Return the ConfigMaps and Secrets that the pod's containers and volumes name, by resource."""
    spec = pod["spec"]
    containers = [*(spec.get("initContainers") or []), *spec["containers"]]
    variables = [entry for each in containers for entry in each.get("env") or []]
    volumes = spec.get("volumes") or []
    sources: list[Json] = [
        *(entry for each in containers for entry in each.get("envFrom") or []),
        *(entry.get("valueFrom") or {} for entry in variables),
        *(entry for each in volumes for entry in (each.get("projected") or {}).get("sources", [])),
        *volumes,
    ]
    return {
        (resource, _name_in(source[field] or {}))
        for source in sources
        for field, resource in _REFERENCES.items()
        if field in source
    }


def environment(pod: Json, container: Json, lookup: Lookup) -> dict[str, str]:
    """Return the container's environment variables.

    :raises MissingConfiguration: a required object or key does not exist.
    """
    env: dict[str, str] = {}
    namespace = pod["metadata"]["namespace"]
    for source in container.get("envFrom") or []:
        prefix = source.get("prefix", "")
        for kind, field in (("ConfigMap", "configMapRef"), ("Secret", "secretRef")):
            if field in source:
                content = _content(kind, source[field], namespace, lookup)
                env.update({prefix + key: value.decode() for key, value in content.items()})
    for entry in container.get("env") or []:
        value = _value(pod, entry, env, lookup)
        if value is not None:
            env[entry["name"]] = value
    return env


def mounted_files(pod: Json, container: Json, lookup: Lookup, *, fixed: bool) -> dict[str, bytes]:
    """Return the content of the files in the container's volumes, by path.

    :param fixed: True: only files mounted with a subPath, which are never refreshed; False: only
        the others.
    :raises MissingConfiguration: a required object or key does not exist.
    """
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or []}
    files: dict[str, bytes] = {}
    for mount in container.get("volumeMounts") or []:
        part = mount.get("subPath") or mount.get("subPathExpr") or ""
        if bool(part) is not fixed or mount["name"] not in volumes:
            continue
        for path, data in volume_files(pod, volumes[mount["name"]], lookup).items():
            mounted = _mounted_path(mount["mountPath"], part, path)
            if mounted is not None:
                files[mounted] = data
    return files


def volume_files(pod: Json, volume: Json, lookup: Lookup) -> dict[str, bytes]:
    """Return the content of a volume's files by relative path; empty without configuration.

    :raises MissingConfiguration: a required object or key does not exist.
    """
    sources = (volume.get("projected") or {}).get("sources") or [volume]
    files: dict[str, bytes] = {}
    for source in sources:
        files.update(_source_files(pod, source, lookup))
    return files


def _source_files(pod: Json, source: Json, lookup: Lookup) -> dict[str, bytes]:
    namespace = pod["metadata"]["namespace"]
    for kind, field in (("ConfigMap", "configMap"), ("Secret", "secret")):
        if field in source:
            reference = source[field] or {}
            content = _content(kind, reference, namespace, lookup)
            return dict(_items(reference, content))
    if "downwardAPI" in source:
        items = (source["downwardAPI"] or {}).get("items") or []
        return {item["path"]: _field_of(pod, item.get("fieldRef") or {}).encode() for item in items}
    if "serviceAccountToken" in source:
        return {source["serviceAccountToken"].get("path", "token"): _TOKEN}
    return {}


def _items(reference: Json, content: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    if not reference.get("items"):
        yield from content.items()
        return
    for item in reference["items"]:
        if item["key"] in content:
            yield item["path"], content[item["key"]]
        elif not reference.get("optional"):
            raise MissingConfiguration(f"references non-existent config key: {item['key']}")


def _value(pod: Json, entry: Json, env: Mapping[str, str], lookup: Lookup) -> str | None:
    source = entry.get("valueFrom")
    if not source:
        return _expand(entry.get("value", ""), env)
    if "fieldRef" in source:
        return _field_of(pod, source["fieldRef"])
    for kind, field in (("ConfigMap", "configMapKeyRef"), ("Secret", "secretKeyRef")):
        if field in source:
            return _key(kind, source[field], pod["metadata"]["namespace"], lookup)
    return "0"


def _key(kind: str, reference: Json, namespace: str, lookup: Lookup) -> str | None:
    content = _content(kind, reference, namespace, lookup)
    key = reference["key"]
    if key in content:
        return content[key].decode()
    if reference.get("optional"):
        return None
    raise MissingConfiguration(f"couldn't find key {key} in {kind} {namespace}/{reference['name']}")


def _content(kind: str, reference: Json, namespace: str, lookup: Lookup) -> dict[str, bytes]:
    """Return all data of the object that is referred to."""
    name = _name_in(reference)
    obj = lookup(CONFIG_RESOURCES[kind], namespace, name)
    if obj is None:
        if reference.get("optional"):
            return {}
        raise MissingConfiguration(f'{kind.lower()} "{name}" not found')
    data = obj.get("data") or {}
    if kind == "Secret":
        return {key: base64.b64decode(value) for key, value in data.items()}
    binary = obj.get("binaryData") or {}
    content = {key: value.encode() for key, value in data.items()}
    return content | {key: base64.b64decode(value) for key, value in binary.items()}


def _name_in(reference: Json) -> str:
    return str(reference.get("name") or reference.get("secretName", ""))


def _expand(value: str, env: Mapping[str, str]) -> str:
    """Replace ``$(NAME)`` if the variable is known, and ``$$`` by a dollar sign."""

    def replacement(match: re.Match[str]) -> str:
        if match[1] == "$":
            return "$"
        return env.get(match[2], match[0])

    return _VARIABLE.sub(replacement, value)


def _field_of(pod: Json, reference: Json) -> str:
    """Return the pod's field that a downward API reference names; '' if it has none."""
    path, _, key = reference.get("fieldPath", "").partition("['")
    value: object = pod
    for step in path.split("."):
        value = value.get(step, {}) if isinstance(value, dict) else {}
    if key and isinstance(value, dict):
        value = value.get(key.removesuffix("']"), "")
    if isinstance(value, dict):
        return "\n".join(f'{name}="{text}"' for name, text in value.items())
    return str(value)


def _mounted_path(mount_path: str, part: str, path: str) -> str | None:
    """Return the path of a volume's file in the container; None if the subPath excludes it."""
    if not part:
        return f"{mount_path.rstrip('/')}/{path}"
    if path == part:
        return mount_path
    if path.startswith(part.rstrip("/") + "/"):
        return f"{mount_path.rstrip('/')}/{path[len(part.rstrip('/')) + 1 :]}"
    return None
