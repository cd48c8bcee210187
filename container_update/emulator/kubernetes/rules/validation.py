# SPDX-License-Identifier: Apache-2.0
"""Errors in objects and in changes of objects, kind by kind.

Each function gets the object as it would be stored and, for a change, the stored one. The messages
are those recorded from a Kubernetes 1.36 API server, or those in its API reference.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any

from container_update.emulator.json_type import Json, compact
from container_update.emulator.kubernetes import selectors
from container_update.emulator.kubernetes.api_errors import (
    FieldError,
    forbidden_field,
    invalid_value,
    required,
    too_long,
    unsupported,
)
from container_update.emulator.kubernetes.resources import Resource
from container_update.emulator.kubernetes.rules import pod_validation, quantity, structural

Check = Callable[[Json, "Json | None"], list[FieldError]]

MAX_DATA_BYTES = 1048576
"""The limit of all values of a ConfigMap or Secret together."""

_IMMUTABLE = "field is immutable"
_IMMUTABLE_DATA = "field is immutable when `immutable` is set"
_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
    "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_STATEFUL_CHANGEABLE = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
)  # fmt: skip
_SECRET_KEYS: Mapping[str, tuple[str, ...]] = {
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}


def errors(kind: Resource, new: Json, old: Json | None = None) -> list[FieldError]:
    """Return the errors in *new*, or in changing *old* into it."""
    if kind.custom:
        return structural.errors(kind, new)
    check = _CHECKS.get(kind.key)
    return check(new, old) if check else []


# --- configuration ----------------------------------------------------------------------------


def _config_map(new: Json, old: Json | None) -> list[FieldError]:
    data, binary = new.get("data", {}), new.get("binaryData", {})
    problems = _key_errors("data", data) + _key_errors("binaryData", binary)
    size = sum(len(text.encode()) for text in data.values())
    if size + _decoded_size(binary) > MAX_DATA_BYTES:
        problems.append(too_long("", MAX_DATA_BYTES))
    return problems + _immutable_errors(new, old)


def _secret(new: Json, old: Json | None) -> list[FieldError]:
    data = new.get("data", {})
    problems = _key_errors("data", data)
    if _decoded_size(data) > MAX_DATA_BYTES:
        problems.append(too_long("data", MAX_DATA_BYTES))
    kind = str(new["type"])
    if old and old["type"] != kind:
        problems.append(invalid_value("type", kind, _IMMUTABLE))
    elif not old:
        missing = [key for key in _SECRET_KEYS.get(kind, ()) if key not in data]
        problems += [required(f"data[{key}]") for key in missing]
    return problems + _immutable_errors(new, old)


def _immutable_errors(new: Json, old: Json | None) -> list[FieldError]:
    if not old or not old.get("immutable"):
        return []
    problems = []
    if not new.get("immutable"):
        problems.append(forbidden_field("immutable", _IMMUTABLE_DATA))
    for part in ("data", "binaryData"):
        if new.get(part, {}) != old.get(part, {}):
            problems.append(forbidden_field(part, _IMMUTABLE_DATA))
    return problems


def _key_errors(field: str, data: Json) -> list[FieldError]:
    return [
        invalid_value(f"{field}[{key}]", key, _KEY_RULE)
        for key in data
        if not _KEY.fullmatch(key) or key in (".", "..")
    ]


def _decoded_size(coded: Json) -> int:
    return sum(len(base64.b64decode(text)) for text in coded.values())


# --- workloads --------------------------------------------------------------------------------


def _pod(new: Json, old: Json | None) -> list[FieldError]:
    problems = pod_validation.spec_errors(new["spec"], "spec")
    if old is None:
        if new["spec"].get("ephemeralContainers"):
            problems.append(forbidden_field("spec.ephemeralContainers", "cannot be set on create"))
        return problems
    return problems + pod_validation.change_errors(old["spec"], new["spec"])


def _replicated(new: Json, old: Json | None) -> list[FieldError]:
    """Check a Deployment or ReplicaSet: its selector never changes and matches the template."""
    return _workload_errors(new) + _selector_change(new, old)


def _deployment(new: Json, old: Json | None) -> list[FieldError]:
    problems = _replicated(new, old)
    strategy = new["spec"]["strategy"]
    if strategy["type"] == "Recreate" and "rollingUpdate" in strategy:
        why = "may not be specified when strategy `type` is 'Recreate'"
        problems.append(forbidden_field("spec.strategy.rollingUpdate", why))
    return problems


def _daemon_set(new: Json, old: Json | None) -> list[FieldError]:
    return _selector_change(new, old) + _workload_errors(new)


def _stateful_set(new: Json, old: Json | None) -> list[FieldError]:
    """Check all but the pod spec: the server checks that of the pods, when they are created."""
    problems = _template_errors(new)
    if old and _fixed_part(old["spec"]) != _fixed_part(new["spec"]):
        *most, last = (f"'{name}'" for name in _STATEFUL_CHANGEABLE)
        names = f"{', '.join(most)} and {last}"
        why = f"updates to statefulset spec for fields other than {names} are forbidden"
        problems.append(forbidden_field("spec", why))
    return problems


def _fixed_part(spec: Json) -> Json:
    return {key: value for key, value in spec.items() if key not in _STATEFUL_CHANGEABLE}


def _workload_errors(new: Json) -> list[FieldError]:
    template = new["spec"]["template"]
    return _template_errors(new) + pod_validation.spec_errors(
        template["spec"], "spec.template.spec"
    )


def _template_errors(new: Json) -> list[FieldError]:
    spec = new["spec"]
    template, selector = spec["template"], spec.get("selector")
    problems = []
    if not selector:
        problems.append(required("spec.selector"))
    if spec.get("replicas", 0) < 0:
        why = "must be greater than or equal to 0"
        problems.append(invalid_value("spec.replicas", spec["replicas"], why))
    labels = template["metadata"].get("labels", {})
    if not selector or not selectors.matches(selector, labels):
        why = "`selector` does not match template `labels`"
        problems.append(invalid_value("spec.template.metadata.labels", labels or None, why))
    policy = template["spec"].get("restartPolicy")
    if policy != "Always":
        problems.append(unsupported("spec.template.spec.restartPolicy", policy, ["Always"]))
    return problems


def _selector_change(new: Json, old: Json | None) -> list[FieldError]:
    selector = new["spec"].get("selector")
    if not old or selector == old["spec"].get("selector"):
        return []
    return [invalid_value("spec.selector", selector, _IMMUTABLE)]


_FIXED_IN_JOB = (
    "backoffLimitPerIndex", "completionMode", "completions", "managedBy", "podFailurePolicy",
    "selector", "successPolicy", "template",
)  # fmt: skip


def _job(new: Json, old: Json | None) -> list[FieldError]:
    spec = new["spec"]
    problems = _job_template_errors(spec["template"], "spec.template")
    if old:
        before = old["spec"]
        for key in _FIXED_IN_JOB:
            if spec.get(key) != before.get(key):
                problems.append(invalid_value(f"spec.{key}", spec.get(key), _IMMUTABLE))
    return problems


def _cron_job(new: Json, _old: Json | None) -> list[FieldError]:
    spec = new["spec"]
    problems = []
    if not spec.get("schedule"):
        problems.append(required("spec.schedule"))
    elif len(spec["schedule"].split()) != 5 and not spec["schedule"].startswith("@"):
        why = f"expected exactly 5 fields, found {len(spec['schedule'].split())}: "
        problems.append(
            invalid_value("spec.schedule", spec["schedule"], why + compact([spec["schedule"]]))
        )
    template = spec["jobTemplate"]["spec"]["template"]
    return problems + _job_template_errors(template, "spec.jobTemplate.spec.template")


def _job_template_errors(template: Json, field: str) -> list[FieldError]:
    problems = pod_validation.spec_errors(template["spec"], f"{field}.spec")
    policy = template["spec"].get("restartPolicy")
    if policy is None:
        why = 'valid values: "OnFailure", "Never"'
        problems.append(required(f"{field}.spec.restartPolicy", why))
    elif policy == "Always":
        problems.append(unsupported(f"{field}.spec.restartPolicy", policy, ["OnFailure", "Never"]))
    return problems


# --- the rest ---------------------------------------------------------------------------------


def _disruption_budget(new: Json, _old: Json | None) -> list[FieldError]:
    spec = new.get("spec", {})
    if "minAvailable" in spec and "maxUnavailable" in spec:
        why = "minAvailable and maxUnavailable cannot be both set"
        return [invalid_value("spec", spec, why)]
    return []


def _service(new: Json, old: Json | None) -> list[FieldError]:
    spec = new["spec"]
    problems = []
    headless = spec.get("clusterIP") == "None" or spec["type"] == "ExternalName"
    if not spec.get("ports") and not headless:
        problems.append(required("spec.ports"))
    for index, port in enumerate(spec.get("ports", [])):
        if not port.get("name") and len(spec["ports"]) > 1:
            problems.append(required(f"spec.ports[{index}].name"))
        number = port.get("port", 0)
        if not 0 < number < 65536:
            why = "must be between 1 and 65535, inclusive"
            problems.append(invalid_value(f"spec.ports[{index}].port", number, why))
    if spec.get("clusterIP") == "None" and spec["type"] in ("NodePort", "LoadBalancer"):
        why = f"may not be set to 'None' for {spec['type']} services"
        problems.append(invalid_value("spec.clusterIPs[0]", spec.get("clusterIPs"), why))
    stored = old["spec"].get("clusterIP") if old and spec["type"] != "ExternalName" else None
    if stored and spec.get("clusterIP") != stored:
        why = "may not change once set"
        problems.append(invalid_value("spec.clusterIPs[0]", spec.get("clusterIPs"), why))
    return problems


_CLAIM_CHANGEABLE = ("resources", "volumeAttributesClassName")


def _claim(new: Json, old: Json | None) -> list[FieldError]:
    if old is None:
        return []
    given_later = {"volumeName", "storageClassName"} - old["spec"].keys()
    changeable = {*_CLAIM_CHANGEABLE, *given_later}
    fixed = [{k: v for k, v in body["spec"].items() if k not in changeable} for body in (old, new)]
    if fixed[0] == fixed[1]:
        return _shrunk(new, old)
    why = (
        "spec is immutable after creation except resources.requests and "
        "volumeAttributesClassName for bound claims"
    )
    return [forbidden_field("spec", why)]


def _shrunk(new: Json, old: Json) -> list[FieldError]:
    sizes = [body["spec"].get("resources", {}).get("requests", {}) for body in (new, old)]
    sizes.append(old.get("status", {}).get("capacity", {}))
    now, before, capacity = (quantity.value(size.get("storage", 0)) for size in sizes)
    if now >= before or now > capacity:
        return []
    field = "spec.resources.requests.storage"
    return [forbidden_field(field, "field can not be less than status.capacity")]


def _definition(new: Json, _old: Json | None) -> list[FieldError]:
    spec, name = new["spec"], new["metadata"].get("name", "")
    problems = []
    if name != f"{spec['names'].get('plural', '')}.{spec.get('group', '')}":
        why = 'must be spec.names.plural+"."+spec.group'
        problems.append(invalid_value("metadata.name", name, why))
    for index, version in enumerate(spec.get("versions", [])):
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            field = f"spec.versions[{index}].schema.openAPIV3Schema"
            problems.append(required(field, "schemas are required"))
    return problems


def _binding(new: Json, old: Json | None) -> list[FieldError]:
    role = new.get("roleRef")
    if old is None or role == old.get("roleRef"):
        return []
    names = {"APIGroup": "apiGroup", "Kind": "kind", "Name": "name"}  # as the server is written
    value = {name: (role or {}).get(field, "") for name, field in names.items()}
    return [invalid_value("roleRef", value, "cannot change roleRef")]


def _storage_class(new: Json, old: Json | None) -> list[FieldError]:
    fields = ("parameters", "provisioner", "reclaimPolicy")
    problems = [
        forbidden_field(field, f"updates to {field} are forbidden.")
        for field in fields
        if old is not None and new.get(field) != old.get(field)
    ]
    return problems + _fixed("volumeBindingMode")(new, old)


def _priority_class(new: Json, old: Json | None) -> list[FieldError]:
    problems = _fixed("preemptionPolicy")(new, old)
    if old is not None and new.get("value", 0) != old.get("value", 0):
        problems.insert(0, forbidden_field("value", "may not be changed in an update."))
    return problems


def _fixed(*path: str) -> Check:
    """Return the check of a field that never changes."""

    def check(new: Json, old: Json | None) -> list[FieldError]:
        if old is None:
            return []
        now: Any = new
        then: Any = old
        for name in path:
            now, then = ((body or {}).get(name) for body in (now, then))
        return [] if now == then else [invalid_value(".".join(path), now, _IMMUTABLE)]

    return check


_CHECKS: Mapping[str, Check] = {
    "clusterrolebindings": _binding,
    "configmaps": _config_map,
    "cronjobs": _cron_job,
    "customresourcedefinitions": _definition,
    "daemonsets": _daemon_set,
    "deployments": _deployment,
    "ingressclasses": _fixed("spec", "controller"),
    "jobs": _job,
    "persistentvolumeclaims": _claim,
    "poddisruptionbudgets": _disruption_budget,
    "pods": _pod,
    "priorityclasses": _priority_class,
    "replicasets": _replicated,
    "rolebindings": _binding,
    "runtimeclasses": _fixed("handler"),
    "secrets": _secret,
    "services": _service,
    "statefulsets": _stateful_set,
    "storageclasses": _storage_class,
}
