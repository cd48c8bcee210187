# SPDX-License-Identifier: Apache-2.0
"""The kinds of step of a plan for a cluster, one class each.

A step is applied to the object as it is read at that time, not as it was when the plan was made:
what others wrote in the meantime (replicas by an autoscaler, a label) stays. All of it is pure;
:mod:`container_update.engine` carries the steps out.
"""

from container_update.planning.steps.base import ObjectStep, object_steps
from container_update.planning.steps.config import ConfigStep
from container_update.planning.steps.manifest import ManifestStep
from container_update.planning.steps.workload import PodsStep, RestartStep, ScaleStep, WorkloadStep

__all__ = [
    "ConfigStep",
    "ManifestStep",
    "ObjectStep",
    "PodsStep",
    "RestartStep",
    "ScaleStep",
    "WorkloadStep",
    "object_steps",
]
