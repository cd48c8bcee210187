"""The v2 script as a single file that needs no installation beside tacker-conductor.

It is a zip that Python can run (zipapp) with this package in it. Everything else that an update
needs is a dependency of Tacker itself: ``kubernetes``, ``tosca-parser``, ``oslo.config``. So the
bundle works as a package's script wherever Tacker 16 runs. It does not work

- for the v1 API, whose drivers the conductor loads from the installed packages,
- with a Python older than this package requires,
- beside another installed version of this package: the modules of the bundle come first.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from container_update.model.errors import PackageError

MAIN = "from container_update.drivers.v2_process import main\n\nmain()\n"

LEFT_OUT = ("emulator/", "cli/", "samples/", "__main__.py", "drivers/tacker_v1.py")
"""What a script never uses, relative to this package."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The date of every file in the zip, so that the same sources give the same bytes."""


def bundle(target: str | Path) -> Path:
    """Write the bundle; return its path.

    :param target: the file to write, with any name (``.py`` too).
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
    """Return the content of each file, by its path in the bundle."""
    package = Path(__file__).parents[1]
    files = {"__main__.py": MAIN.encode()}
    for path in package.rglob("*.py"):
        name = path.relative_to(package).as_posix()
        if not name.startswith(LEFT_OUT):
            files[f"container_update/{name}"] = path.read_bytes()
    return files
