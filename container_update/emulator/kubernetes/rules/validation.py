# SPDX-License-Identifier: Apache-2.0
"""Errors in objects and in changes of objects, kind by kind.

Each function gets the object as it would be stored and, for a change, the stored one. The messages
are those recorded from a Kubernetes 1.36 API server, or those in its API reference.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from ipaddress import ip_address, ip_network
from typing import Any

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import selectors
from container_update.emulator.kubernetes.api_errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid_value,
    required_error,
    too_long,
    unsupported_error,
)
from container_update.emulator.kubernetes.resources import Resource
from container_update.emulator.kubernetes.rules import pod_validation, quantity, structural

Check = Callable[[Json, "Json | None"], list[FieldError]]

MAX_DATA_BYTES = 1048576
"""The limit of all values of a ConfigMap or Secret together."""

SERVICE_RANGE = ip_network("10.96.0.0/16")
"""The addresses of Services."""

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
    problems += [
        invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData")
        for key in data
        if key in binary
    ]
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
        problems += [required_error(f"data[{key}]") for key in missing]
        problems += _typed_secret_errors(kind, new, data)
    return problems + _immutable_errors(new, old)


def _typed_secret_errors(kind: str, new: Json, data: Json) -> list[FieldError]:
    """Return what a Secret of a type that the server knows lacks beside its keys."""
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & data.keys():
        return [required_error("data[username]"), required_error("data[password]")]
    if kind == "kubernetes.io/service-account-token":
        name = "kubernetes.io/service-account.name"
        if name not in new["metadata"].get("annotations", {}):
            return [required_error(f"metadata.annotations[{name}]")]
    if kind == "kubernetes.io/dockerconfigjson" and ".dockerconfigjson" in data:
        try:
            json.loads(base64.b64decode(data[".dockerconfigjson"]))
        except ValueError:
            field, hidden = "data[.dockerconfigjson]", "<secret contents redacted>"
            return [invalid_value(field, hidden, "it is no JSON")]
    return []


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


def _check_replicated(new: Json, old: Json | None) -> list[FieldError]:
    """Check a Deployment or ReplicaSet: its selector never changes and matches the template."""
    return _workload_errors(new) + _selector_change(new, old)


def _deployment(new: Json, old: Json | None) -> list[FieldError]:
    problems = _check_replicated(new, old)
    strategy = new["spec"]["strategy"]
    if strategy["type"] not in ("Recreate", "RollingUpdate"):
        problems.append(unsupported_error("spec.strategy", strategy, ["Recreate", "RollingUpdate"]))
    rolling = strategy.get("rollingUpdate", {})
    if all(str(rolling.get(part)) in ("0", "0%") for part in ("maxSurge", "maxUnavailable")):
        field = "spec.strategy.rollingUpdate.maxUnavailable"
        why = "may not be 0 when `maxSurge` is 0"
        problems.append(invalid_value(field, rolling["maxUnavailable"], why))
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
    if selector is None:
        problems.append(required_error("spec.selector"))
    elif not selector:
        why = f"empty selector is invalid for {new['kind'].lower()}"
        problems.append(invalid_value("spec.selector", selector, why))
    if spec.get("replicas", 0) < 0:
        why = "must be greater than or equal to 0"
        problems.append(invalid_value("spec.replicas", spec["replicas"], why))
    labels = template["metadata"].get("labels", {})
    if selector is None or not selectors.matches(selector, labels):
        problems.append(_unmatched_error(labels or None))
    policy = template["spec"].get("restartPolicy")
    if policy != "Always":
        problems.append(unsupported_error("spec.template.spec.restartPolicy", policy, ["Always"]))
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
    selector = spec.get("selector")
    if old is None:
        if selector is not None and not spec["manualSelector"]:
            problems.append(_unmatched_error({"job-name": new["metadata"].get("name", "")}))
            problems.append(
                invalid_value("spec.selector", selector, "`selector` not auto-generated")
            )
        return problems
    if selector is None:
        labels = spec["template"]["metadata"].get("labels")
        problems += [_unmatched_error(labels), required_error("spec.selector")]
    before = old["spec"]
    parts = {key: (before.get(key), spec.get(key)) for key in _FIXED_IN_JOB}
    if before.get("suspend"):
        then, now = map(_fixed_in_suspended, parts["template"])
        parts["template"] = then, now
    problems += [
        invalid_value(f"spec.{key}", now, _IMMUTABLE)
        for key, (then, now) in parts.items()
        if then != now
    ]
    return problems


def _unmatched_error(labels: Json | None) -> FieldError:
    why = "`selector` does not match template `labels`"
    return invalid_value("spec.template.metadata.labels", labels, why)


def _fixed_in_suspended(template: Json) -> Json:
    """Return what cannot change of a suspended Job's template: not labels, nor where pods run."""
    free = ("affinity", "nodeSelector", "schedulingGates", "tolerations")
    spec = {key: value for key, value in template["spec"].items() if key not in free}
    metadata = template["metadata"].items()
    fixed = {key: value for key, value in metadata if key not in ("annotations", "labels")}
    return {**template, "metadata": fixed, "spec": spec}


