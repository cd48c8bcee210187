# SPDX-License-Identifier: Apache-2.0
"""What the Mgmt Drivers of both APIs have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from container_update.model.errors import PackageError
from container_update.package.vnfd import InterfaceScript
from container_update.vnfm.lcm.operation_context import OperationContext

MODIFIED = "modify_information_end"
"""The event at which our own drivers move a VNF to another package."""


@dataclass(frozen=True)
class Drivers:
    """The Mgmt Drivers of one package, for one operation; see their classes, one for each API."""

    context: OperationContext
    folder: Path
    """The package."""
    scripts: Mapping[str, InterfaceScript]
    """What its VNFD names, by event."""


def file_of(event: str, script: InterfaceScript, package: Path, folder: str = "") -> Path:
    """Return the file that the VNFD of a package maps to an event.

    :param folder: of the package, which the VNFD's path is relative to.
    :raises PackageError: the VNFD names no file, or the package has no such file.
    """
    if not script.file:
        raise PackageError(
            f"the VNFD maps {event} to {script.implementation}: expected an artifact of this name "
            "with its file, and found none"
        )
    file = (package / folder / script.file).resolve()
    if not file.is_relative_to(package.resolve()) or not file.is_file():
        raise PackageError(f"{script.file}: the VNFD maps {event} to it: no such file")
    return file
