# SPDX-License-Identifier: Apache-2.0
"""The one place where a step's kind decides who carries it out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from container_update.engine.context import ExecutionContext
from container_update.engine.executors.config import ConfigExecutor
from container_update.engine.executors.hand_over import HandOverExecutor
from container_update.engine.executors.manifest import ManifestExecutor
from container_update.engine.executors.pauses import GateExecutor, HoldExecutor, ScriptExecutor
from container_update.engine.executors.pods import PodsExecutor, ScaleExecutor
from container_update.engine.executors.workload import WorkloadExecutor
from container_update.model.pauses import GateStep, HoldStep
from container_update.model.plan import Action, Step
from container_update.model.scripts import ScriptStep
from container_update.planning.steps import (
    ConfigStep,
    ManifestStep,
    PodsStep,
    RestartStep,
    ScaleStep,
)

_EXECUTORS: Mapping[type[Step], type[Any]] = {
    ConfigStep: ConfigExecutor,
    RestartStep: WorkloadExecutor,
    ManifestStep: ManifestExecutor,
    PodsStep: PodsExecutor,
    ScaleStep: ScaleExecutor,
    ScriptStep: ScriptExecutor,
    HoldStep: HoldExecutor,
    GateStep: GateExecutor,
}


def executor_of(step: Step, context: ExecutionContext) -> Any:
    """Return what applies and reverts this kind of step."""
    executor = _EXECUTORS[type(step)]
    if executor is ManifestExecutor and step.action is Action.HAND_OVER:
        executor = HandOverExecutor
    elif executor is ManifestExecutor and step.starts_pods and step.action is not Action.CREATE:
        executor = WorkloadExecutor  # the pods are there already
    return executor(context)
