# SPDX-License-Identifier: Apache-2.0
"""What a plan says of the volume claims of a StatefulSet that the server would delete. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from container_update.model.plan import Reason
from container_update.planning.steps import ObjectStep, ScaleStep
from container_update.workloads.claim_retention import WHEN_DELETED, WHEN_SCALED, deletes_claims

StepT = TypeVar("StepT", bound=ObjectStep)


def with_claims_kept(step: StepT) -> StepT:
    """Return a step that takes pods away; with a reason more where claims would go too."""
    if isinstance(step, ScaleStep):
        when, ends = WHEN_SCALED, step.is_scale_in
    else:
        when, ends = WHEN_DELETED, step.is_removal
    if not (ends and deletes_claims(step.old, when)):
        return step
    text = f"its volume claims stay: {when} of its retention policy is set to Retain first"
    return replace(step, reasons=(*step.reasons, Reason(text)))
