"""The errors of an update, divided by what the caller can do about them.

Every message names the object, what was expected, what was found and what to do next. None ever
holds the value of a Secret. ``exit_status`` is what the command line ends with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from container_update.model.outcome import Outcome


class ContainerUpdateError(Exception):
    """The root: catch it to catch everything this library raises on purpose."""

    exit_status = 1


class PackageError(ContainerUpdateError):
    """The package or the request is wrong: correct it. Nothing was written to the cluster."""

    exit_status = 4


class PlanError(ContainerUpdateError):
    """The cluster is in no state to be updated this way: nothing was written to it."""

    exit_status = 5


class ClusterError(ContainerUpdateError):
    """The API server refused a request or could not be reached.

    :param message: the sentence for the operator.
    :param status: the HTTP status, or None where there was no answer.
    :param reason: the ``reason`` of the server's Status object ('Conflict', 'AlreadyExists', ...).
    :param retry_after: seconds the server asked to wait, where it did.
    :param transient: the same request may succeed a little later.
    """

    exit_status = 6

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        reason: str = "",
        retry_after: float | None = None,
        transient: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.retry_after = retry_after
        self.transient = transient


class UpdateFailedError(ContainerUpdateError):
    """Something did not become ready; what had been written was undone.

    :param message: the cause, then what became of the undo.
    :param outcome: what became of each step.
    """

    exit_status = 7

    def __init__(self, message: str, outcome: Outcome) -> None:
        super().__init__(message)
        self.outcome = outcome


class UndoIncompleteError(UpdateFailedError):
    """The update failed, and not everything could be put back: an operator has to look."""

    exit_status = 8


class UpdateInProgressError(ContainerUpdateError):
    """Another update of the same VNF instance runs: wait for it. Nothing was written."""

    exit_status = 9


class UpdateInterruptedError(UpdateFailedError):
    """The update was told to stop: it was undone, or left in the journal if so asked."""

    exit_status = 10


class NoWayBackError(ContainerUpdateError):
    """What is old is being removed for good: the change can only be finished, not undone."""

    exit_status = 12


class LockLostError(ContainerUpdateError):
    """The lock could not be kept, so that another may go on: this run stopped where it was."""

    exit_status = 11
