# SPDX-License-Identifier: Apache-2.0
"""The errors of all operations, divided by what the caller can do about them.

Every message names the object, what was expected and what was found; ``next_step`` is what the
caller can do, as a value. None ever holds the value of a Secret. ``exit_status`` is the command
line's exit status.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from container_update.model.outcome import Outcome


class NextStep(enum.Enum):
    """What the caller of a failed operation can do; each front end puts it into its own words.

    >>> NextStep("wait") is UpdateInProgressError.next_step
    True
    """

    FIX_REQUEST = "fix request"
    """Correct the package or the request, then send it again."""
    FIX_TARGET = "fix target"
    """Fix the cluster, the stack or the access to it, then repeat the request."""
    RETRY = "retry"
    """Repeat the same request, perhaps a little later."""
    WAIT = "wait"
    """Another operation holds the instance: wait for its end, then repeat the request."""
    FIX_AND_RETRY = "fix and retry"
    """Correct the cause that the message names, then repeat the request."""
    FIX_AND_ROLLBACK = "fix and rollback"
    """What the message names could not be undone: fix it, then roll back."""
    RESUME_OR_ROLLBACK = "resume or rollback"
    """The operation was interrupted: finish it or undo it."""
    RESUME = "resume"
    """It cannot be undone any more: finish it."""
    PROMOTE_OR_ABORT = "promote or abort"
    """The operation waits for a person: let it go on, or undo it."""
    NAME_PACKAGES = "name packages"
    """A journal is not trusted about an object: name packages that describe it."""
    NAME_BOTH_PACKAGES = "name both packages"
    """The history is not trusted about an object: repeat the request with both packages."""
    GRANT_RIGHTS = "grant rights"
    """The account may not do what is needed: bind a Role to it, then repeat the request."""
    UNFREEZE = "unfreeze"
    """The instance is frozen: lift that, or wait for its end, then repeat the request."""
    CHECK_STATUS = "check status"
    """Another run may hold the instance: check its status, then resume or roll back."""


def with_advice(message: object, advice: str) -> str:
    """Return an error's message, then a front end's sentence about the next step, if it has one."""
    text = f"{str(message).rstrip('. ')}."
    return f"{text} {advice}." if advice else text


class ContainerUpdateError(Exception):
    """The root: catch it to catch everything this library raises on purpose.

    >>> try:
    ...     ChangeRequest.of({"vnfdId": "vnfd-2"})
    ... except ContainerUpdateError as error:
    ...     print(error.next_step)
    NextStep.FIX_REQUEST

    :param message: the object, what was expected and what was found; nothing that only one front
        end can do.
    :param next_step: what the caller can do, where it is not the one of the class.
    """

    exit_status = 1
    next_step = NextStep.FIX_AND_RETRY

    def __init__(self, message: str = "", *, next_step: NextStep | None = None) -> None:
        super().__init__(message)
        if next_step is not None:
            self.next_step = next_step


class PackageError(ContainerUpdateError):
    """The package or the request is wrong: correct it. Nothing was written to the cluster.

    >>> ChangeRequest.of({"additionalParams": {"upgrade_type": "rolling"}})
    Traceback (most recent call last):
    container_update.model.errors.PackageError: vnfdId: expected ...
    """

    exit_status = 4
    next_step = NextStep.FIX_REQUEST

    def __init__(
        self, message: str = "", *, path: str = "", next_step: NextStep | None = None
    ) -> None:
        """See the class.

        :param path: of the attribute that is wrong; the message begins with it.
        """
        super().__init__(message, next_step=next_step)
        self.path = path

    def __str__(self) -> str:
        message = super().__str__()
        return f"{self.path}: {message}" if self.path else message

    def below(self, root: str) -> PackageError:
        """Return the error for a request that has additionalParams under another name."""
        first, dot, rest = self.path.partition(".")
        path = f"{root}{dot}{rest}" if first == "additionalParams" else self.path
        return type(self)(super().__str__(), path=path, next_step=self.next_step)


class ChangeNeededError(PackageError):
    """What differs is no update: only a change of the package creates and deletes, like under
    another name.

    >>> try:  # doctest: +SKIP
    ...     update(request, cluster)
    ... except ChangeNeededError:
    ...     change_package(change_request, cluster)
    """


class PlanError(ContainerUpdateError):
    """The cluster is in no state to be updated this way: nothing was written to it.

    >>> try:  # doctest: +SKIP
    ...     update(request, cluster)
    ... except PlanError as error:
    ...     print(error)
    Deployment cnf/web is paused, a change would never roll out: resume it ...
    """

    exit_status = 5
    next_step = NextStep.FIX_TARGET


class NoNamespaceError(PlanError):
    """The namespace of a VNF instance does not exist."""


class MissingError(PlanError):
    """The cluster does not have what an update would change: a change of the package creates it."""


class NotInstalledError(PlanError):
    """There is no record of what a VNF instance runs from; nothing was written."""


class InstalledError(PlanError):
    """The namespace has an instance of the name that an installation would give to a new one;
    nothing was written."""


class FrozenError(PlanError):
    """The instance is frozen: no operation of it may begin. Nothing was written."""

    next_step = NextStep.UNFREEZE


class CoordinationError(ContainerUpdateError):
    """A coordination script failed, or ran for too long."""


class ClusterError(ContainerUpdateError):
    """The API server refused a request or could not be reached.

    >>> try:
    ...     connect("no such file")
    ... except ClusterError as error:
    ...     print(error.status, error.next_step)
    None NextStep.FIX_TARGET

    :param message: the sentence for the operator.
    :param status: the HTTP status, or None where there was no answer.
    :param reason: the ``reason`` of the server's Status object ('Conflict', 'AlreadyExists', ...).
    :param causes: the reasons of its causes ('NamespaceTerminating', 'FieldValueInvalid', ...).
    :param retry_after: seconds the server asked to wait, where it did.
    :param transient: the same request may succeed a little later; else something must be fixed.
    """

    exit_status = 6
    next_step = NextStep.FIX_TARGET

    def __init__(  # noqa: PLR0913
        self,
        message: str,
        *,
        status: int | None = None,
        reason: str = "",
        causes: frozenset[str] = frozenset(),
        retry_after: float | None = None,
        transient: bool = False,
        next_step: NextStep | None = None,
    ) -> None:
        super().__init__(message, next_step=NextStep.RETRY if transient else next_step)
        self.status = status
        self.reason = reason
        self.causes = causes
        self.retry_after = retry_after
        self.transient = transient


class NoDryRunError(ClusterError):
    """A dry run is not possible: the server of the kind does not declare it, so that the request
    was not sent, or an admission webhook does not support it."""


class AdmissionError(ClusterError):
    """An admission webhook or policy denied a request, or did not answer."""


class ConversionError(ClusterError):
    """The webhook that converts a custom resource between its versions did not answer."""


class QuotaError(ClusterError):
    """A ResourceQuota has no room for an object."""


class UpdateFailedError(ContainerUpdateError):
    """Something did not become ready; what had been written was undone.

    >>> try:  # doctest: +SKIP
    ...     update(request, cluster)
    ... except UpdateFailedError as error:
    ...     failed = [result.step.key for result in error.outcome.results if result.message]

    :param outcome: the result of each step.
    :param cause: why it failed, a sentence without its full stop.
    :param ending: the results of the steps that had begun, likewise; '': the outcome's own.
    """

    exit_status = 7
    next_step = NextStep.FIX_AND_RETRY

    def __init__(
        self, outcome: Outcome, cause: str, *, ending: str = "", next_step: NextStep | None = None
    ) -> None:
        self.outcome = outcome
        self.cause = cause
        self.ending = ending or outcome.ending
        super().__init__(f"{cause.removesuffix('.')}. {self.ending}", next_step=next_step)


class UndoIncompleteError(UpdateFailedError):
    """The update failed, and not everything could be put back: an operator has to look.

    >>> try:  # doctest: +SKIP
    ...     update(request, cluster)
    ... except UndoIncompleteError as error:
    ...     print(error)  # names the objects: fix them, then
    ...     rollback(cluster)
    """

    exit_status = 8
    next_step = NextStep.FIX_AND_ROLLBACK


class UpdateInProgressError(ContainerUpdateError):
    """Another update of the same VNF instance runs: wait for it. Nothing was written.

    >>> try:  # doctest: +SKIP
    ...     update(request, cluster)
    ... except UpdateInProgressError as error:
    ...     print(status(cluster))
    """

    exit_status = 9
    next_step = NextStep.WAIT


class UpdateInterruptedError(UpdateFailedError):
    """The update was interrupted: it was undone, or left in the journal if so requested.

    >>> try:  # doctest: +SKIP
    ...     update(request, cluster, cancel=cancel)
    ... except UpdateInterruptedError as error:
    ...     print(error.next_step)
    NextStep.RETRY
    """

    exit_status = 10
    next_step = NextStep.RETRY


class NoWayBackError(ContainerUpdateError):
    """The old objects are being removed for good: the change can only be finished."""

    exit_status = 12
    next_step = NextStep.RESUME


class LeaseLostError(ContainerUpdateError):
    """The lease was lost, so that another host may continue: this run stopped where it was.

    >>> try:  # doctest: +SKIP
    ...     update(request, cluster)
    ... except LeaseLostError as error:
    ...     print(status(cluster))  # does another run go on with it?
    """

    exit_status = 11
    next_step = NextStep.CHECK_STATUS
