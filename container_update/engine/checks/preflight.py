# SPDX-License-Identifier: Apache-2.0
"""The checks before an update: each returns what it found, or raises an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from container_update.engine.checks.namespaces import refuse_missing
from container_update.model import errors
from container_update.model.cluster import ClusterContext, ReadOnlyCluster, if_allowed
from container_update.model.operation import Status
from container_update.model.plan import Obstacle, Plan
from container_update.package.findings import Finding, Severity
from container_update.planning import permissions
from container_update.planning.summary import count_noun

TESTED = (1, 36)
"""The version of Kubernetes whose answers the tests expect."""
OLDEST = (1, 22)
"""The first version with all that is used: the eviction of pods by policy/v1."""


@dataclass(frozen=True)
class Check:
    """What one check found."""

    name: str
    found: str = ""
    """What is in order."""
    error: errors.ContainerUpdateError | None = None
    """What is not."""

    def as_dict(self) -> dict[str, Any]:
        """Return the same as JSON values."""
        body: dict[str, Any] = {"check": self.name, "ok": self.error is None}
        if self.error is None:
            return {**body, "message": self.found}
        kind, step = type(self.error).__name__, self.error.next_step.value
        return {**body, "message": str(self.error), "error": kind, "nextStep": step}


def check(name: str, function: Callable[[], str]) -> Check:
    """Carry out a check, which returns what it found in order, or raises its error."""
    try:
        return Check(name, function())
    except errors.ContainerUpdateError as error:
        return Check(name, error=error)


def exit_status(checks: Iterable[Check]) -> int:
    """Return the status of the first problem's class, 0 without a problem."""
    return next((each.error.exit_status for each in checks if each.error), 0)


def place(context: ClusterContext) -> str:
    """Say which cluster it is and as whom."""
    if context.name is None:
        return f"the service account of this pod, {context.server}, namespace {context.namespace}"
    return (
        f"context {context.name}, cluster {context.cluster}, {context.server}, user "
        f"{context.user or '(none)'}, namespace {context.namespace}"
    )


def version(text: str) -> str:
    """Say which version (``v1.36.2``) the server has; refuse one that is too old."""
    match = re.match(r"v?(\d+)\.(\d+)", text)
    number = (int(match[1]), int(match[2])) if match else None
    if number is not None and number < OLDEST:
        raise errors.PlanError(
            f"the API server has version {text}: expected {_format_version(OLDEST)} or later, "
            "which evicts pods by policy/v1"
        )
    others = "" if number == TESTED else f"; the tests are made with {_format_version(TESTED)}"
    return f"Kubernetes {text}{others}"


def _format_version(number: tuple[int, int]) -> str:
    return ".".join(map(str, number))


def namespace(name: str, cluster: ReadOnlyCluster) -> str:
    """Say that a namespace exists."""

    def exists() -> str:
        refuse_missing(name, cluster)
        return f"{name} exists"

    unknown = f"{name}: this account may not read namespaces, so it is not known to exist"
    return if_allowed(exists, unknown)


def package(path: str, findings: Sequence[Finding]) -> str:
    """Say that a package has no errors."""
    wrong = [finding for finding in findings if finding.severity is Severity.ERROR]
    others = len(findings) - len(wrong)
    if wrong:
        more = f" (and {count_noun(len(wrong) - 1, 'more error')})" if wrong[1:] else ""
        raise errors.PackageError(f"{path}: {wrong[0]}{more}")
    return f"{path}: no errors, {count_noun(others, 'other finding')}"


def rights(plan: Plan, cluster: ReadOnlyCluster) -> str:
    """Say that the account may carry out a plan and undo it."""
    needed = permissions.needed_rights(plan)
    if missing := cluster.missing_rights(needed):
        raise errors.ClusterError(
            f"this account may not {'; '.join(map(str, missing))}: bind a Role with these rights "
            "to it",
            status=403,
            next_step=errors.NextStep.GRANT_RIGHTS,
        )
    return f"all {len(needed)} that are needed"


def idle(status: Status) -> str:
    """Say that no operation is under way, none was interrupted, and one may begin."""
    told = "; ".join(line.rstrip(".:") for line in _headlines(status))
    if status.record or status.holder:
        alive = status.holder is not None and not status.expired
        step = errors.NextStep.WAIT if alive else errors.NextStep.RESUME_OR_ROLLBACK
        raise errors.UpdateInProgressError(told, next_step=step)
    if status.frozen:
        raise errors.FrozenError(told)
    return told


def _headlines(status: Status) -> list[str]:
    """Return the lines of a status without the steps, and without "no update" where one begins."""
    lines = [line for line in str(status).splitlines() if not line.startswith(" ")]
    return lines[1:] if status.holder and not status.record else lines


def changes(plan: Plan) -> str:
    """Say what an update would do, where nothing in the cluster would make it fail."""
    if obstacles := [str(note) for note in plan.notes if isinstance(note, Obstacle)]:
        raise errors.PlanError("; ".join(obstacles))
    if plan.is_empty:
        return "nothing would change"
    restarts = sum(not step.is_config for step in plan.steps)
    number = count_noun(len(plan.steps), "object")
    return f"{number} would be written, {restarts} of them to restart pods"
