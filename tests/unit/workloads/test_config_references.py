# SPDX-License-Identifier: Apache-2.0
"""Every path by which a pod spec names a ConfigMap or Secret, one case each, with key precision."""

from __future__ import annotations

import re

import pytest

from container_update.model.objects import FieldPath, get_at
from container_update.workloads.config_references import KEYS_ALL, Reach, Use, uses
from tests.unit.build import yaml_of

VOLUME, CONTAINER, POD = Reach.VOLUME, Reach.CONTAINER, Reach.POD


def keys(*names: str) -> frozenset[str]:
    return frozenset(names)


def at(place: str) -> FieldPath:
    """Return the path of a place as people write it: 'containers[0].env[1]'."""
    return tuple(int(step) if step.isdigit() else step for step in re.findall(r"\w+", place))


def plugin(volume: str, *path: str) -> tuple[str, list[Use]]:
    """A volume that mounts with a Secret: only a new pod can use the new one."""
    what = f"volume v, mounted with it by {path[0]},"
    where = ("volumes", 0, *path)
    spec = f"""
        volumes: [{{name: v, {volume}}}]
        containers: [{{name: c, volumeMounts: [{{name: v, mountPath: /v}}]}}]
    """
    return spec, [Use("Secret", "s", KEYS_ALL, what, where, keys(), POD)]


ENVIRONMENT = {
    "a variable from a key of a ConfigMap": (
        """
        containers:
        - name: c
          env: [{name: E, valueFrom: {configMapKeyRef: {name: m, key: k}}}]
        """,
        [
            Use(
                "ConfigMap", "m", keys("k"), "env E of container c",
                at("containers[0].env[0].valueFrom.configMapKeyRef"), keys("c"), CONTAINER,
            )
        ],
    ),
    "a variable from a key of a Secret": (
        """
        containers:
        - name: b
        - name: c
          env: [{name: A, value: x}, {name: E, valueFrom: {secretKeyRef: {name: s, key: k}}}]
        """,
        [
            Use(
                "Secret", "s", keys("k"), "env E of container c",
                at("containers[1].env[1].valueFrom.secretKeyRef"), keys("c"), CONTAINER,
            )
        ],
    ),
    "a variable that may be missing": (
        """
        containers:
        - name: c
          env: [{name: E, valueFrom: {configMapKeyRef: {name: m, key: k, optional: true}}}]
        """,
        [
            Use(
                "ConfigMap", "m", keys("k"), "env E of container c",
                at("containers[0].env[0].valueFrom.configMapKeyRef"), keys("c"), CONTAINER, True,
            )
        ],
    ),
    "envFrom a ConfigMap and from a Secret of the same name, all keys": (
        """
        containers:
        - name: c
          envFrom:
          - {prefix: X_, configMapRef: {name: same}}
          - {secretRef: {name: same, optional: true}}
        """,
        [
            Use(
                "ConfigMap", "same", KEYS_ALL, "envFrom of container c",
                at("containers[0].envFrom[0].configMapRef"), keys("c"), CONTAINER,
            ),
            Use(
                "Secret", "same", KEYS_ALL, "envFrom of container c",
                at("containers[0].envFrom[1].secretRef"), keys("c"), CONTAINER, True,
            ),
        ],
    ),
    "an init container's environment, which only a new pod reads": (
        """
        initContainers:
        - name: i
          env: [{name: E, valueFrom: {secretKeyRef: {name: s, key: k}}}]
          envFrom: [{configMapRef: {name: m}}]
        """,
        [
            Use(
                "Secret", "s", keys("k"), "env E of init container i",
                at("initContainers[0].env[0].valueFrom.secretKeyRef"), keys("i"), POD,
            ),
            Use(
                "ConfigMap", "m", KEYS_ALL, "envFrom of init container i",
                at("initContainers[0].envFrom[0].configMapRef"), keys("i"), POD,
            ),
        ],
    ),
    "a sidecar's environment, which is read when the sidecar starts again": (
        """
        initContainers:
        - {name: i, restartPolicy: Always, envFrom: [{configMapRef: {name: m}}]}
        """,
        [
            Use(
                "ConfigMap", "m", KEYS_ALL, "envFrom of init container i",
                at("initContainers[0].envFrom[0].configMapRef"), keys("i"), CONTAINER,
            )
        ],
    ),
    "an ephemeral container's environment": (
        """
        ephemeralContainers:
        - {name: e, envFrom: [{secretRef: {name: s}}]}
        """,
        [
            Use(
                "Secret", "s", KEYS_ALL, "envFrom of ephemeral container e",
                at("ephemeralContainers[0].envFrom[0].secretRef"), keys("e"), POD,
            )
        ],
    ),
}  # fmt: skip


