"""What an update leaves with Tacker for a retry or a rollback (``user_script_err_handling_data``).

A rollback is not given the new package, so the images that it brought are noted, and what it
created. The content of ConfigMaps and Secrets never is: the old package has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from container_update.model.errors import (
    ClusterError,
    ContainerUpdateError,
    PackageError,
    PlanError,
    UndoIncompleteError,
    UpdateFailedError,
    UpdateInProgressError,
)
from container_update.model.objects import Json, ObjectKey
from container_update.model.plan import Action, Plan

KEPT = "user_script_err_handling_data"
OURS = "container_update"
"""Our place beside whatever other scripts keep."""

UNTOUCHED = "untouched"
UNDONE = "undone"
UNDO_INCOMPLETE = "undo incomplete"
UNKNOWN = "unknown"
UPDATED = "updated"
ROLLED_BACK = "rolled back"

SETTLED = frozenset({UNTOUCHED, ROLLED_BACK})
"""States of the cluster that leave a rollback nothing to do."""

STATE_AFTER: Mapping[type[ContainerUpdateError], str] = {
    PackageError: UNTOUCHED,
    PlanError: UNTOUCHED,
    ClusterError: UNTOUCHED,
    UpdateInProgressError: UNTOUCHED,
    UpdateFailedError: UNDONE,
    UndoIncompleteError: UNDO_INCOMPLETE,
}
"""How each error leaves the cluster; after any other its state is unknown."""


def remember(output: Json, ours: Json) -> None:
    """Have Tacker keep *ours*."""
    output[KEPT] = {OURS: ours}


def recall(script: Json) -> Json:
    """Return what was kept last, empty where nothing was."""
    return dict((script.get(KEPT) or {}).get(OURS) or {})


def after_update(plan: Plan) -> Json:
    """To be kept after a success: Tacker may still fail to record it."""
    return {"state": UPDATED, **brought(plan)}


def after_failure(error: ContainerUpdateError) -> Json:
    """To be kept after a failure."""
    state = STATE_AFTER.get(type(error), UNKNOWN)
    plan = brought(error.outcome.plan) if isinstance(error, UpdateFailedError) else {}
    return {"state": state, **plan}


def brought(plan: Plan) -> dict[str, list[Any]]:
    """Return what a plan adds to the old package: images, and objects that it creates."""
    return {
        "images": [[*_words(step.key), dict(step.images)] for step in plan.steps if step.images],
        "created": [
            _words(step.key)
            for step in plan.steps
            if step.is_config and step.action is Action.CREATE
        ],
    }


def images(ours: Json) -> dict[ObjectKey, dict[str, str]]:
    """Return the images that the update brought, by workload and container."""
    return {ObjectKey(*words[:-1]): words[-1] for words in ours.get("images", ())}


def created(ours: Json) -> tuple[ObjectKey, ...]:
    """Return the objects that the update created."""
    return tuple(ObjectKey(*words) for words in ours.get("created", ()))


def _words(key: ObjectKey) -> list[str]:
    return [key.group, key.kind, key.namespace, key.name]
