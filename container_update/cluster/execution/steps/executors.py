"""The one place where a step's kind decides who carries it out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from container_update.cluster.execution.context import ExecutionContext, StepExecutor
from container_update.cluster.execution.steps.config import ConfigExecutor
from container_update.cluster.execution.steps.manifest import ManifestExecutor
from container_update.cluster.execution.steps.pods import PodsExecutor, ScaleExecutor
from container_update.cluster.execution.steps.workload import WorkloadExecutor
from container_update.planning.steps import (
    ConfigStep,
    ManifestStep,
    ObjectStep,
    PodsStep,
    RestartStep,
    ScaleStep,
)

_EXECUTORS: Mapping[type[ObjectStep], type[StepExecutor[Any]]] = {
    ConfigStep: ConfigExecutor,
    RestartStep: WorkloadExecutor,
    ManifestStep: ManifestExecutor,
    PodsStep: PodsExecutor,
    ScaleStep: ScaleExecutor,
}


def executor_of(step: ObjectStep, context: ExecutionContext) -> StepExecutor[Any]:
    """Return what applies and reverts this kind of step."""
    return _EXECUTORS[type(step)](context)
