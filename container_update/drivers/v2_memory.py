# SPDX-License-Identifier: Apache-2.0
"""What an update leaves with Tacker for a retry or a rollback (``user_script_err_handling_data``).

A rollback does not get the new package, so the images from it are recorded, and the objects that
the update created. The content of ConfigMaps and Secrets never is: the old package has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

from container_update.model import errors
from container_update.model.objects import Json, ObjectKey
from container_update.model.plan import Action, Plan

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

SETTLED = frozenset({UNTOUCHED, ROLLED_BACK})
"""States of the cluster that leave a rollback nothing to do."""

STATE_AFTER: Mapping[type[errors.ContainerUpdateError], str] = {
    errors.PackageError: UNTOUCHED,
    errors.PlanError: UNTOUCHED,
    errors.ClusterError: UNTOUCHED,
    errors.UpdateInProgressError: UNTOUCHED,
    errors.UpdateFailedError: UNDONE,
    errors.UndoIncompleteError: UNDO_INCOMPLETE,
}
"""How each error leaves the cluster; after any other its state is unknown."""


def remember(output: Json, ours: Json) -> None:
    """Add *ours* to what Tacker keeps."""
    output[KEPT] = {OURS: ours}


def recall(script: Json) -> Json:
    """Return what was kept last; may be empty."""
    return dict((script.get(KEPT) or {}).get(OURS) or {})


def has_nothing_to_undo(kept: Mapping[str, Any]) -> bool:
    """Return whether what all scripts left says that the VIM is as it was before."""
    return all(name == OURS and ours.get("state") in SETTLED for name, ours in kept.items())


def joined(earlier: Mapping[str, Any], ours: Json) -> Json:
    """Return what is kept after a try that followed another.

    What the one before wrote may be in the VIM still: the next one found it done already, or ended
    before it wrote anything.

    :param earlier: what was kept after the try before; may be empty.
    :param ours: what is kept after this one.
    """
    both = {name: list(earlier.get(name) or ()) for name in ("images", "created")}
    for name, entries in both.items():
        new = ours.get(name) or ()
        both[name] = [*(entry for entry in entries if entry not in new), *new]
    state = ours["state"]
    if state == UNTOUCHED:
        state = earlier.get("state") or UNTOUCHED
    return {"state": state, **{name: entries for name, entries in both.items() if entries}}


def after_update(plan: Plan) -> Json:
    """Return what is kept after a success: Tacker may still fail to record it."""
    return {"state": UPDATED, **additions(plan)}


def after_failure(error: errors.ContainerUpdateError) -> Json:
    """Return what is kept after a failure."""
    state = STATE_AFTER.get(type(error), UNKNOWN)
    plan = additions(error.outcome.plan) if isinstance(error, errors.UpdateFailedError) else {}
    return {"state": state, **plan}


def additions(plan: Plan) -> dict[str, list[Any]]:
    """Return what a plan adds to the old package: images, and objects that it creates."""
    return {
        "images": [[*astuple(step.key), dict(step.images)] for step in plan.steps if step.images],
        "created": [
            list(astuple(step.key))
            for step in plan.steps
            if step.is_config and step.action is Action.CREATE
        ],
    }


def images(ours: Json) -> dict[ObjectKey, dict[str, str]]:
    """Return the images that the update set, by workload and container."""
    return {ObjectKey(*words[:-1]): words[-1] for words in ours.get("images", ())}


def created(ours: Json) -> tuple[ObjectKey, ...]:
    """Return the objects that the update created."""
    return tuple(ObjectKey(*words) for words in ours.get("created", ()))
