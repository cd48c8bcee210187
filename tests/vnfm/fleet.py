# SPDX-License-Identifier: Apache-2.0
"""Many instances of a small VNF, each in a namespace of its own, and a check of their state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.internals.core import Collection, KubernetesCluster, ObjectKey
from tests.tacker.operator import ClusterAccess
from tests.vnfm import vnfs
from tests.vnfm.client import Client


@dataclass(frozen=True)
class Fleet:
    """The instances by their paths, and the VNFDs of the two versions of their package."""

    versions: dict[str, str]
    """VNFD id to version."""
    paths: tuple[str, ...]
    namespaces: dict[str, str]
    """Path to namespace."""

    def other(self, vnfd_id: str) -> str:
        """Return the VNFD of the other version."""
        (other_vnfd,) = set(self.versions) - {vnfd_id}
        return other_vnfd


def launch(
    client: Client,
    cluster: ClusterAccess,
    kubernetes: KubernetesCluster,
    folder: Path,
    count: int,
    *,
    images: Sequence[str] = vnfs.IMAGES,
    prefix: str = "",
) -> Fleet:
    """Onboard both versions, create and instantiate the instances, all at once.

    :param images: those of the two versions.
    :param prefix: of the namespaces' names.
    """
    versions = {}
    for version, image in zip(("1.0", "2.0"), images, strict=True):
        deployment = vnfs.DEPLOYMENT.replace(vnfs.IMAGE, image)
        driver = vnfs.ours(client.api)
        package, vnfd_id = vnfs.package(folder, version, driver, deployment=deployment)
        assert client.onboard(package) == vnfd_id
        versions[vnfd_id] = version
    (old, _) = versions
    namespaces, operations = {}, []
    for number in range(count):
        path, namespace = client.create(old), f"{prefix}{client.api}-{number}"
        kubernetes.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        )
        request = vnfs.instantiation(client.vims(cluster), namespace)
        operations.append(client.begin("POST", f"{path}/instantiate", request))
        namespaces[path] = namespace
    for operation in operations:
        ended_operation = client.settled(operation)
        assert ended_operation["operationState"] == "COMPLETED", ended_operation["error"]
    return Fleet(versions, tuple(namespaces), namespaces)


def check(
    client: Client, fleet: Fleet, kubernetes: KubernetesCluster, paths: Sequence[str] = ()
) -> dict[str, str]:
    """Check that record and cluster agree for each instance; return the version by path."""
    versions = {}
    for path in paths or fleet.paths:
        record = client.call("GET", path)
        version, namespace = fleet.versions[record["vnfdId"]], fleet.namespaces[path]
        front = _get(kubernetes, "apps", "Deployment", namespace, "front")
        settings = _get(kubernetes, "", "ConfigMap", namespace, "settings")
        image = front["spec"]["template"]["spec"]["containers"][0]["image"]
        assert image.endswith(f":{version}"), f"{path}: {image}, and the record says {version}"
        assert settings["data"] == {"level": version}, path
        pods = kubernetes.list(Collection("", "Pod", namespace)).items
        names = {
            pod["metadata"]["name"] for pod in pods if not pod["metadata"].get("deletionTimestamp")
        }
        assert _recorded(record) == names, path
        versions[path] = version
    return versions


def _get(kubernetes: KubernetesCluster, group: str, kind: str, *name_path: str) -> Any:
    live = kubernetes.get(ObjectKey(group, kind, *name_path))
    assert live is not None, f"{kind} {name_path}"
    return live


def _recorded(record: dict[str, Any]) -> set[str]:
    return {
        each["computeResource"]["resourceId"]
        for each in record["instantiatedVnfInfo"]["vnfcResourceInfo"]
    }
