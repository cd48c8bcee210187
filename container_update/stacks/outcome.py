"""What became of a change of stacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from container_update.model.errors import ContainerUpdateError, NextStep
from container_update.model.outcome import StepState
from container_update.stacks.plan import StackPlan, Step
from container_update.stacks.vnfcs import Member


@dataclass(frozen=True)
class Result:
    """What became of a step, in a sentence where there is something to say."""

    step: Step
    state: StepState
    message: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        ending = f": {self.message}" if self.message else ""
        return f"{self.state.value}: {self.step}{ending}"


@dataclass(frozen=True)
class Records:
    """The attributes of the host's VNF instance that change (the specification's lists)."""

    vnfd_id: str
    """vnfdId."""
    instance_id: str
    """instantiatedVnfInfo.instance_id: the stack's id, another one after Blue-Green only."""
    compute: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """VDU to vnfcResourceInfo.computeResource.resourceId of each VNFC, in order."""
    networks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Connection point to the ids for vnfVirtualLinkResourceInfo.networkResource.resourceId."""
    storages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Storage to the ids for virtualStorageResourceInfo.storageResource.resourceId."""
    replaced: Mapping[str, str] = field(default_factory=dict)
    """After a rolling update: a server's old id to its new one, for those that have another."""


@dataclass(frozen=True)
class StackOutcome:
    """What became of a change of stacks."""

    plan: StackPlan
    results: tuple[Result, ...] = ()
    members: tuple[Member, ...] = ()
    """The VNFCs of the target VDUs as they are now; empty where it failed."""
    records: Records | None = None
    """What the host has to write down; None where nothing changed for good."""
    requests: int = 0

    def __str__(self) -> str:
        return "\n".join(str(result) for result in self.results)


class StackChangeFailedError(ContainerUpdateError):
    """A step failed; what had been done was undone.

    :param message: the cause, then what became of the undo.
    :param outcome: what became of each step.
    """

    exit_status = 7
    next_step = NextStep.FIX_AND_RETRY

    def __init__(
        self, message: str, outcome: StackOutcome, *, next_step: NextStep | None = None
    ) -> None:
        super().__init__(message, next_step=next_step)
        self.outcome = outcome


class StackUndoIncompleteError(StackChangeFailedError):
    """The same, and not everything could be put back or finished: the journal is kept for
    another run, or a rollback."""

    exit_status = 8
    next_step = NextStep.FIX_AND_ROLLBACK
