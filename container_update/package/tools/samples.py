# SPDX-License-Identifier: Apache-2.0
"""The samples: their folder, a copy of one, and the user guides' packages for Tacker.

The folder ``samples`` of the repository is installed as the package ``container_update.samples``.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from container_update.model.errors import ContainerUpdateError, PackageError
from container_update.package.tools.build import build

GUIDE = "01-user-guide"
"""The sample with the manifests of both user guides, ``v1`` and ``v2``."""

TYPE_FILES = ("etsi_nfv_sol001_common_types.yaml", "etsi_nfv_sol001_vnfd_types.yaml")
DEFINITIONS = {"v1": "02-tacker-v1", "v2": "03-tacker-v2"}
"""API of Tacker to the sample with the definitions that it needs."""

VNFD_IDS = {
    "v1": {
        "before": "b1bb0ce7-ebca-4fa7-95ed-4840d70a7774",
        "after": "b1bb0ce7-ebca-4fa7-95ed-4840d70a8883",
    },
    "v2": {
        "before": "97018ca2-bf29-4715-9e2b-6e432dd1f414",
        "after": "58bcc1c6-1400-46ec-b7fb-e508bf7e00e9",
    },
}
"""The ids that the user guides show."""


def root() -> Path:
    """Return the folder with the samples; ContainerUpdateError: they are not installed as files."""
    try:
        folder = resources.files("container_update.samples")
    except ModuleNotFoundError as error:
        raise ContainerUpdateError(
            "the samples are not installed: run 'pip install .' or 'pip install -e .' in the "
            "checkout, and start the command 'container-update' that this installs"
        ) from error
    if not isinstance(folder, Path):
        raise ContainerUpdateError(f"the samples in {folder} cannot be read: unpack the archive")
    return folder


def titles() -> Mapping[str, str]:
    """Return the name of each sample with the title of its README, in the order of the names."""
    by_name = {}
    for readme in sorted(root().glob("*/README.rst")):
        lines = readme.read_text(encoding="utf-8").splitlines()
        by_name[readme.parent.name] = next(line for line in lines if line.strip("="))
    return by_name


def copy(name: str, target: Path) -> Path:
    """Copy a sample.

    :param target: the folder to create; it must not exist.
    :raises PackageError: there is no such sample, or *target* cannot be written.
    """
    if name not in (names := titles()):
        raise PackageError(f"there is no sample {name}: choose one of {', '.join(names)}")
    try:
        shutil.copytree(root() / name, target, ignore=shutil.ignore_patterns("__pycache__"))
    except OSError as error:
        raise PackageError(
            f"the sample {name} cannot be copied to {target}: {error.strerror or error}: "
            "name another folder"
        ) from error
    return target


def build_for_tacker(
    api: str, types: Path, target: Path, vnfd_ids: Mapping[str, str] | None = None
) -> Mapping[str, Path]:
    """Build the packages of a user guide as Tacker expects them: ``before.zip`` and ``after.zip``.

    :param types: the folder with ETSI's :data:`TYPE_FILES`.
    :param target: the folder for the packages; created if it does not exist.
    :param vnfd_ids: 'before' and 'after' to VNFD ids; None: those of the guide. A VNFM holds one
        package for each id.
    :raises PackageError: a type file is missing, or a package cannot be written.
    """
    missing = [name for name in TYPE_FILES if not (types / name).is_file()]
    if missing:
        raise PackageError(
            f"{types} has no {' and no '.join(missing)}: take version 2.6.1 of these files from "
            "https://forge.etsi.org/rep/nfv/SOL001, or from samples/vnf_packages/Definitions of "
            "Tacker's repository, and name the folder that they are in"
        )
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PackageError(f"the folder {target} cannot be created: {error.strerror}") from error
    return {
        side: _build(api, side, types, target / f"{side}.zip", vnfd_id)
        for side, vnfd_id in (vnfd_ids or VNFD_IDS[api]).items()
    }


def _build(api: str, side: str, types: Path, target: Path, vnfd_id: str) -> Path:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(root() / GUIDE / api / side / "Files", folder / "Files")
        definitions = folder / "Definitions"
        shutil.copytree(root() / DEFINITIONS[api] / "Definitions", definitions)
        for file in definitions.iterdir():
            file.write_text(file.read_text().replace("@VNFD_ID@", vnfd_id))
        for type_file in TYPE_FILES:
            shutil.copy(types / type_file, definitions)
        return build(folder, target, api=api)
