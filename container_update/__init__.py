# SPDX-License-Identifier: Apache-2.0
"""Move a running CNF to a new package, restarting no more than the change touches.

The names in ``__all__`` are the library; everything else may move. Each is imported when it is
first used, so that ``import container_update`` costs nothing. Start reading in
:mod:`container_update.engine.run`.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing takes as long to load as all else before the command's first line
if TYPE_CHECKING:
    from container_update.cluster.client import connect
    from container_update.cluster.operation import Revision
    from container_update.engine.freezing import freeze, unfreeze
    from container_update.engine.goals.change_request import ChangeRequest
    from container_update.engine.goals.events import events
    from container_update.engine.goals.go_back import history
    from container_update.engine.resume import abort, promote, resume, rollback, status
    from container_update.engine.verbs import (
        apply_plan,
        change_package,
        heal,
        install,
        plan_change,
        plan_of,
        plan_undo,
        save_plan,
        scale,
        terminate,
        undo,
        update,
    )
    from container_update.engine.verbs import plan_of as plan_heal
    from container_update.engine.verbs import plan_of as plan_install
    from container_update.engine.verbs import plan_of as plan_scale
    from container_update.engine.verbs import plan_of as plan_uninstall
    from container_update.engine.verbs import plan_of as plan_update
    from container_update.engine.verbs import terminate as uninstall
    from container_update.model.cancellation import CancelToken
    from container_update.model.cluster import Cluster, ReadOnlyCluster
    from container_update.model.errors import (
        ClusterError,
        ContainerUpdateError,
        LeaseLostError,
        NextStep,
        PackageError,
        PlanError,
        UndoIncompleteError,
        UpdateFailedError,
        UpdateInProgressError,
        UpdateInterruptedError,
    )
    from container_update.model.operation import Status
    from container_update.model.options import Options
    from container_update.model.outcome import (
        Outcome,
        ResumeStarted,
        StepResult,
        StepWait,
        UndoStarted,
    )
    from container_update.model.plan import Plan, Step
    from container_update.model.requests import (
        ChangePackageRequest,
        HealRequest,
        InstallRequest,
        ScaleRequest,
        TerminateRequest,
        UndoRequest,
        UpdateRequest,
    )
    from container_update.model.scripts import ScriptStep
    from container_update.planning.strategy import Strategy
    from container_update.reports.outcome_report import describe
    from container_update.workloads.kind import WorkloadKind

    __version__: str

__all__ = [
    "CancelToken",
    "ChangePackageRequest",
    "ChangeRequest",
    "Cluster",
    "ClusterError",
    "ContainerUpdateError",
    "HealRequest",
    "InstallRequest",
    "LeaseLostError",
    "NextStep",
    "Options",
    "Outcome",
    "PackageError",
    "Plan",
    "PlanError",
    "ReadOnlyCluster",
    "ResumeStarted",
    "Revision",
    "ScaleRequest",
    "ScriptStep",
    "Status",
    "Step",
    "StepResult",
    "StepWait",
    "Strategy",
    "TerminateRequest",
    "UndoIncompleteError",
    "UndoRequest",
    "UndoStarted",
    "UpdateFailedError",
    "UpdateInProgressError",
    "UpdateInterruptedError",
    "UpdateRequest",
    "WorkloadKind",
    "__version__",
    "abort",
    "apply_plan",
    "change_package",
    "connect",
    "describe",
    "events",
    "freeze",
    "heal",
    "history",
    "install",
    "plan_change",
    "plan_heal",
    "plan_install",
    "plan_of",
    "plan_scale",
    "plan_undo",
    "plan_uninstall",
    "plan_update",
    "promote",
    "resume",
    "rollback",
    "save_plan",
    "scale",
    "status",
    "terminate",
    "undo",
    "unfreeze",
    "uninstall",
    "update",
]

_IN = {
    "cluster.client": "connect",
    "cluster.operation": "Revision",
    "engine.freezing": "freeze unfreeze",
    "engine.goals.change_request": "ChangeRequest",
    "engine.goals.events": "events",
    "engine.goals.go_back": "history",
    "engine.resume": "abort promote resume rollback status",
    "model.cancellation": "CancelToken",
    "model.cluster": "Cluster ReadOnlyCluster",
    "model.operation": "Status",
    "model.options": "Options",
    "model.outcome": "Outcome ResumeStarted StepResult StepWait UndoStarted",
    "model.plan": "Plan Step",
    "model.requests": (
        "ChangePackageRequest HealRequest InstallRequest ScaleRequest TerminateRequest UndoRequest "
        "UpdateRequest"
    ),
    "model.scripts": "ScriptStep",
    "planning.strategy": "Strategy",
    "reports.outcome_report": "describe",
    "workloads.kind": "WorkloadKind",
}
"""The names in a module; other operations are in ``engine.verbs``, errors in ``model.errors``."""

_PLANS = ("plan_heal", "plan_install", "plan_scale", "plan_uninstall", "plan_update")
_ALIASES = {**dict.fromkeys(_PLANS, "plan_of"), "uninstall": "terminate"}
"""Names that call the function of another one: every request has its plan from the same."""


def _load(name: str) -> object:
    """Return a public name's value (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415

        return version("container-update")
    from importlib import import_module  # noqa: PLC0415

    others = "engine.verbs" if name.islower() else "model.errors"
    place = next((module for module, names in _IN.items() if name in names.split()), others)
    module = import_module(f"{__name__}.{place}")
    value: object = getattr(module, _ALIASES.get(name, name))
    return value


if not TYPE_CHECKING:  # a type checker is to know the names above, and no others
    __getattr__ = _load


def __dir__() -> list[str]:
    return __all__