def _cron_job(new: Json, _old: Json | None) -> list[FieldError]:
    spec = new["spec"]
    problems = []
    if not spec.get("schedule"):
        problems.append(required_error("spec.schedule"))
    elif len(spec["schedule"].split()) != 5 and not spec["schedule"].startswith("@"):
        fields = spec["schedule"].split()
        why = f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
        problems.append(invalid_value("spec.schedule", spec["schedule"], why))
    template = spec["jobTemplate"]["spec"]["template"]
    return problems + _job_template_errors(template, "spec.jobTemplate.spec.template")


def _job_template_errors(template: Json, field: str) -> list[FieldError]:
    problems = pod_validation.spec_errors(template["spec"], f"{field}.spec")
    policy = template["spec"].get("restartPolicy")
    if policy in (None, "Always"):
        why = 'valid values: "OnFailure", "Never"'
        problems.append(required_error(f"{field}.spec.restartPolicy", why))
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
    if spec["type"] not in _SERVICE_TYPES:
        return [unsupported_error("spec.type", spec["type"], _SERVICE_TYPES)]
    problems = _service_port_errors(spec.get("ports", []))
    if spec["type"] == "ExternalName" and not spec.get("externalName"):
        problems.append(required_error("spec.externalName"))
    problems += _address_errors(spec) if old is None else []
    headless = spec.get("clusterIP") == "None" or spec["type"] == "ExternalName"
    if not spec.get("ports") and not headless:
        problems.append(required_error("spec.ports"))
    if spec.get("clusterIP") == "None" and spec["type"] in ("NodePort", "LoadBalancer"):
        why = f"may not be set to 'None' for {spec['type']} services"
        problems.append(invalid_value("spec.clusterIPs[0]", spec.get("clusterIPs"), why))
    stored = old["spec"].get("clusterIP") if old and spec["type"] != "ExternalName" else None
    if stored and spec.get("clusterIP") != stored:
        why = "may not change once set"
        problems.append(invalid_value("spec.clusterIPs[0]", spec.get("clusterIPs"), why))
    return problems


_SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")


def _service_port_errors(ports: list[Json]) -> list[FieldError]:
    problems: list[FieldError] = []
    names: list[str] = []
    for index, port in enumerate(ports):
        field = f"spec.ports[{index}]"
        if not port.get("name") and len(ports) > 1:
            problems.append(required_error(f"{field}.name"))
        elif port.get("name") in names:
            problems.append(duplicate(f"{field}.name", port["name"]))
        names += [port["name"]] if port.get("name") else []
        for part in ("port", "targetPort"):
            number = port.get(part, 0)
            if isinstance(number, int) and not 0 < number < 65536:
                why = "must be between 1 and 65535, inclusive"
                problems.append(invalid_value(f"{field}.{part}", number, why))
        if port["protocol"] not in _PROTOCOLS:
            problems.append(unsupported_error(f"{field}.protocol", port["protocol"], _PROTOCOLS))
        used = [(entry.get("port"), entry["protocol"]) for entry in ports[:index]]
        if (port.get("port"), port["protocol"]) in used:
            names_in_go = {"Name": "", "Protocol": port["protocol"], "AppProtocol": None}
            names_in_go |= {"Port": port.get("port"), "TargetPort": 0, "NodePort": 0}
            problems.append(duplicate(field, names_in_go))
    return problems


