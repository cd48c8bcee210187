# SPDX-License-Identifier: Apache-2.0
"""A v2 Tacker that has an instance of the small VNF in the embedded cluster."""

from __future__ import annotations

import io
import pickle
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from container_update import Options, connect, install
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.internals.core import Collection, KubernetesCluster, ObjectKey, v2_process
from tests.tacker.operator import kubernetes_vim
from tests.vnfm import vnfs

Json = dict[str, Any]
FRONT = ObjectKey("apps", "Deployment", "default", "front")


class Coerced(dict[str, Any]):
    """What comes from Tacker's database, as a retry and a rollback get it."""


@dataclass
class Tacker:
    """What Tacker has of an instance of the small VNF."""

    packages: dict[str, Path]
    vnfd_ids: dict[str, str]
    instance: Json
    cluster: KubernetesCluster
    kept: Json

    def run(self, operation: str, request: Json, package: str, **more: Any) -> str:
        """Run the script as Tacker does; return why it failed. Its answer is taken over."""
        script = {
            "operation": operation,
            "request": request,
            "vnf_instance": self.instance,
            "tmp_csar_dir": str(self.packages[package]),
            "user_script_err_handling_data": Coerced(self.kept),
            **more,
        }
        output, reason = v2_process.answer(io.BytesIO(pickle.dumps(script)))
        self.instance = output.get("vnf_instance", self.instance)
        self.kept.update(output.get("user_script_err_handling_data") or {})
        return reason

    def start(self, **params: Any) -> str:
        """Begin a RollingUpdate to the second package."""
        return self.run("change_current_package_start", self.rolling(**params), "2.0")

    def rolling(self, **params: Any) -> Json:
        given = {
            "upgrade_type": "RollingUpdate",
            "vdu_params": [{"vdu_id": "VDU1"}],
            "lcm-kubernetes-def-files": ["Files/kubernetes/front.yaml"],
            **params,
        }
        return {"vnfdId": self.vnfd_ids["2.0"], "additionalParams": given}

    def pods(self) -> list[str]:
        listing = self.cluster.list(Collection("", "Pod", "default"))
        return sorted(
            pod["metadata"]["name"]
            for pod in listing.items
            if not pod["metadata"].get("deletionTimestamp")
        )

    def recorded(self) -> list[str]:
        entries = self.instance["instantiatedVnfInfo"]["vnfcResourceInfo"]
        return sorted(entry["id"] for entry in entries)


def manifests(version: str) -> dict[str, str]:
    texts = (vnfs.CONFIG.format(version=version), vnfs.DEPLOYMENT.format(version=version))
    return dict(zip(vnfs.DEF_FILES, texts, strict=True))


def unpacked(folder: Path, version: str, files: Mapping[str, str]) -> tuple[Path, str]:
    """Write the folder of a package with these manifests and scripts; its VNFD's id beside it."""
    folder.mkdir()
    zipped, vnfd_id = vnfs.package(folder.parent, version, vnfs.ours("v2"), files)
    with zipfile.ZipFile(zipped) as archive:
        archive.extractall(folder)
    return folder, vnfd_id


@contextmanager
def running(
    embedded: EmbeddedCluster, folder: Path, scripts: Mapping[str, str] | None = None
) -> Iterator[Tacker]:
    """Onboard two versions of the VNF, and instantiate the first.

    :param scripts: what the packages have beside, by path.
    """
    packages, vnfd_ids = {}, {}
    for version in ("1.0", "2.0"):
        files = {**manifests(version), **(scripts or {})}
        packages[version], vnfd_ids[version] = unpacked(folder / version, version, files)
    instance_id = str(uuid.uuid4())
    with connect(str(embedded.write_kubeconfig(folder / "kubeconfig"))) as cluster:
        installed = install(
            str(packages["1.0"]),
            cluster,
            def_files=vnfs.DEF_FILES,
            one_namespace=True,
            instance_id=instance_id,
            options=Options(history=0),  # Tacker keeps none
        )
        (front,) = (each.body for each in installed.plan.manifests if each.key == FRONT)
        metadata = {
            "namespace": "default",
            "lcm-kubernetes-def-files": [*vnfs.DEF_FILES, "Files/kubernetes/gone.yaml"],
            "vdu_reses": {"VDU1": front},
        }
        info = {"flavourId": "simple", "metadata": metadata, "vnfcResourceInfo": []}
        instance = {
            "id": instance_id,
            "vnfdId": vnfd_ids["1.0"],
            "vimConnectionInfo": kubernetes_vim(embedded),
            "instantiatedVnfInfo": {**info, "extCpInfo": [{"id": "cp"}]},
        }
        yield Tacker(packages, vnfd_ids, instance, cluster, {})