def volume_use(
    kind: str,
    used: frozenset[str] | None,
    where: FieldPath,
    reach: Reach = VOLUME,
    *,
    mounted_by: str = "c",
    projected: bool = False,
    optional: bool = False,
) -> Use:
    name = "m" if kind == "ConfigMap" else "s"
    what = "projected volume v" if projected else "volume v"
    return Use(kind, name, used, what, where, keys(*mounted_by.split()), reach, optional)


MOUNTED = "containers: [{name: c, volumeMounts: [{name: v, mountPath: /v}]}]"

VOLUMES = {
    "a ConfigMap as a volume, all keys": (
        f"volumes: [{{name: v, configMap: {{name: m}}}}]\n{MOUNTED}",
        [volume_use("ConfigMap", KEYS_ALL, at("volumes[0].configMap"))],
    ),
    "a ConfigMap as a volume, only its items": (
        "volumes: [{name: v, configMap: {name: m, optional: true,"
        f" items: [{{key: k, path: p}}, {{key: l, path: q}}]}}}}]\n{MOUNTED}",
        [volume_use("ConfigMap", keys("k", "l"), at("volumes[0].configMap"), optional=True)],
    ),
    "a Secret as a volume, all keys, by its own field for the name": (
        f"volumes: [{{name: o}}, {{name: v, secret: {{secretName: s}}}}]\n{MOUNTED}",
        [volume_use("Secret", KEYS_ALL, at("volumes[1].secret"))],
    ),
    "a Secret as a volume, only its items": (
        "volumes: [{name: v, secret: {secretName: s, items: [{key: k, path: p}],"
        f" optional: true}}}}]\n{MOUNTED}",
        [volume_use("Secret", keys("k"), at("volumes[0].secret"), optional=True)],
    ),
    "a projected volume of a ConfigMap, a Secret's items, a token and the downward API": (
        f"""
volumes:
- name: v
  projected:
    sources:
    - serviceAccountToken: {{path: token}}
    - configMap: {{name: m}}
    - secret: {{name: s, items: [{{key: k, path: p}}], optional: true}}
    - downwardAPI: {{items: []}}
{MOUNTED}
""",
        [
            volume_use(
                "ConfigMap", KEYS_ALL, at("volumes[0].projected.sources[1].configMap"),
                projected=True,
            ),
            volume_use(
                "Secret", keys("k"), at("volumes[0].projected.sources[2].secret"), projected=True,
                optional=True,
            ),
        ],
    ),
    "a volume that nobody mounts": (
        """
        volumes: [{name: v, configMap: {name: m}}]
        containers: [{name: c, volumeMounts: [{name: other, mountPath: /o}]}]
        """,
        [volume_use("ConfigMap", KEYS_ALL, at("volumes[0].configMap"), mounted_by="")],
    ),
    "a volume of two containers": (
        """
        volumes: [{name: v, configMap: {name: m}}]
        containers:
        - {name: c, volumeMounts: [{name: v, mountPath: /v}]}
        - {name: d, volumeMounts: [{name: v, mountPath: /v}]}
        """,
        [volume_use("ConfigMap", KEYS_ALL, at("volumes[0].configMap"), mounted_by="c d")],
    ),
    "a subPath: only that key, and the kubelet does not refresh it": (
        """
        volumes: [{name: v, configMap: {name: m}}]
        containers:
        - {name: c, volumeMounts: [{name: v, mountPath: /v/k, subPath: k}]}
        """,
        [volume_use("ConfigMap", keys("k"), at("volumes[0].configMap"), CONTAINER)],
    ),
    "a subPath of a projected volume's items": (
        """
        volumes:
        - name: v
          projected:
            sources: [{configMap: {name: m, items: [{key: k, path: d/f}, {key: l, path: g}]}}]
        containers:
        - {name: c, volumeMounts: [{name: v, mountPath: /v/f, subPath: d}]}
        """,
        [
            volume_use(
                "ConfigMap", keys("k"), at("volumes[0].projected.sources[0].configMap"), CONTAINER,
                projected=True,
            )
        ],
    ),
    "a subPath of an item in a folder, by the path it has in the volume": (
        """
        volumes:
        - name: v
          secret: {secretName: s, items: [{key: k, path: d/f}, {key: l, path: d/g}]}
        containers:
        - {name: c, volumeMounts: [{name: v, mountPath: /v/f, subPath: ./d/f}]}
        """,
        [volume_use("Secret", keys("k"), at("volumes[0].secret"), CONTAINER)],
    ),
    "a subPath is a whole name: no item whose path merely begins with it": (
        """
        volumes:
        - name: v
          configMap: {name: m, items: [{key: k, path: app}, {key: l, path: application}]}
        containers:
        - {name: c, volumeMounts: [{name: v, mountPath: /v/app, subPath: app}]}
        """,
        [volume_use("ConfigMap", keys("k"), at("volumes[0].configMap"), CONTAINER)],
    ),
    "two subPaths of two containers": (
        """
        volumes: [{name: v, configMap: {name: m}}]
        containers:
        - {name: c, volumeMounts: [{name: v, mountPath: /v/k, subPath: k}]}
        - {name: d, volumeMounts: [{name: v, mountPath: /v/l, subPath: l}]}
        """,
        [
            volume_use(
                "ConfigMap", keys("k", "l"), at("volumes[0].configMap"), CONTAINER, mounted_by="c d"
            )
        ],
    ),
    "a subPath beside a mount of the whole volume": (
        """
        volumes: [{name: v, configMap: {name: m}}]
        containers:
        - name: c
          volumeMounts:
          - {name: other, mountPath: /o}
          - {name: v, mountPath: /v/k, subPath: k}
          - {name: v, mountPath: /w}
        """,
        [volume_use("ConfigMap", KEYS_ALL, at("volumes[0].configMap"), CONTAINER)],
    ),
    "a subPath that is the whole volume": (
        """
        volumes: [{name: v, configMap: {name: m}}]
        containers: [{name: c, volumeMounts: [{name: v, mountPath: /v, subPath: ./}]}]
        """,
        [volume_use("ConfigMap", KEYS_ALL, at("volumes[0].configMap"), CONTAINER)],
    ),
    "a subPath that names no item may be any key": (
        """
        volumes: [{name: v, configMap: {name: m, items: [{key: k, path: f}]}}]
        containers: [{name: c, volumeMounts: [{name: v, mountPath: /v, subPath: g}]}]
        """,
        [volume_use("ConfigMap", KEYS_ALL, at("volumes[0].configMap"), CONTAINER)],
    ),
    "a subPath that is an expression may be any key": (
        """
        volumes: [{name: v, configMap: {name: m}}]
        containers:
        - {name: c, volumeMounts: [{name: v, mountPath: /v, subPathExpr: $(E)}]}
        """,
        [volume_use("ConfigMap", KEYS_ALL, at("volumes[0].configMap"), CONTAINER)],
    ),
    "an init container that mounts the volume needs a new pod": (
        """
        volumes: [{name: v, configMap: {name: m}}]
        initContainers: [{name: i, volumeMounts: [{name: v, mountPath: /v}]}]
        containers:
        - {name: c, volumeMounts: [{name: v, mountPath: /v/k, subPath: k}]}
        """,
        [volume_use("ConfigMap", KEYS_ALL, at("volumes[0].configMap"), POD, mounted_by="c i")],
    ),
    "a sidecar that mounts the volume has it refreshed": (
        """
        volumes: [{name: v, configMap: {name: m}}]
        initContainers:
        - {name: i, restartPolicy: Always, volumeMounts: [{name: v, mountPath: /v}]}
        """,
        [volume_use("ConfigMap", KEYS_ALL, at("volumes[0].configMap"), mounted_by="i")],
    ),
    "an ephemeral container that mounts the volume": (
        """
        volumes: [{name: v, configMap: {name: m}}]
        ephemeralContainers: [{name: e, volumeMounts: [{name: v, mountPath: /v}]}]
        """,
        [volume_use("ConfigMap", KEYS_ALL, at("volumes[0].configMap"), POD, mounted_by="e")],
    ),
    "imagePullSecrets": (
        "imagePullSecrets: [{}, {name: s}]",
        [
            Use(
                "Secret", "s", KEYS_ALL, "imagePullSecrets of the pod", at("imagePullSecrets[1]"),
                keys(), CONTAINER,
            )
        ],
    ),
    "azureFile": plugin("azureFile: {secretName: s}", "azureFile", "secretName"),
    "cephfs": plugin("cephfs: {secretRef: {name: s}}", "cephfs", "secretRef", "name"),
    "cinder": plugin("cinder: {secretRef: {name: s}}", "cinder", "secretRef", "name"),
    "a CSI driver": plugin(
        "csi: {driver: d, nodePublishSecretRef: {name: s}}", "csi", "nodePublishSecretRef", "name"
    ),
    "flexVolume": plugin("flexVolume: {secretRef: {name: s}}", "flexVolume", "secretRef", "name"),
    "iscsi": plugin("iscsi: {secretRef: {name: s}}", "iscsi", "secretRef", "name"),
    "rbd": plugin("rbd: {secretRef: {name: s}}", "rbd", "secretRef", "name"),
    "scaleIO": plugin("scaleIO: {secretRef: {name: s}}", "scaleIO", "secretRef", "name"),
    "storageos": plugin("storageos: {secretRef: {name: s}}", "storageos", "secretRef", "name"),
}  # fmt: skip