def _address_errors(spec: Json) -> list[FieldError]:
    """Return what is wrong with the address that a new Service asks for."""
    given = spec.get("clusterIP", "")
    if given in ("", "None"):
        return []
    try:
        address = ip_address(given)
    except ValueError:
        why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        return [invalid_value("spec.clusterIPs[0]", given, why)]
    if address in SERVICE_RANGE:
        return []
    why = f"failed to allocate IP {given}: the provided network does not match the current range"
    return [invalid_value("spec.clusterIPs", [given], why)]


_CLAIM_CHANGEABLE = ("resources", "volumeAttributesClassName")


def _claim(new: Json, old: Json | None) -> list[FieldError]:
    if old is None:
        return _new_claim_errors(new["spec"])
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


def _new_claim_errors(spec: Json) -> list[FieldError]:
    modes = spec.get("accessModes", [])
    problems = []
    if not modes:
        problems.append(required_error("spec.accessModes", "at least 1 access mode is required"))
    problems += [
        unsupported_error("spec.accessModes", mode, _ACCESS_MODES)
        for mode in modes
        if mode not in _ACCESS_MODES
    ]
    if "storage" not in spec.get("resources", {}).get("requests", {}):
        problems.append(required_error("spec.resources[storage]"))
    return problems


_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def _shrunk(new: Json, old: Json) -> list[FieldError]:
    sizes = [body["spec"].get("resources", {}).get("requests", {}) for body in (new, old)]
    sizes.append(old.get("status", {}).get("capacity", {}))
    now, before, capacity = (quantity.value(size.get("storage", 0)) for size in sizes)
    if now >= before or now > capacity:
        return []
    field = "spec.resources.requests.storage"
    return [forbidden_field(field, "field can not be less than status.capacity")]


def _definition(new: Json, old: Json | None) -> list[FieldError]:
    spec, name = new["spec"], new["metadata"].get("name", "")
    problems = []
    if name != f"{spec['names'].get('plural', '')}.{spec.get('group', '')}":
        why = 'must be spec.names.plural+"."+spec.group'
        problems.append(invalid_value("metadata.name", name, why))
    for index, version in enumerate(spec.get("versions", [])):
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            field = f"spec.versions[{index}].schema.openAPIV3Schema"
            problems.append(required_error(field))
    stored = [version for version in spec.get("versions", []) if version.get("storage")]
    if len(stored) != 1:
        why = "must have exactly one version marked as storage version"
        problems.append(invalid_value("spec.versions", spec.get("versions"), why))
    if not stored and old is None:
        why = "must have at least one stored version"
        problems.append(invalid_value("status.storedVersions", None, why))
    named = {version["name"] for version in spec.get("versions", [])}
    for index, name in enumerate((new.get("status") or {}).get("storedVersions") or ()):
        if name not in named:
            why = (
                f"missing from spec.versions; {name} was previously a storage version, and must "
                "remain in spec.versions until a storage migration ensures no data remains "
                f"persisted in {name} and removes {name} from status.storedVersions"
            )
            problems.append(invalid_value(f"status.storedVersions[{index}]", name, why))
    for path in (("scope",), ("group",), ("names", "plural"), ("names", "kind")):
        problems += _fixed_field("spec", *path)(new, old)
    return problems


def _quota(new: Json, _old: Json | None) -> list[FieldError]:
    return [
        invalid_value(f"spec.hard[{name}]", amount, "must be greater than or equal to 0")
        for name, amount in new.get("spec", {}).get("hard", {}).items()
        if quantity.value(amount) < 0
    ]


def _autoscaler(new: Json, _old: Json | None) -> list[FieldError]:
    spec = new["spec"]
    if spec.get("maxReplicas", 0) >= spec["minReplicas"]:
        return []
    why = "must be greater than or equal to `minReplicas`"
    return [invalid_value("spec.maxReplicas", spec.get("maxReplicas", 0), why)]


