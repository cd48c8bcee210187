"""Mgmt Drivers: what the VNFD of a package names for the start and the end of an operation.

They are loaded as Tacker loads them: in the v1 API from the entry points, in the v2 API as scripts
of the package.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from container_update.package import csar
from container_update.package.vnfd import InterfaceScript
from container_update.vnfm.lcm.mgmt_drivers.v1 import V1Drivers
from container_update.vnfm.lcm.mgmt_drivers.v2 import V2Scripts
from container_update.vnfm.lcm.operation_context import OperationContext, Record


class Drivers(Protocol):
    """The Mgmt Drivers of one package, at work for one operation."""

    def call(self, event: str, record: Record, new: Path | None = None) -> Record:
        """Run what is mapped to an event: ``modify_information_end``; nothing, where nothing is.

        :param new: the folder of the package that a modification leads to.
        :returns: the record as the driver leaves it.
        :raises ContainerUpdateError: the driver failed, or cannot be loaded.
        """


def of_package(context: OperationContext, vnfd_id: str, flavour_id: str | None) -> Drivers:
    """Return the drivers that a package's VNFD names."""
    folder = context.package(vnfd_id)
    scripts = _scripts(context, folder, flavour_id)
    if context.api == "v1":
        return V1Drivers(context, folder, scripts)
    return V2Scripts(context, folder, scripts)


def _scripts(
    context: OperationContext, folder: Path, flavour_id: str | None
) -> Mapping[str, InterfaceScript]:
    with csar.open_package(str(folder), options=context.service.options) as package:
        known = {flavour.id for flavour in package.flavours}
        chosen = flavour_id if flavour_id in known else None
        return package.interface_scripts(chosen)