NOTHING = {
    "an empty spec": "{}",
    "null where a list may be": (
        "{containers: null, initContainers: null, volumes: null, imagePullSecrets: null}"
    ),
    "a container without environment": "containers: [{name: c, env: null, envFrom: null}]",
    "a variable from a field of the pod": (
        "containers: [{name: c, env: [{name: E, valueFrom: {fieldRef: {fieldPath: spec}}}]}]"
    ),
    "references without a name": (
        "{containers: [{name: c, envFrom: [{configMapRef: {}}, {secretRef: {optional: true}}],"
        " env: [{name: E, valueFrom: {secretKeyRef: {key: k}}}]}],"
        " volumes: [{name: v, configMap: {optional: true}}, {name: w, rbd: {secretRef: {}}}]}"
    ),
    "volumes of other kinds": (
        "volumes: [{name: a, emptyDir: {}}, {name: b, csi: {driver: d}},"
        " {name: c, azureFile: {shareName: x}}, {name: d, projected: {sources: null}},"
        " {name: e, iscsi: {secretRef: null}}]"
    ),
}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [pytest.param(*case, id=name) for name, case in {**ENVIRONMENT, **VOLUMES}.items()],
)
def test_a_use_is_found_with_its_keys_and_its_place(spec: str, expected: list[Use]) -> None:
    assert list(uses(yaml_of(spec))) == expected


@pytest.mark.parametrize("spec", NOTHING.values(), ids=NOTHING.keys())
def test_what_names_no_configuration_is_no_use(spec: str) -> None:
    assert uses(yaml_of(spec)) == ()


def test_a_field_path_leads_to_the_place_it_names() -> None:
    spec, expected = ENVIRONMENT["a variable from a key of a Secret"]
    assert get_at(yaml_of(spec), expected[0].path) == {"name": "s", "key": "k"}
