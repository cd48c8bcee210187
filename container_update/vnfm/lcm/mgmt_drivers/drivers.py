# SPDX-License-Identifier: Apache-2.0
"""What the Mgmt Drivers of both APIs have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from container_update.drivers.change_by_modify import Work
from container_update.model.errors import PackageError
from container_update.package.vnfd import InterfaceScript
from container_update.vnfm.lcm.operation_context import OperationContext, VnfRecord

MODIFIED = "modify_information_end"
"""The event at which our own drivers move a VNF to another package."""


@dataclass(frozen=True)
class Drivers(ABC):
    """The Mgmt Drivers of one package, for one operation."""

    context: OperationContext
    folder: Path
    """The package."""
    scripts: Mapping[str, InterfaceScript]
    """What its VNFD names, by event."""

    @property
    @abstractmethod
    def is_ours(self) -> bool:
        """Whether this project's own driver is the one for the end of a modification: by its
        content, whatever it is called."""

    @abstractmethod
    def work(self, record: VnfRecord) -> Work | None:
        """Return what our own driver would do at the end of a modification; None: nothing.

        :param record: as the request modifies it.
        :raises ContainerUpdateError: it would fail.
        """

    @abstractmethod
    def call(self, event: str, record: VnfRecord, new: Path | None = None) -> VnfRecord:
        """Run the driver of an event, for example ``modify_information_start``, if there is one.

        :param new: the folder of the package that a modification leads to.
        :returns: the record as the driver leaves it.
        :raises ContainerUpdateError: the driver failed, or cannot be loaded.
        """


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
