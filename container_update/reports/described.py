# SPDX-License-Identifier: Apache-2.0
"""A plan or an outcome as text, for programs that use the library."""

from __future__ import annotations

from container_update.model.outcome import Outcome
from container_update.model.plan import Plan
from container_update.reports.outcome_report import outcome_text
from container_update.reports.plan_report import plan_text


def describe(value: Plan | Outcome) -> str:
    """Return a plan or an outcome as the command shows it, complete, without a Secret's value.

    >>> print(describe(Plan(namespace="cnf", instance_id=None, steps=())))
    Nothing to do: the cluster already matches the new package.

    :returns: lines without styles; an outcome has the last log lines of failing pods too.
    """
    return plan_text(value) if isinstance(value, Plan) else outcome_text(value)
