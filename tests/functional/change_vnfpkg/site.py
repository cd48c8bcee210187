# SPDX-License-Identifier: Apache-2.0
"""What the contract of a strategy is tested against: a VNF of two VDUs, independent of any VIM.

VDU1 serves clients by one address, VDU2 runs beside it. A release is what a package makes them run.
A VIM joins the contract by a subclass; the cases stay as they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from container_update import CancelToken, Options, Outcome
from tests.functional.changed import Changed
from tests.functional.upgrade_types import ROLLING
from tests.internals.core import Progress

INSTANCE = "5d1b2a6c-0f0e-4c59-9f0f-6f2f6f1f0005"
VDUS = ("VDU1", "VDU2")


@dataclass(frozen=True)
class Release:
    """What a package makes the VNF run."""

    version: str = "v1"
    vdus: tuple[str, ...] = VDUS
    """The VDUs that the package has."""
    broken: tuple[str, ...] = ()
    """VDUs whose image no registry has."""
    scripts: Mapping[str, str] = field(default_factory=dict)
    """Path in the package to the text of a coordination script."""

    @property
    def vnfd_id(self) -> str:
        """The VNFD's id, which differs for each version."""
        return f"vnfd-{self.version}"


V1 = Release()
V2 = Release("v2")
BROKEN = replace(V2, broken=("VDU1",))


@dataclass(frozen=True)
class Arguments:
    """The arguments of a change besides the release."""

    params: Mapping[str, Any] = field(default_factory=dict)
    """More of additionalParams."""
    body: Mapping[str, Any] = field(default_factory=dict)
    """More of the request."""
    options: Mapping[str, Any] = field(default_factory=dict)
    leave_failed: bool = False
    progress: Progress = lambda _: None
    cancel: CancelToken | None = None
    instance: Mapping[str, Any] = field(default_factory=dict)


PLAIN = Arguments()


class ContractSite(ABC):
    """A target that a change runs on."""

    upgrade_type: str
    options: Options

    @property
    def in_place(self) -> bool:
        """Whether the strategy changes the running VNF instead of putting a new one beside it."""
        return self.upgrade_type == ROLLING

    @property
    def renews_vnfc_ids(self) -> bool:
        """Whether the specification gives a VNFC a new id in the records with this strategy."""
        return self.in_place

    @property
    def can_change_a_part(self) -> bool:
        """Whether the strategy can change only some of the VDUs."""
        return True

    @abstractmethod
    def instantiate(self, release: Release) -> None:
        """Instantiate the VNF."""

    @abstractmethod
    def change(self, release: Release, arguments: Arguments = PLAIN) -> Changed:
        """Change to another release."""

    @abstractmethod
    def rollback(self) -> Outcome | None:
        """Undo an unfinished change."""

    @abstractmethod
    def resume(self) -> Outcome | None:
        """Finish an unfinished change."""

    @abstractmethod
    def running(self) -> dict[str, set[str]]:
        """Return the versions that the live instances of each VDU run, without empty VDUs."""

    @abstractmethod
    def serving(self) -> set[str]:
        """Return the versions that get the clients' traffic."""

    @abstractmethod
    def instances(self, vdu: str) -> set[str]:
        """Return the ids of a VDU's live instances."""

    @abstractmethod
    def left_over(self) -> list[str]:
        """Return journals, leases and second copies that should not be there."""

    @abstractmethod
    def scale(self, vdu: str, replicas: int) -> None:
        """Set another number of instances, bypassing the library."""

    @abstractmethod
    def runs_from(self, release: Release) -> None:
        """Take this release's package as the VNF's current one."""

    @abstractmethod
    def interrupt(self, release: Release, arguments: Arguments, number: int) -> bool:
        """Interrupt a change right after this many write requests, lease and journal included.

        A lease that is still held then expires. Return False if the change ended before.
        """

    @abstractmethod
    def instance_record(self) -> dict[str, Any]:
        """Return the VnfInstance as a VNFM would have it now."""

    def is_at(self, version: str, *vdus: str) -> bool:
        """Whether the VNF runs and serves one version in these VDUs and nothing is left over."""
        expected = {vdu: {version} for vdu in vdus or VDUS}
        return self.running() == expected and self.serving() == {version} and not self.left_over()
