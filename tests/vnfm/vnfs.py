# SPDX-License-Identifier: Apache-2.0
"""Small VNFs for tests with many instances: a Deployment with a ConfigMap, and its update."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from container_update.emulator.kubernetes import EmbeddedCluster
from tests import packages
from tests.internals.core import driver_file
from tests.vnfm.client import Client

VNFD = """
tosca_definitions_version: tosca_simple_yaml_1_2
interface_types:
  tosca.interfaces.nfv.Vnflcm:
    derived_from: tosca.interfaces.Root
{declared}
node_types:
  tosca.nodes.nfv.VNF:
    derived_from: tosca.nodes.Root
    interfaces:
      Vnflcm: {{type: tosca.interfaces.nfv.Vnflcm}}
    properties:
      descriptor_id: {{type: string}}
      provider: {{type: string}}
      product_name: {{type: string}}
      software_version: {{type: string}}
      descriptor_version: {{type: string}}
  tosca.nodes.nfv.Vdu.Compute:
    derived_from: tosca.nodes.Root
    properties:
      name: {{type: string}}
topology_template:
  node_templates:
    VNF:
      type: tosca.nodes.nfv.VNF
      properties:
        descriptor_id: {vnfd_id}
        provider: Company
        product_name: Small VNF
        software_version: "{version}"
        descriptor_version: "1.0"
      interfaces:
        Vnflcm:
{operations}
      artifacts:
        {driver}:
          description: The driver
          type: tosca.artifacts.Implementation.Python
          file: {file}
{vdus}
"""
VDU = "    {vdu}: {{type: tosca.nodes.nfv.Vdu.Compute, properties: {{name: {workload}}}}}"
CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {{name: settings}}
data: {{level: "{version}"}}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: front}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: front}}}}
  template:
    metadata: {{labels: {{app: front}}}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: web
        image: registry.example/web:{version}
        env:
        - name: LEVEL
          valueFrom: {{configMapKeyRef: {{name: settings, key: level}}}}
"""
IMAGE = "registry.example/web:{version}"
IMAGES = (IMAGE.format(version="1.0"), IMAGE.format(version="2.0"))
DEF_FILES = ["Files/kubernetes/settings.yaml", "Files/kubernetes/front.yaml"]
MODIFICATION = (
    "modify_information_start",
    "modify_information_end",
    "modify_information_rollback_start",
    "modify_information_rollback_end",
)
OURS = "mgmt-container-update"


@dataclass(frozen=True)
class Driver:
    """The Mgmt Driver that a package names."""

    name: str
    file: str
    """As the VNFD has it."""
    content: bytes
    """Of the file."""
    operations: tuple[str, ...] = MODIFICATION


def ours(api: str) -> Driver:
    """Return the project's own driver for one of the two APIs."""
    path = {"v1": "Scripts/container_update_mgmt.py",
            "v2": "../Scripts/container_update_mgmt_v2.py"}[api]  # fmt: skip
    return Driver(OURS, path, driver_file(api).read_bytes())


def package(
    folder: Path,
    version: str,
    driver: Driver,
    manifests: Mapping[str, str] | None = None,
    vdus: Mapping[str, str] = {"VDU1": "front"},
    deployment: str = DEPLOYMENT,
) -> tuple[Path, str]:
    """Write a package of a version; its path, and the id of its VNFD.

    :param manifests: def-files by their paths; None: a Deployment and its ConfigMap.
    :param vdus: VDU to the name of its workload.
    :param deployment: the Deployment's manifest.
    """
    if manifests is None:
        texts = (CONFIG.format(version=version), deployment.format(version=version))
        manifests = dict(zip(DEF_FILES, texts, strict=True))
    vnfd_id = str(uuid.uuid4())
    operations = "\n".join(
        f"          {name}: {{implementation: {driver.name}}}" for name in driver.operations
    )
    vnfd = VNFD.format(
        vnfd_id=vnfd_id, version=version, operations=operations,
        driver=driver.name, file=driver.file,
        declared="\n".join(f"    {name}: {{}}" for name in driver.operations),
        vdus="\n".join(VDU.format(vdu=vdu, workload=name) for vdu, name in vdus.items()),
    )  # fmt: skip
    files = {**manifests, driver.file.removeprefix("../"): driver.content.decode()}
    meta = packages.listing(files, "Entry-Definitions: Definitions/vnfd.yaml\n")
    path = folder / f"{version}.zip"
    packages.write_zip(path, {packages.META: meta, "Definitions/vnfd.yaml": vnfd, **files})
    return path, vnfd_id


def instantiation(
    vims: Any, namespace: str = "default", def_files: Sequence[str] = DEF_FILES
) -> dict[str, Any]:
    """Return an InstantiateVnfRequest."""
    return {
        "flavourId": "simple",
        "additionalParams": {"lcm-kubernetes-def-files": [*def_files], "namespace": namespace},
        "vimConnectionInfo": vims,
    }


def modification(vnfd_id: str) -> dict[str, Any]:
    """Return a modify request to another package."""
    return {
        "vnfdId": vnfd_id,
        "metadata": {"configmap_secret_paths": ["Files/kubernetes/settings.yaml"]},
    }


def launched(client: Client, cluster: EmbeddedCluster, folder: Path) -> tuple[str, str]:
    """Instantiate the small VNF; return its path, and the VNFD of the next package."""
    old, new = (
        client.onboard(package(folder, version, ours(client.api))[0]) for version in ("1.0", "2.0")
    )
    path = client.create(old)
    client.do("POST", f"{path}/instantiate", instantiation(client.vims(cluster)))
    return path, new
