# SPDX-License-Identifier: Apache-2.0
"""What a container gets from ConfigMaps and Secrets, for each kind of reference."""

from __future__ import annotations

from typing import Any

import pytest

from container_update.emulator.kubernetes.kubelet.configuration import (
    MissingConfiguration,
    environment,
    mounted_files,
)
from tests.internals.core import Json

STORED: dict[tuple[str, str], Json] = {
    ("configmaps", "c"): {"data": {"a": "1", "b": "2"}, "binaryData": {"raw": "/w=="}},
    ("secrets", "s"): {"data": {"p": "cGFzcw==", "q": "cQ=="}},
}


def _lookup(resource: str, namespace: str, name: str) -> Json | None:
    assert namespace == "ns"
    return STORED.get((resource, name))


def _pod(**spec: Any) -> Json:
    metadata = {"name": "pod", "namespace": "ns", "uid": "u", "labels": {"app": "x"}}
    return {"metadata": metadata, "spec": spec}


def _key(kind: str, name: str, key: str, **more: Any) -> Json:
    return {"name": "V", "valueFrom": {f"{kind}KeyRef": {"name": name, "key": key, **more}}}


ENVIRONMENTS: list[tuple[str, Json, dict[str, str]]] = [
    ("a value", {"env": [{"name": "V", "value": "x"}]}, {"V": "x"}),
    ("a variable in a value", {"env": [{"name": "A", "value": "1"},
                                       {"name": "V", "value": "$(A)-$(B)-$$(A)"}]},
     {"A": "1", "V": "1-$(B)-$(A)"}),
    ("a key of a ConfigMap", {"env": [_key("configMap", "c", "a")]}, {"V": "1"}),
    ("a key of a Secret", {"env": [_key("secret", "s", "p")]}, {"V": "pass"}),
    ("an optional key", {"env": [_key("configMap", "c", "no", optional=True)]}, {}),
    ("a key of an optional object", {"env": [_key("secret", "no", "k", optional=True)]}, {}),
    ("all keys of a Secret", {"envFrom": [{"secretRef": {"name": "s"}}]}, {"p": "pass", "q": "q"}),
    ("all keys with a prefix", {"envFrom": [{"prefix": "X_", "secretRef": {"name": "s"}}]},
     {"X_p": "pass", "X_q": "q"}),
    ("an optional source", {"envFrom": [{"configMapRef": {"name": "no", "optional": True}}]}, {}),
    ("env over envFrom", {"envFrom": [{"secretRef": {"name": "s"}}],
                          "env": [{"name": "p", "value": "mine"}]}, {"p": "mine", "q": "q"}),
    ("a field of the pod",
     {"env": [{"name": "V", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
     {"V": "pod"}),
    ("a label of the pod",
     {"env": [{"name": "V", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}}]},
     {"V": "x"}),
]  # fmt: skip


@pytest.mark.parametrize(("_name", "container", "expected"), ENVIRONMENTS)
def test_the_environment_is_resolved(_name: str, container: Json, expected: dict[str, str]) -> None:
    assert environment(_pod(), container, _lookup) == expected


MISSING: list[tuple[Json, str]] = [
    ({"env": [_key("configMap", "no", "k")]}, 'configmap "no" not found'),
    ({"env": [_key("secret", "no", "k")]}, 'secret "no" not found'),
    ({"env": [_key("secret", "s", "no")]}, "couldn't find key no in Secret ns/s"),
    ({"envFrom": [{"configMapRef": {"name": "no"}}]}, 'configmap "no" not found'),
    ({"envFrom": [{"secretRef": {"name": "no"}}]}, 'secret "no" not found'),
]


@pytest.mark.parametrize(("container", "message"), MISSING)
def test_what_is_missing_and_required_is_named(container: Json, message: str) -> None:
    with pytest.raises(MissingConfiguration, match=message):
        environment(_pod(), container, _lookup)


ALL_OF_C = {"/m/a": b"1", "/m/b": b"2", "/m/raw": b"\xff"}
VOLUMES: list[tuple[str, Json, Json, dict[str, bytes]]] = [
    ("a ConfigMap", {"configMap": {"name": "c"}}, {}, ALL_OF_C),
    ("items of a ConfigMap",
     {"configMap": {"name": "c", "items": [{"key": "a", "path": "d/f"}]}}, {}, {"/m/d/f": b"1"}),
    ("a Secret", {"secret": {"secretName": "s"}}, {}, {"/m/p": b"pass", "/m/q": b"q"}),
    ("an optional Secret", {"secret": {"secretName": "no", "optional": True}}, {}, {}),
    ("an optional item",
     {"configMap": {"name": "c", "optional": True, "items": [{"key": "no", "path": "f"}]}}, {}, {}),
    ("a projection of both",
     {"projected": {"sources": [
         {"configMap": {"name": "c", "items": [{"key": "a", "path": "a"}]}},
         {"secret": {"name": "s", "items": [{"key": "p", "path": "p"}]}}]}}, {},
     {"/m/a": b"1", "/m/p": b"pass"}),
    ("a projected field", {"projected": {"sources": [{"downwardAPI": {"items": [
        {"path": "ns", "fieldRef": {"fieldPath": "metadata.namespace"}}]}}]}}, {},
     {"/m/ns": b"ns"}),
    ("no configuration at all", {"emptyDir": {}}, {}, {}),
    ("a file by its subPath", {"configMap": {"name": "c"}}, {"subPath": "a"}, {"/m": b"1"}),
    ("a folder by its subPath",
     {"configMap": {"name": "c", "items": [{"key": "a", "path": "d/f"}]}}, {"subPath": "d"},
     {"/m/f": b"1"}),
]  # fmt: skip


@pytest.mark.parametrize(("_name", "volume", "mount", "expected"), VOLUMES)
def test_volumes_show_their_files(
    _name: str, volume: Json, mount: Json, expected: dict[str, bytes]
) -> None:
    pod = _pod(volumes=[{"name": "v", **volume}])
    container = {"volumeMounts": [{"name": "v", "mountPath": "/m", **mount}]}
    fixed = "subPath" in mount
    assert mounted_files(pod, container, _lookup, fixed=fixed) == expected
    assert mounted_files(pod, container, _lookup, fixed=not fixed) == {}


MISSING_IN_VOLUMES: list[tuple[Json, str]] = [
    ({"configMap": {"name": "no"}}, 'configmap "no" not found'),
    ({"secret": {"secretName": "no"}}, 'secret "no" not found'),
    ({"configMap": {"name": "c", "items": [{"key": "no", "path": "f"}]}},
     "references non-existent config key: no"),
    ({"projected": {"sources": [{"secret": {"name": "no"}}]}}, 'secret "no" not found'),
]  # fmt: skip


@pytest.mark.parametrize(("volume", "message"), MISSING_IN_VOLUMES)
def test_a_volume_without_its_source_is_named(volume: Json, message: str) -> None:
    pod = _pod(volumes=[{"name": "v", **volume}])
    container = {"volumeMounts": [{"name": "v", "mountPath": "/m"}]}
    with pytest.raises(MissingConfiguration, match=message):
        mounted_files(pod, container, _lookup, fixed=False)
