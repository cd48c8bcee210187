# SPDX-License-Identifier: Apache-2.0
"""What an update leaves with Tacker for a retry or a rollback (``user_script_err_handling_data``).

It is how the update ended. What was there before it is in its journal or in its revision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from container_update.model import errors
from container_update.model.objects import Json
from container_update.model.outcome import Outcome

KEPT = "user_script_err_handling_data"
OURS = "container_update"
"""The key of our data beside those of other scripts."""

UNTOUCHED = "untouched"
UNDONE = "undone"
UNDO_INCOMPLETE = "undo incomplete"
UNKNOWN = "unknown"
UPDATED = "updated"
ROLLED_BACK = "rolled back"

STATES = frozenset({UNTOUCHED, UNDONE, UNDO_INCOMPLETE, UNKNOWN, UPDATED, ROLLED_BACK})

BEFORE = "before"
"""In our data: instantiatedVnfInfo before Tacker's own change of the package."""

_BEFORE_A_WRITE = (
    errors.PackageError,
    errors.PlanError,
    errors.ClusterError,
    errors.UpdateInProgressError,
)


def remember(output: Json, entry: Json) -> None:
    """Add our entry to what Tacker keeps."""
    output[KEPT] = {OURS: entry}


def recall(script: Json) -> Json:
    """Return what was kept last; may be empty."""
    return dict((script.get(KEPT) or {}).get(OURS) or {})


def has_nothing_to_undo(kept: Mapping[str, Any]) -> bool:
    """Return whether what all scripts left says that nothing was written to the VIM."""
    return all(name == OURS and entry.get("state") == UNTOUCHED for name, entry in kept.items())


def is_untouched(kept: Mapping[str, Any]) -> bool:
    """Return whether this project has written nothing to the VIM: there was never a plan, or it
    ended before that."""
    return bool((kept.get(OURS) or {}).get("state", UNTOUCHED) == UNTOUCHED)


def for_another_try(kept: Mapping[str, Any]) -> Json:
    """Return the memory for a retry, which begins anew where a rollback has put all back."""
    entry = kept.get(OURS) or {}
    is_back = entry.get("state") == ROLLED_BACK
    return {name: value for name, value in kept.items() if not (is_back and name == OURS)}


def after_failure(error: errors.ContainerUpdateError) -> str:
    """Return how a try that failed leaves the cluster."""
    if isinstance(error, _BEFORE_A_WRITE):
        return UNTOUCHED
    if isinstance(error, errors.UndoIncompleteError):
        return UNDO_INCOMPLETE
    return UNDONE if type(error) is errors.UpdateFailedError else UNKNOWN


def after_success(outcome: Outcome) -> str:
    """Return how a try that succeeded leaves the cluster: Tacker may still fail to record it."""
    return UPDATED if outcome.results else UNTOUCHED


def join(earlier: Mapping[str, Any], state: str) -> Json:
    """Return the memory after a try that followed another.

    What the one before wrote may be in the VIM still: the next one found it done already, or ended
    before it wrote anything.
    """
    return {"state": (earlier.get("state") or state) if state == UNTOUCHED else state}
