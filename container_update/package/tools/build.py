# SPDX-License-Identifier: Apache-2.0
"""Build a package from a folder, make one of mere manifests, and the bundle: the v2 script as one
file.

A package gets Tacker's driver file, and TOSCA.meta with every hash. The bundle is a zip that Python
can run (zipapp) with this package in it. Everything else that an update needs is a dependency of
Tacker itself: ``kubernetes``, ``tosca-parser``, ``oslo.config``, ``stevedore``. So the bundle works
as a package's script wherever Tacker 16 runs. It does not work

- for the v1 API, whose drivers the conductor loads from the installed packages,
- with a Python older than this package requires,
- beside another installed version of this package: the modules of the bundle come first.

The same files always give the same bytes, so a result can be built again and compared.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import uuid
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import yaml

from container_update.model.errors import PackageError
from container_update.model.options import DEFAULTS
from container_update.package import archive, csar, csar_metadata
from container_update.package.tools import no_manifests
from container_update.workloads.registry import is_workload

_HEADER = """\
TOSCA-Meta-File-Version: 1.0
CSAR-Version: 1.1
Created-By: container-update
"""
_CONTENT_TYPES = {
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".json": "application/json",
    ".py": "text/x-python",
}
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The date of every file in the zip: the earliest that the format has."""

DRIVERS = {
    "v1": ("tacker_v1.py", "Scripts/container_update_mgmt.py"),
    "v2": ("tacker_v2.py", "Scripts/container_update_mgmt_v2.py"),
}
"""Version of Tacker's API to the module that a package has a copy of, and the path of the copy."""

_BUNDLE_MAIN = "from container_update.drivers.v2_process import main\n\nmain()\n"
_NOT_BUNDLED = ("emulator/", "cli/", "samples/", "vnfm/", "__main__.py", "drivers/tacker_v1.py")
"""What a script never uses, relative to this package."""


def build(folder: str | Path, target: str | Path, *, api: str | None = None) -> Path:
    """Build a package (zip) from a folder; return its path.

    The driver file and TOSCA.meta are written into the folder too. Its other files stay as they
    are.

    :param target: the zip to write; an existing file is replaced.
    :param api: 'v1' or 'v2': put the driver file of that API into ``Scripts``; None: no driver.
    :raises PackageError: as :func:`write_metadata`; the folder has no VNFD; or the zip cannot be
        written.
    """
    folder, target = Path(folder), Path(target)
    if folder.resolve() in target.resolve().parents:
        raise PackageError(
            f"the package {target} cannot be written into {folder}, from which it is built: "
            "write it to another folder"
        )
    if folder.is_dir() and not vnfds(archive.open_archive(str(folder), DEFAULTS).names()):
        raise PackageError(
            f"the package {folder} cannot be built: expected a VNFD Definitions/NAME.vnfd.yaml, "
            "found none: have one made of the manifests (csar init), then build the package again"
        )
    if api is not None and folder.is_dir():
        copy = folder / DRIVERS[api][1]
        copy.parent.mkdir(exist_ok=True)
        shutil.copyfile(driver_file(api), copy)
    write_metadata(folder)
    files = archive.open_archive(str(folder), DEFAULTS)
    names = [name for name in files.names() if _is_packed(name) or name == csar_metadata.TOSCA_META]
    with _new_zip(target) as package:
        for name in names:
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            with files.open(name) as source, package.open(entry, "w") as packed:
                shutil.copyfileobj(source, packed, 1024 * 1024)
    return target


def driver_file(api: str) -> Path:
    """Return the installed driver file of 'v1' or 'v2', which packages have a copy of."""
    return Path(__file__).parents[2] / "drivers" / DRIVERS[api][0]


def bundle(target: str | Path) -> Path:
    """Write the bundle and return its path; PackageError: it cannot be written."""
    target, package = Path(target), Path(__file__).parents[2]
    files = {"__main__.py": _BUNDLE_MAIN.encode()}
    for path in package.rglob("*.py"):
        name = path.relative_to(package).as_posix()
        if not name.startswith(_NOT_BUNDLED):
            files[f"container_update/{name}"] = path.read_bytes()
    installed = distribution("container-update")
    identity = f"Metadata-Version: 2.1\nName: {installed.name}\nVersion: {installed.version}\n"
    entry_points = installed.read_text("entry_points.txt") or ""  # the upgrade types among them
    for name, text in (("METADATA", identity), ("entry_points.txt", entry_points)):
        files[f"container_update-{installed.version}.dist-info/{name}"] = text.encode()
    with _new_zip(target) as file:
        for name, content in sorted(files.items()):
            file.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
    return target


@contextmanager
def _new_zip(target: Path) -> Iterator[zipfile.ZipFile]:
    """Write a zip beside its target and rename it, so that the target is always complete."""
    partial = target.with_name(target.name + ".partial")
    try:
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as file:
            yield file
        os.replace(partial, target)
    except OSError as error:
        raise PackageError(f"{target} cannot be written: {error.strerror}") from error


def write_metadata(folder: str | Path) -> Path:
    """Write the TOSCA.meta of a folder that becomes a package; return its path.

    It lists every file except hidden ones and the metadata itself. Entry-Definitions is the one
    file ``Definitions/*.vnfd.yaml``; a folder without it becomes a package without a VNFD.

    :raises PackageError: no such folder, several VNFDs, or a file that a package must not have.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise PackageError(f"the package {folder} cannot be built: no such folder")
    files = archive.open_archive(str(folder), DEFAULTS)
    names = [name for name in files.names() if _is_packed(name)]
    entries = vnfds(names)
    if len(entries) > 1:
        raise PackageError(f"{folder}: expected one VNFD, found {', '.join(entries)}")
    header = _HEADER + "".join(f"Entry-Definitions: {entry}\n" for entry in entries)
    text = "\n".join([header, *(_block(files, name) for name in names)])
    files.has(csar_metadata.TOSCA_META)  # refuses a link that leads elsewhere
    path = folder.resolve() / csar_metadata.TOSCA_META
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def vnfds(names: Iterable[str]) -> list[str]:
    """Return the files among these that can be the VNFD of a package."""
    endings = (".vnfd.yaml", ".vnfd.yml")
    return [name for name in names if name.startswith("Definitions/") and name.endswith(endings)]


def _is_packed(name: str) -> bool:
    hidden = any(part.startswith((".", "__pycache__")) for part in name.split("/"))
    return not hidden and not name.startswith("TOSCA-Metadata/")


def _block(files: archive.Archive, name: str) -> str:
    kind = _CONTENT_TYPES.get(posixpath.splitext(name)[1], "application/octet-stream")
    digest = files.digest(name, "sha256")
    return f"Name: {name}\nContent-Type: {kind}\nAlgorithm: SHA-256\nHash: {digest}\n"


# --- a package of a folder of manifests ---------------------------------------------------------
# The VNFD has the types that it needs, and a VDU for each workload.

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
        if files := vnfds(package.names()):
            raise PackageError(
                f"{folder} has the VNFD {files[0]} already: edit that, or delete it for a new one"
            )
        objects = [o for path in package.manifest_files() for o in package.manifests(path, "")]
        if not objects:
            raise no_manifests.refusal(package)
    match = _VERSIONED.fullmatch(folder.resolve().name)
    named, numbered = match.groups() if match else ("vnf", None)
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
    write_metadata(folder)
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
