"""The v2 script as a single file that needs no installation beside tacker-conductor.

A zip that Python runs (zipapp) with this package in it. All else that an update needs, Tacker
itself depends on: ``kubernetes``, ``tosca-parser``, ``oslo.config``. So it works as a package's
script wherever Tacker 16 runs, and it cannot work

- for the v1 API, whose drivers the conductor loads from what is installed,
- by a Python older than this package asks for,
- in place of an installed package: its modules come before those, whatever their version.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from container_update.model.errors import PackageError

MAIN = "from container_update.drivers.v2_process import main\n\nmain()\n"

LEFT_OUT = ("emulator/", "cli/", "samples/", "__main__.py", "drivers/tacker_v1.py")
"""What a script never uses."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The date of every file in the zip, so that the same sources give the same bytes."""


def bundle(target: str | Path) -> Path:
    """Write the bundle; its path is returned. The file may have any name, ``.py`` too.

    :raises PackageError: it cannot be written.
    """
    target = Path(target)
    partial = target.with_name(target.name + ".partial")
    try:
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in sorted(_files().items()):
                archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
        os.replace(partial, target)
    except OSError as error:
        raise PackageError(f"the bundle {target} cannot be written: {error.strerror}") from error
    return target


def _files() -> dict[str, bytes]:
    """Path in the bundle to content."""
    package = Path(__file__).parents[1]
    files = {"__main__.py": MAIN.encode()}
    for path in package.rglob("*.py"):
        name = path.relative_to(package).as_posix()
        if not name.startswith(LEFT_OUT):
            files[f"container_update/{name}"] = path.read_bytes()
    return files
