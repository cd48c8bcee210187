# SPDX-License-Identifier: Apache-2.0
"""Make a package of a folder of manifests: its VNFD and TOSCA.meta, of which nobody types a line.

The VNFD has the types that it needs, and a VDU for each workload.
"""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from typing import Any

import yaml

from container_update.model.errors import PackageError
from container_update.package import csar
from container_update.package.tools import build, no_manifests
from container_update.workloads.registry import is_workload

_NAMESPACE = uuid.UUID("8b1f62a4-0c57-4d0f-9e53-2f6f0a1d7c39")
"""Of the ids of VNFDs: the same product in the same version has the same id."""
_VERSIONED = re.compile(r"(.+?)(?:[-_.](v?[0-9][\w.]*))?")
_FIELDS = ("descriptor_id", "descriptor_version", "provider", "product_name", "software_version")
_ROOT = "tosca.nodes.Root"
_VNF, _VDU = "tosca.nodes.nfv.VNF", "tosca.nodes.nfv.Vdu.Compute"


def init(folder: str | Path, product: str = "", version: str = "", provider: str = "") -> Path:
    """Write the VNFD and TOSCA.meta into a folder of manifests; return the VNFD's path.

    :param product: '': the folder's name without a version at its end.
    :param version: '': what the folder's name has at its end, else 1.0.
    :raises PackageError: it has no manifests, or a VNFD already.
    """
    folder = Path(folder)
    with csar.open_package(str(folder), check_hashes=False) as package:
        if vnfds := build.vnfds(package.names()):
            raise PackageError(
                f"{folder} has the VNFD {vnfds[0]} already: edit that, or delete it for a new one"
            )
        objects = [o for path in package.manifest_files() for o in package.manifests(path, "")]
        if not objects:
            raise no_manifests.refusal(package)
    found = _VERSIONED.fullmatch(folder.resolve().name)
    named, numbered = found.groups() if found else ("vnf", None)
    product, version = product or named, version or numbered or "1.0"
    names = dict.fromkeys(each.key.name for each in objects if is_workload(each.key))
    body = _vnfd([product, version, provider or "unknown"], list(names))
    file_name = re.sub(r"[^\w.-]+", "-", product)
    target = folder / "Definitions" / f"{file_name}.vnfd.yaml"
    try:
        target.parent.mkdir(exist_ok=True)
        target.write_text(yaml.safe_dump(body, sort_keys=False, allow_unicode=True), "utf-8")
    except OSError as error:
        raise PackageError(f"{target} cannot be written: {error.strerror}") from error
    build.write_metadata(folder)
    return target


def _vnfd(names: list[str], workloads: list[str]) -> dict[str, Any]:
    product, version, provider = names
    vnfd_id = str(uuid.uuid5(_NAMESPACE, "/".join(names)))
    values = (vnfd_id, version, provider, product, version)
    optional = {"type": "string", "required": False}
    nodes: dict[str, Any] = {
        "VNF": {
            "type": _VNF,
            "properties": {**dict(zip(_FIELDS, values, strict=True)), "flavour_id": "default"},
        }
    }
    for number, name in enumerate(workloads, 1):
        nodes[f"VDU{number}"] = {"type": _VDU, "properties": {"name": name}}
    return {
        "tosca_definitions_version": "tosca_simple_yaml_1_2",
        "node_types": {
            _VNF: {
                "derived_from": _ROOT,
                "properties": {name: dict(optional) for name in (*_FIELDS, "flavour_id")},
            },
            _VDU: {"derived_from": _ROOT, "properties": {"name": {"type": "string"}}},
        },
        "topology_template": {
            "substitution_mappings": {
                "node_type": _VNF,
                "properties": {"flavour_id": "default"},
                "requirements": {"virtual_link": []},
            },
            "node_templates": nodes,
        },
    }
