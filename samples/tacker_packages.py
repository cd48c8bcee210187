"""Builds the CSARs of the samples 02 and 03 from the manifests of 01-user-guide.

    python samples/tacker_packages.py v1|v2 TYPES FOLDER

TYPES is a folder with the two type files of ETSI GS NFV-SOL 001, FOLDER where ``before.zip`` and
``after.zip`` go.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from container_update.package import build as csar_build

SAMPLES = Path(__file__).resolve().parent
TYPE_FILES = ("etsi_nfv_sol001_common_types.yaml", "etsi_nfv_sol001_vnfd_types.yaml")
DEFINITIONS = {"v1": "02-tacker-v1", "v2": "03-tacker-v2"}
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


def build(
    guide: str, types: Path, target: Path, vnfd_ids: Mapping[str, str] | None = None
) -> Mapping[str, Path]:
    """Write the packages 'before' and 'after'; their paths. PackageError where a file is missing.

    *vnfd_ids* gives them other ids than the guide: a VNFM holds one package for each id.
    """
    target.mkdir(parents=True, exist_ok=True)
    return {
        side: _build(guide, side, types, target / f"{side}.zip", vnfd_id)
        for side, vnfd_id in (vnfd_ids or VNFD_IDS[guide]).items()
    }


def _build(guide: str, side: str, types: Path, target: Path, vnfd_id: str) -> Path:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(SAMPLES / "01-user-guide" / guide / side / "Files", folder / "Files")
        definitions = folder / "Definitions"
        shutil.copytree(SAMPLES / DEFINITIONS[guide] / "Definitions", definitions)
        for file in definitions.iterdir():
            file.write_text(file.read_text().replace("@VNFD_ID@", vnfd_id))
        for type_file in TYPE_FILES:
            shutil.copy(types / type_file, definitions)
        return csar_build.build(folder, target, api=guide)


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in DEFINITIONS:
        sys.exit(__doc__)
    for package in build(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])).values():
        print(package)
