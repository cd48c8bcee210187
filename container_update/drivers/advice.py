# SPDX-License-Identifier: Apache-2.0
"""What an operator of Tacker can do about an error: its next step as a sentence.

In v2, as SOL003 has it, a failed operation waits in FAILED_TEMP for a retry, a rollback or a fail.
A modify of v1 that failed is over: the only thing to do is to send another request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from container_update.model.errors import NextStep

V1_SENTENCES: Mapping[NextStep, str] = {
    NextStep.FIX_REQUEST: "Correct the package or the request, then send it again: {modify}",
    NextStep.FIX_TARGET: "Fix this, then send the same request again: {modify}",
    NextStep.RETRY: "Send the same request again, perhaps a little later: {modify}",
    NextStep.WAIT: "Wait until that has ended, then send the same request again: {modify}",
    NextStep.FIX_AND_RETRY: "Correct the cause, then send the same request again: {modify}",
    NextStep.FIX_AND_ROLLBACK: "Fix the cause named here, then send the same request again, or one "
    "for the old package to go back: {modify}",
    NextStep.RESUME_OR_ROLLBACK: "Send the same request again to finish it, or one for the old "
    "package to go back: {modify}",
    NextStep.RESUME: "It can only be finished: send the same request again: {modify}",
    NextStep.PROMOTE_OR_ABORT: "It waits for a person: promote or abort it with the program that "
    "has begun it, then send the same request again: {modify}",
    NextStep.NAME_PACKAGES: "Delete the Secret if none of your users has written it, then send the "
    "same request again: {modify}",
    NextStep.NAME_BOTH_PACKAGES: "Delete the Secret if none of your users has written it, then "
    "send the same request again: {modify}",
    NextStep.GRANT_RIGHTS: "Grant the missing rights, then send the same request again: {modify}",
    NextStep.UNFREEZE: "Lift the freeze by the command unfreeze, or wait for its end, then send "
    "the same request again: {modify}",
    NextStep.CHECK_STATUS: "See whether another operation of this VNF runs: openstack vnflcm op "
    "list; if none does, send the same request again: {modify}",
}

SOL003_SENTENCES: Mapping[NextStep, str] = {
    NextStep.FIX_REQUEST: "Correct the package or the request: end this operation ({end}), then "
    "send the corrected request",
    NextStep.FIX_TARGET: "Fix this, then try again: {again}",
    NextStep.RETRY: "Try again, perhaps a little later: {again}",
    NextStep.WAIT: "Wait until that has ended, then try again: {again}",
    NextStep.FIX_AND_RETRY: "Correct the cause, then try again: {again}",
    NextStep.FIX_AND_ROLLBACK: "Fix the cause named here, then go back: {rollback}",
    NextStep.RESUME_OR_ROLLBACK: "Finish it: {retry}; or go back: {rollback}",
    NextStep.RESUME: "It can only be finished: {retry}",
    NextStep.PROMOTE_OR_ABORT: "Let the operation that waits go on, or undo it, by its requests "
    "promote and abort; then try again: {again}",
    NextStep.NAME_PACKAGES: "Delete the Secret if none of your users has written it, then try "
    "again: {again}",
    NextStep.NAME_BOTH_PACKAGES: "Delete the Secret if none of your users has written it, then try "
    "again: {again}",
    NextStep.GRANT_RIGHTS: "Grant the missing rights, then try again: {again}",
    NextStep.UNFREEZE: "Lift the freeze by the command unfreeze, or wait for its end, then try "
    "again: {again}",
    NextStep.CHECK_STATUS: "See whether another operation of this VNF runs; if none does, finish "
    "it: {retry}; or go back: {rollback}",
}


class Requests(NamedTuple):
    """How a client of a VNF manager asks it to end an operation that failed."""

    retry: str
    rollback: str
    fail: str


_TACKER = Requests(
    *(
        f"openstack vnflcm op {request} OPERATION_ID --os-tacker-api-version 2"
        for request in ("retry", "rollback", "fail")
    )
)


_WITHOUT_ROLLBACK: Mapping[NextStep, NextStep] = {
    NextStep.RESUME_OR_ROLLBACK: NextStep.RESUME,
    NextStep.FIX_AND_ROLLBACK: NextStep.FIX_AND_RETRY,
}


def v1_advice(step: NextStep) -> str:
    """Return what to do after a failed modify of Tacker's v1 API."""
    return V1_SENTENCES[step].format(modify="openstack vnflcm modify")


def sol003_advice(
    step: NextStep, requests: Requests = _TACKER, *, undoing: bool = False, undoable: bool = True
) -> str:
    """Return what to do about an operation that is FAILED_TEMP.

    :param undoing: the rollback failed, not the operation itself.
    :param undoable: the operation can be rolled back.
    """
    if not undoable:
        step = _WITHOUT_ROLLBACK.get(step, step)
    return SOL003_SENTENCES[step].format(
        again=requests.rollback if undoing else requests.retry,
        end=requests.rollback if undoable and not undoing else requests.fail,
        retry=requests.retry,
        rollback=requests.rollback,
    )
