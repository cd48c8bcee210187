"""What the server refuses in a pod spec, and which of its fields a running Pod may change."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.api_errors import (
    FieldError,
    dangling,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    unsupported,
)

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_DNS_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    f"for validation is '{_DNS_LABEL.pattern}')"
)
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_CHANGEABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)


def spec_errors(spec: Json, field: str) -> list[FieldError]:
    """What is wrong with a pod spec that is found at *field*."""
    found: list[FieldError] = []
    volumes = [str(volume.get("name", "")) for volume in spec.get("volumes", [])]
    found += _name_errors(volumes, f"{field}.volumes")
    containers = spec.get("containers", [])
    if not containers:
        found.append(required(f"{field}.containers"))
    names: list[str] = []
    for group in ("containers", "initContainers"):
        for place, container in enumerate(spec.get(group, [])):
            here = f"{field}.{group}[{place}]"
            name = str(container.get("name", ""))
            found += _name_error(name, f"{here}.name", names)
            names.append(name)
            found += _container_errors(container, here, volumes)
    policy = spec.get("restartPolicy")
    if policy is not None and policy not in _RESTART_POLICIES:
        found.append(unsupported(f"{field}.restartPolicy", policy, _RESTART_POLICIES))
    return found


def _name_errors(names: Iterable[str], field: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: list[str] = []
    for place, name in enumerate(names):
        found += _name_error(name, f"{field}[{place}].name", seen)
        seen.append(name)
    return found


def _name_error(name: str, field: str, taken: list[str]) -> list[FieldError]:
    if not name:
        return [required(field)]
    if name in taken:
        return [duplicate(field, name)]
    if not _DNS_LABEL.fullmatch(name):
        return [invalid_value(field, name, _DNS_LABEL_RULE)]
    if len(name) > 63:
        return [invalid_value(field, name, "must be no more than 63 bytes")]
    return []


def _container_errors(container: Json, here: str, volumes: list[str]) -> list[FieldError]:
    found: list[FieldError] = []
    image = container.get("image", "")
    if not image:
        found.append(required(f"{here}.image"))
    elif image != image.strip():
        found.append(
            invalid_value(f"{here}.image", image, "must not have leading or trailing whitespace")
        )
    policy = container.get("imagePullPolicy", "IfNotPresent")
    if policy not in _PULL_POLICIES:
        found.append(unsupported(f"{here}.imagePullPolicy", policy, _PULL_POLICIES))
    for place, variable in enumerate(container.get("env", [])):
        found += _variable_errors(variable, f"{here}.env[{place}]")
    paths: list[str] = []
    for place, mount in enumerate(container.get("volumeMounts", [])):
        mount_field = f"{here}.volumeMounts[{place}]"
        if not mount.get("name"):
            found.append(required(f"{mount_field}.name"))
        elif mount["name"] not in volumes:
            found.append(dangling(f"{mount_field}.name", mount["name"]))
        path = mount.get("mountPath", "")
        if not path:
            found.append(required(f"{mount_field}.mountPath"))
        elif path in paths:
            found.append(invalid_value(f"{mount_field}.mountPath", path, "must be unique"))
        paths.append(path)
    return found


def _variable_errors(variable: Json, field: str) -> list[FieldError]:
    found = [] if variable.get("name") else [required(f"{field}.name")]
    source = variable.get("valueFrom")
    if source is not None and variable.get("value"):
        why = "may not be specified when `value` is not empty"
        found.append(invalid_value(f"{field}.valueFrom", "", why))
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if source and kind in source and not source[kind].get("key"):
            found.append(required(f"{field}.valueFrom.{kind}.key"))
    return found


def change_errors(old: Json, new: Json) -> list[FieldError]:
    """What a Pod's new spec changes that it may not."""
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
