"""What a way of changing a VNF's package has to do, and how one is found.

Nothing in here knows of Kubernetes or OpenStack. A strategy is an entry point that
:mod:`container_update.operations.strategies.upgrade_types` knows the name of.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn, Protocol

from container_update.model.cancellation import CancelToken
from container_update.model.errors import ContainerUpdateError
from container_update.model.objects import Json, ObjectKey
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress
from container_update.model.plan import Plan
from container_update.model.reporter import reporter
from container_update.operations.change_request import ChangeRequest
from container_update.operations.records.vnf_records import Records
from container_update.operations.strategies import upgrade_types
from container_update.package.csar import Csar


@dataclass(frozen=True)
class Occurrence:
    """The operation occurrence of a change, where a VNFM shows it (SOL003)."""

    id: str
    url: str
    instance_url: str


@dataclass(frozen=True)
class ChangeJob:
    """A change that is to be made: the request, and what it does not say."""

    request: ChangeRequest
    old: str
    """The package that the VNF runs from, as ``UpdateRequest.old``."""
    new: str
    instance_id: str | None = None
    options: Options = field(default_factory=Options)
    leave_failed: bool = False
    """A failure is left for a rollback or a resume; otherwise it is undone at once."""
    instance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The VnfInstance as the VNFM has it, for the scripts; may be empty."""
    occurrence: Occurrence | None = None
    """For the scripts; None: no VNFM shows this change."""
    opened: Csar | None = field(default=None, repr=False, compare=False)
    """The new package, where the caller has opened it already, and closes it."""


class Target(Protocol):
    """Where the VNF runs."""

    @property
    def vim_type(self) -> str:
        """Its VIM's type, in Tacker's or SOL003's words."""


@dataclass(frozen=True)
class VduChange:
    """A VDU that changes, as a coordination script sees it."""

    vdu_id: str
    old_resource: str
    """What runs the old VNFCs: a Deployment's name, a stack's id."""
    new_resource: str
    details: Json = field(default_factory=dict)
    """What else a script of this VIM needs, as plain values."""
    ssh_ips: Mapping[str, str] = field(default_factory=dict)
    """'new' and 'old' to the address of its first VNFC, where it has one."""
    resource_id: str = ""
    """What the VNFM recorded of the one VNFC that it is about; '': it is about all of the VDU."""
    operation: str = ""
    """The id of the operation in its journal."""


CarryOut = Callable[["Strategy"], None]
"""Runs the phases of a strategy, and the scripts between them."""


class Strategy(ABC):
    """One way to change the package of one VNF; made for one run.

    ``prepare``, ``switch_over`` and ``finish`` raise UpdateFailedError once they have undone
    everything (or left it, where the job says so). Each may be called again after an interrupted
    run, and finds by itself what is done already.
    """

    scripts_per_vdu: ClassVar[frozenset[str]] = frozenset({"new", "old"})
    """The VNFs whose script is run once for each VDU that changes: the new one's after ``prepare``,
    the old one's after ``switch_over``. A strategy that leaves one out runs it in its phases, by
    ``run_script``, or has no use for it."""

    run_script: Callable[[str, VduChange], None]
    """Runs the script of the 'new' or 'old' VNF for one VDU; set before the first phase.
    Raises CoordinationError, which is to be let through."""
    script_roles: frozenset[str]
    """For which of them the request has a script; set with it."""

    def __init__(
        self, job: ChangeJob, target: Any, cancel: CancelToken, progress: Progress
    ) -> None:
        self.job = job
        self.target = target
        self.cancel = cancel
        self.progress = reporter(progress)
        self.noted: Callable[[Plan], Plan] = lambda plan: plan
        """Returns a plan with what is to be known about the scripts."""
        self.described: Callable[[], Iterable[ObjectKey] | None] = lambda: None
        """For a resume: returns what the packages describe that somebody has named."""

    @property
    def scripts_used(self) -> frozenset[str]:
        """The VNFs whose script is run at all."""
        return self.scripts_per_vdu

    @abstractmethod
    def preview(self) -> Plan:
        """Return the plan; write nothing.

        :raises PackageError: a package or the request is wrong.
        :raises PlanError: what runs is in no state to be changed this way.
        """

    @abstractmethod
    def run(self, carry_out: CarryOut) -> Outcome:
        """Recover what an earlier run left, plan, and hold the instance's lease and journal while
        the plan is carried out."""

    @abstractmethod
    def resume(self, carry_out: CarryOut) -> Outcome | None:
        """Finish the change that an earlier run left, whatever its goal.

        :returns: what became of it; None where there was nothing.
        """

    @abstractmethod
    def prepare(self) -> None:
        """Create what is new and wait until it works; what is old still serves, where it can."""

    @abstractmethod
    def switch_over(self) -> None:
        """Let what is new serve, and wait until it does."""

    @abstractmethod
    def finish(self) -> None:
        """Remove what is old."""

    @abstractmethod
    def undo(self, cause: str) -> NoReturn:
        """Undo everything because of *cause*; raise UpdateFailedError in any case."""

    def vdus(self) -> Sequence[VduChange]:
        """Return the VDUs that the scripts of ``scripts_per_vdu`` are run for."""
        return ()

    def has_passed(self, milestone: str) -> bool:  # noqa: ARG002
        """Return whether this run, or an interrupted one before it, passed the milestone."""
        return False

    def pass_milestone(self, milestone: str) -> None:  # noqa: B027, only those with scripts per VDU
        """Write down in the journal that the run came that far."""

    @abstractmethod
    def records(self) -> Records:
        """Return what the VNFM has to record."""


def find(vim_type: str, upgrade_type: str) -> type[Strategy]:
    """Return the strategy that is installed for a VIM and an upgrade type.

    :raises PackageError: there is none; the message lists those of this VIM.
    :raises ContainerUpdateError: it cannot be loaded, or there is another one of its name.
    """
    vim = upgrade_types.kind_of_vim(vim_type)
    name = f"{vim}-{upgrade_types.resolve(upgrade_type, vim_type)}"
    found, *others = (each for each in upgrade_types.entry_points() if each.name == name)
    if others:
        raise ContainerUpdateError(
            f"{name}: expected one strategy of this name, found {found.value} and "
            f"{others[0].value}: uninstall one of them"
        )
    try:
        strategy: type[Strategy] = found.load()
    except Exception as error:  # a plugin may raise anything
        raise ContainerUpdateError(f"{found} cannot be loaded: {error}") from error
    return strategy
