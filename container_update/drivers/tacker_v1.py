"""The driver that Tacker's v1 API loads as ``mgmt-container-update``.

Tacker compares the SHA-256 of this file with the copy in the package at every call. So the file
only names the class and hands every operation over, with whatever arguments came; all that may
change lives in :mod:`container_update.drivers.v1_records`. A changed byte breaks packages in use.
"""

from __future__ import annotations

from typing import Any

from tacker.vnfm.mgmt_drivers.vnflcm_abstract_driver import VnflcmMgmtAbstractDriver

from container_update.drivers import v1_records


class ContainerUpdateMgmtDriver(VnflcmMgmtAbstractDriver):  # type: ignore[misc]
    """Moves a CNF to the package that a modify request names."""

    def get_type(self) -> str:
        """The word that the entry point, Tacker's option and the VNFD's implementation share."""
        return "mgmt-container-update"

    def get_name(self) -> str:
        """The same word."""
        return "mgmt-container-update"

    def get_description(self) -> str:
        """A line for the operator."""
        return "Moves a CNF to a new package, restarting no more than the change touches"

    def instantiate_start(self, *args: Any, **kwargs: Any) -> None:
        """Before a VNF is instantiated."""
        v1_records.run("instantiate_start", *args, **kwargs)

    def instantiate_end(self, *args: Any, **kwargs: Any) -> None:
        """After a VNF was instantiated."""
        v1_records.run("instantiate_end", *args, **kwargs)

    def terminate_start(self, *args: Any, **kwargs: Any) -> None:
        """Before a VNF is terminated."""
        v1_records.run("terminate_start", *args, **kwargs)

    def terminate_end(self, *args: Any, **kwargs: Any) -> None:
        """After a VNF was terminated."""
        v1_records.run("terminate_end", *args, **kwargs)

    def scale_start(self, *args: Any, **kwargs: Any) -> None:
        """Before a VNF is scaled."""
        v1_records.run("scale_start", *args, **kwargs)

    def scale_end(self, *args: Any, **kwargs: Any) -> None:
        """After a VNF was scaled."""
        v1_records.run("scale_end", *args, **kwargs)

    def heal_start(self, *args: Any, **kwargs: Any) -> None:
        """Before a VNF is healed."""
        v1_records.run("heal_start", *args, **kwargs)

    def heal_end(self, *args: Any, **kwargs: Any) -> None:
        """After a VNF was healed."""
        v1_records.run("heal_end", *args, **kwargs)

    def change_external_connectivity_start(self, *args: Any, **kwargs: Any) -> None:
        """Before external connectivity changes."""
        v1_records.run("change_external_connectivity_start", *args, **kwargs)

    def change_external_connectivity_end(self, *args: Any, **kwargs: Any) -> None:
        """After external connectivity changed."""
        v1_records.run("change_external_connectivity_end", *args, **kwargs)

    def modify_information_start(self, *args: Any, **kwargs: Any) -> None:
        """Before the instance's record names the new package."""
        v1_records.run("modify_information_start", *args, **kwargs)

    def modify_information_end(self, *args: Any, **kwargs: Any) -> None:
        """After the instance's record names the new package: here the update happens."""
        v1_records.run("modify_information_end", *args, **kwargs)
