# SPDX-License-Identifier: Apache-2.0
"""Errors in pod specs, and the fields of a Pod's spec that may be changed."""

from __future__ import annotations

import copy
import re

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.api_errors import (
    FieldError,
    dangling,
    duplicate,
    forbidden_field,
    invalid_value,
    required_error,
    unsupported_error,
)
from container_update.emulator.kubernetes.rules import quantity
from container_update.emulator.kubernetes.rules.metadata import LABEL, label_rule

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_CHANGEABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)


def spec_errors(spec: Json, field: str) -> list[FieldError]:
    """Return the errors in a pod spec at *field*."""
    errors: list[FieldError] = []
    volumes = [str(volume.get("name", "")) for volume in spec.get("volumes", [])]
    for index, name in enumerate(volumes):
        errors += _name_error(name, f"{field}.volumes[{index}].name", volumes[:index])
        errors += _volume_errors(spec["volumes"][index], f"{field}.volumes[{index}]")
    containers = spec.get("containers", [])
    if not containers:
        errors.append(required_error(f"{field}.containers"))
    names: list[str] = []
    for group in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(group, [])):
            place = f"{field}.{group}[{index}]"
            name = str(container.get("name", ""))
            errors += _name_error(name, f"{place}.name", names)
            names.append(name)
            errors += _container_errors(container, place, volumes)
    policy = spec.get("restartPolicy")
    if policy is not None and policy not in _RESTART_POLICIES:
        errors.append(unsupported_error(f"{field}.restartPolicy", policy, _RESTART_POLICIES))
    return errors


def _volume_errors(volume: Json, field: str) -> list[FieldError]:
    sources = sorted(volume.keys() - {"name"})
    if len(sources) > 1:
        why = "may not specify more than 1 volume type"
        first = "emptyDir" if "emptyDir" in sources else sources[0]
        return [forbidden_field(f"{field}.{name}", why) for name in sources if name != first]
    if "configMap" in volume and not volume["configMap"].get("name"):
        return [required_error(f"{field}.configMap.name")]
    if "secret" in volume and not volume["secret"].get("secretName"):
        return [required_error(f"{field}.secret.secretName")]
    return []


def _name_error(name: str, field: str, taken: list[str]) -> list[FieldError]:
    if not name:
        return [required_error(field)]
    if name in taken:
        return [duplicate(field, name)]
    if not re.fullmatch(LABEL, name):
        return [invalid_value(field, name, label_rule(name))]
    if len(name) > 63:
        return [invalid_value(field, name, "must be no more than 63 bytes")]
    return []


def _container_errors(container: Json, field: str, volumes: list[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    image = container.get("image", "")
    if not image:
        errors.append(required_error(f"{field}.image"))
    elif image != image.strip():
        errors.append(
            invalid_value(f"{field}.image", image, "must not have leading or trailing whitespace")
        )
    policy = container.get("imagePullPolicy", "IfNotPresent")
    if policy not in _PULL_POLICIES:
        errors.append(unsupported_error(f"{field}.imagePullPolicy", policy, _PULL_POLICIES))
    for index, port in enumerate(container.get("ports", [])):
        number = port.get("containerPort", 0)
        if not number:
            errors.append(required_error(f"{field}.ports[{index}].containerPort"))
        elif not 0 < number < 65536:
            why = "must be between 1 and 65535, inclusive"
            errors.append(invalid_value(f"{field}.ports[{index}].containerPort", number, why))
    errors += _resource_errors(container.get("resources", {}), f"{field}.resources")
    for index, variable in enumerate(container.get("env", [])):
        errors += _variable_errors(variable, f"{field}.env[{index}]")
    paths: list[str] = []
    for index, mount in enumerate(container.get("volumeMounts", [])):
        place = f"{field}.volumeMounts[{index}]"
        if not mount.get("name"):
            errors.append(required_error(f"{place}.name"))
        elif mount["name"] not in volumes:
            errors.append(dangling(f"{place}.name", mount["name"]))
        path = mount.get("mountPath", "")
        if not path:
            errors.append(required_error(f"{place}.mountPath"))
        elif path in paths:
            errors.append(invalid_value(f"{place}.mountPath", path, "must be unique"))
        paths.append(path)
    return errors


def _resource_errors(resources: Json, field: str) -> list[FieldError]:
    limits = resources.get("limits", {})
    return [
        invalid_value(
            f"{field}.requests",
            asked,
            f"must be less than or equal to {name} limit of {limits[name]}",
        )
        for name, asked in resources.get("requests", {}).items()
        if name in limits and quantity.value(asked) > quantity.value(limits[name])
    ]


def _variable_errors(variable: Json, field: str) -> list[FieldError]:
    errors = [] if variable.get("name") else [required_error(f"{field}.name")]
    source = variable.get("valueFrom")
    if source is not None and variable.get("value"):
        why = "may not be specified when `value` is not empty"
        errors.append(invalid_value(f"{field}.valueFrom", "", why))
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if source and kind in source and not source[kind].get("key"):
            errors.append(required_error(f"{field}.valueFrom.{kind}.key"))
    return errors


def change_errors(old: Json, new: Json) -> list[FieldError]:
    """Return the error if a Pod's new spec changes what may not be changed."""
    if old == new:
        return []
    if len(old.get("containers", [])) != len(new.get("containers", [])):
        return [forbidden_field("spec.containers", "pod updates may not add or remove containers")]
    allowed = copy.deepcopy(old)
    for group in ("containers", "initContainers"):
        for before, after in zip(allowed.get(group, []), new.get(group, []), strict=False):
            if after.get("image"):
                before["image"] = after["image"]
    if "activeDeadlineSeconds" in new:
        allowed["activeDeadlineSeconds"] = new["activeDeadlineSeconds"]
    tolerations = new.get("tolerations", [])
    if all(entry in tolerations for entry in old.get("tolerations", [])):
        allowed["tolerations"] = tolerations
    return [] if allowed == new else [forbidden_field("spec", _CHANGEABLE)]
