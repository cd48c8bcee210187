# SPDX-License-Identifier: Apache-2.0
"""A CNF with the scaling policies of the client's own sample VNFD, which is Tacker's.

Flavour ``simple``; the aspect ``worker_instance`` has the levels 0 to 2 and scales VDU2 by one
instance (at most 3). ``instantiation_level_2`` has three instances of VDU1 and one of VDU2.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import tackerclient

from tests.internals.core import build

VNFD_ID = "b1bb0ce7-ebca-4fa7-95ed-4840d70a1177"
"""Of the client's VNFD."""
NEW_VNFD_ID = VNFD_ID[:-4] + "2222"
ASPECT = "worker_instance"
VDUS = {"VDU1": "front", "VDU2": "worker"}
DEF_FILES = [f"Files/kubernetes/{name}.yaml" for name in (*VDUS.values(), "service")]
WORKLOAD = """
apiVersion: apps/v1
kind: {kind}
metadata: {{name: {name}}}
spec:
  replicas: 2
  serviceName: {name}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{{name: main, image: "registry.example/{name}:1.0"}}]
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: front}
spec:
  selector: {app: front}
  ports: [{port: 80}]
"""


def package(folder: Path, worker: str = "StatefulSet", version: str = "1.0") -> Path:
    """Write the package as a zip and return its path.

    :param worker: the kind of VDU2's workload.
    :param version: of its images; of another one, the VNFD is another one too.
    """
    root = folder / f"scalable-{version}"
    (types,) = Path(tackerclient.__file__).parent.glob("tests/**/sample_vnf_package/Definitions")
    shutil.copytree(types, root / "Definitions")
    simple = root / "Definitions" / "helloworld3_df_simple.yaml"
    text = simple.read_text()
    for vdu, name in VDUS.items():
        text = text.replace(f"name: {vdu}\n", f"name: {name}\n")
    simple.write_text(text)
    for path in (root / "Definitions").iterdir() if version != "1.0" else ():
        path.write_text(path.read_text().replace(VNFD_ID, NEW_VNFD_ID))
    files = root / "Files" / "kubernetes"
    files.mkdir(parents=True)
    workload = WORKLOAD.replace(":1.0", f":{version}")
    front = workload.format(kind="Deployment", name="front").replace("  serviceName: front\n", "")
    (files / "front.yaml").write_text(front)
    text = workload.format(kind=worker, name="worker")
    if worker == "DaemonSet":
        text = text.replace("  replicas: 2\n", "").replace("  serviceName: worker\n", "")
    (files / "worker.yaml").write_text(text)
    (files / "service.yaml").write_text(SERVICE)
    return build.build(root, root.with_suffix(".zip"))


def instantiation(vims: Any, **more: Any) -> dict[str, Any]:
    """Return an InstantiateVnfRequest."""
    params = {"lcm-kubernetes-def-files": DEF_FILES, "namespace": "default"}
    return {
        "flavourId": "simple",
        "additionalParams": params,
        "vimConnectionInfo": vims,
        **more,
    }


def recorded(instance: dict[str, Any]) -> dict[str, list[str]]:
    """Return the pods of each VDU in an instance's record."""
    pods: dict[str, list[str]] = {}
    for entry in instance["instantiatedVnfInfo"]["vnfcResourceInfo"]:
        pods.setdefault(entry["vduId"], []).append(entry["computeResource"]["resourceId"])
    return pods