def _role(new: Json, _old: Json | None) -> list[FieldError]:
    """Check a Role; a ClusterRole may have paths beside resources."""
    problems = []
    for index, rule in enumerate(new.get("rules") or ()):
        field = f"rules[{index}]"
        if not rule.get("verbs"):
            problems.append(
                required_error(f"{field}.verbs", "verbs must contain at least one value")
            )
        if rule.get("nonResourceURLs"):
            if "namespace" in new["metadata"]:
                why = "namespaced rules cannot apply to non-resource URLs"
                paths = rule["nonResourceURLs"]
                problems.append(invalid_value(f"{field}.nonResourceURLs", paths, why))
            continue
        for part, what in (("apiGroups", "api group"), ("resources", "resource")):
            if not rule.get(part):
                why = f"resource rules must supply at least one {what}"
                problems.append(required_error(f"{field}.{part}", why))
    return problems


_SUBJECTS = ("ServiceAccount", "User", "Group")


def _binding(new: Json, old: Json | None) -> list[FieldError]:
    role = new.get("roleRef")
    if old is None:
        return _new_binding_errors(new)
    if role == old.get("roleRef"):
        return []
    names = {"APIGroup": "apiGroup", "Kind": "kind", "Name": "name"}  # as the server is written
    value = {name: (role or {}).get(field, "") for name, field in names.items()}
    return [invalid_value("roleRef", value, "cannot change roleRef")]


def _new_binding_errors(new: Json) -> list[FieldError]:
    role, problems = new.get("roleRef") or {}, []
    kinds = ("Role", "ClusterRole") if "namespace" in new["metadata"] else ("ClusterRole",)
    if role.get("kind") not in kinds:
        problems.append(unsupported_error("roleRef.kind", role.get("kind", ""), kinds))
    if not role.get("name"):
        problems.append(required_error("roleRef.name"))
    for index, subject in enumerate(new.get("subjects", [])):
        if not subject.get("name"):
            problems.append(required_error(f"subjects[{index}].name"))
        if subject.get("kind") not in _SUBJECTS:
            field = f"subjects[{index}].kind"
            problems.append(unsupported_error(field, subject.get("kind", ""), _SUBJECTS))
    return problems


def _storage_class(new: Json, old: Json | None) -> list[FieldError]:
    fields = ("parameters", "provisioner", "reclaimPolicy")
    problems = [
        forbidden_field(field, f"updates to {field} are forbidden.")
        for field in fields
        if old is not None and new.get(field) != old.get(field)
    ]
    return problems + _fixed_field("volumeBindingMode")(new, old)


def _priority_class(new: Json, old: Json | None) -> list[FieldError]:
    problems = _fixed_field("preemptionPolicy")(new, old)
    if old is not None and new.get("value", 0) != old.get("value", 0):
        problems.insert(0, forbidden_field("value", "may not be changed in an update."))
    return problems


def _priority_level(new: Json, _old: Json | None) -> list[FieldError]:
    kind = new.get("spec", {}).get("type")
    if (kind == "Exempt") == (new["metadata"]["name"] == "exempt"):
        return []
    why = "must be 'Exempt' if and only if `name` is 'exempt'"
    return [invalid_value("spec.type", kind, why)]


def _fixed_field(*path: str) -> Check:
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
    "clusterroles": _role,
    "configmaps": _config_map,
    "cronjobs": _cron_job,
    "customresourcedefinitions": _definition,
    "daemonsets": _daemon_set,
    "deployments": _deployment,
    "horizontalpodautoscalers": _autoscaler,
    "ingressclasses": _fixed_field("spec", "controller"),
    "jobs": _job,
    "persistentvolumeclaims": _claim,
    "poddisruptionbudgets": _disruption_budget,
    "pods": _pod,
    "priorityclasses": _priority_class,
    "prioritylevelconfigurations": _priority_level,
    "replicasets": _check_replicated,
    "rolebindings": _binding,
    "resourcequotas": _quota,
    "roles": _role,
    "runtimeclasses": _fixed_field("handler"),
    "secrets": _secret,
    "services": _service,
    "statefulsets": _stateful_set,
    "storageclasses": _storage_class,
}
