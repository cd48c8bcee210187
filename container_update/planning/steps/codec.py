# SPDX-License-Identifier: Apache-2.0
"""Steps to plain values and back, for the journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from container_update.model.objects import Json, ObjectKey
from container_update.model.pauses import GateStep, HoldStep
from container_update.model.plan import Action, ImageChange, KeyChange, Reason, Step
from container_update.model.scripts import ScriptStep, VduChange
from container_update.planning.steps.base import ObjectStep
from container_update.planning.steps.config import ConfigStep
from container_update.planning.steps.manifest import ManifestStep
from container_update.planning.steps.workload import PodsStep, RestartStep, ScaleStep

_TYPES: Mapping[str, type[Step]] = {
    "config": ConfigStep,
    "manifest": ManifestStep,
    "pods": PodsStep,
    "restart": RestartStep,
    "scale": ScaleStep,
    "script": ScriptStep,
    "hold": HoldStep,
    "gate": GateStep,
}
_NAMES = {step_type: name for name, step_type in _TYPES.items()}

_CAUSES: Mapping[str, type[ImageChange | KeyChange]] = {"image": ImageChange, "key": KeyChange}
"""Those causes that a history shows; of the others the sentence is enough."""


def step_to_dict(step: Step) -> Json:
    """Return the step as plain values, without ``metadata.managedFields`` of its object."""
    values: Json = {entry.name: getattr(step, entry.name) for entry in fields(step)}
    if isinstance(step, ObjectStep) and step.before is not None:
        metadata = {k: v for k, v in step.before["metadata"].items() if k != "managedFields"}
        values["before"] = {**step.before, "metadata": metadata}
    if isinstance(step, ScriptStep):
        values["vdu"] = asdict(step.vdu)
    if isinstance(step, GateStep) and step.script:
        values["script"] = step_to_dict(step.script)
    return {
        **values,
        "type": _NAMES[type(step)],
        "key": step.key.as_dict(),
        "action": step.action.name,
        "reasons": [_reason_to_dict(reason) for reason in step.reasons],
    }


def step_from_dict(values: Mapping[str, Any]) -> Step:
    """Return the step that :func:`step_to_dict` described."""
    stated = values.get("content") or values.get("before") or {}
    attributes = {
        **values,
        "key": ObjectKey(**values["key"], api_version=stated.get("apiVersion", "")),
        "action": Action[values["action"]],
        "reasons": tuple(map(_reason_from_dict, values["reasons"])),
    }
    for pairs in {"dropped", "pods"} & values.keys():
        attributes[pairs] = tuple((first, second) for first, second in values[pairs])
    step_type = _TYPES[attributes.pop("type")]
    if step_type is ScriptStep:
        attributes["vdu"] = VduChange(**values["vdu"])
    if step_type is GateStep and values.get("script"):
        attributes["script"] = step_from_dict(values["script"])
    if step_type is ConfigStep:
        attributes["removed"] = tuple(values["removed"])
    return step_type(**attributes)


def _reason_to_dict(reason: Reason) -> Json:
    for name, cause_type in _CAUSES.items():
        if isinstance(reason.cause, cause_type):
            return {"text": reason.text, name: asdict(reason.cause)}
    return {"text": reason.text}


def _reason_from_dict(values: Mapping[str, Any]) -> Reason:
    causes = (_CAUSES[name](**values[name]) for name in _CAUSES if name in values)
    return Reason(values["text"], next(causes, None))
