"""What the contract of a strategy is tested against: a VNF of two VDUs, in words of no VIM.

VDU1 serves clients by one address, VDU2 runs beside it. A release is what a package makes them run.
A VIM joins the contract by a subclass; the cases stay as they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from container_update.model.cancellation import CancelToken
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress
from container_update.model.plan import Plan
from container_update.operations.change_package import Changed
from tests.functional.upgrade_types import ROLLING

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
        """Another one for each version."""
        return f"vnfd-{self.version}"


V1 = Release()
V2 = Release("v2")
BROKEN = replace(V2, broken=("VDU1",))


@dataclass(frozen=True)
class Ask:
    """What a change is asked for beside the release."""

    params: Mapping[str, Any] = field(default_factory=dict)
    """More of additionalParams."""
    body: Mapping[str, Any] = field(default_factory=dict)
    """More of the request."""
    options: Mapping[str, Any] = field(default_factory=dict)
    leave_failed: bool = False
    progress: Progress = lambda _: None
    cancel: CancelToken | None = None
    instance: Mapping[str, Any] = field(default_factory=dict)


PLAIN = Ask()


class ContractSite(ABC):
    """A place to play a change in."""

    upgrade_type: str
    options: Options

    @property
    def in_place(self) -> bool:
        """The strategy changes what is there, instead of putting the new beside the old."""
        return self.upgrade_type == ROLLING

    bad_image_words = r"ErrImagePull|ImagePullBackOff"
    """How the VIM says that there is no such image."""

    no_way_back: tuple[type[Exception], ...] = ()
    """What a rollback raises once the old VNF is being removed, where that is for good."""

    @property
    def renews_vnfc_ids(self) -> bool:
        """A VNFC gets a new id in the records, by the specification's list for the strategy."""
        return self.in_place

    @property
    def can_change_a_part(self) -> bool:
        """The strategy can leave VDUs alone."""
        return True

    @abstractmethod
    def instantiate(self, release: Release) -> None:
        """Bring the VNF into being."""

    @abstractmethod
    def change(self, release: Release, ask: Ask = PLAIN) -> Changed:
        """Change to another release."""

    @abstractmethod
    def plan(self, release: Release, ask: Ask = PLAIN) -> Plan:
        """What :meth:`change` would do."""

    @abstractmethod
    def rollback(self) -> Outcome | None:
        """Undo what a change left."""

    @abstractmethod
    def resume(self) -> Outcome | None:
        """Finish what a change left."""

    @abstractmethod
    def running(self) -> dict[str, set[str]]:
        """VDU to the versions that its live instances run; VDUs without any left out."""

    @abstractmethod
    def serving(self) -> set[str]:
        """The versions that get the clients' traffic."""

    @abstractmethod
    def instances(self, vdu: str) -> set[str]:
        """The ids of a VDU's live instances."""

    @abstractmethod
    def left_over(self) -> list[str]:
        """Journals, locks and second copies that should not be there."""

    @abstractmethod
    def scale(self, vdu: str, replicas: int) -> None:
        """Another number of instances, from outside."""

    @abstractmethod
    def runs_from(self, release: Release) -> None:
        """The package of the VNF is that of this release from now on."""

    @abstractmethod
    def cut_short(self, release: Release, ask: Ask, number: int) -> bool:
        """Change, and die right after so many requests that write, lock and journal included.

        What is still held by then is free for others. False where it ended before.
        """

    @abstractmethod
    def instance_record(self) -> dict[str, Any]:
        """The VnfInstance as a VNFM would have it now."""

    def is_at(self, version: str, *vdus: str) -> bool:
        """The VNF runs and serves one version, in these VDUs, and nothing is left over."""
        wanted = {vdu: {version} for vdu in vdus or VDUS}
        return self.running() == wanted and self.serving() == {version} and not self.left_over()
