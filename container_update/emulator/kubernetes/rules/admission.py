# SPDX-License-Identifier: Apache-2.0
"""What admission adds to a new Pod: service account, token volume, tolerations, priority."""

from __future__ import annotations

from collections.abc import Callable

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import names
from container_update.emulator.kubernetes.api_errors import forbidden

Lookup = Callable[[str, str, str], "Json | None"]
"""Reads an object by resource, namespace and name."""

TOKEN_VOLUME_PREFIX = "kube-api-access-"  # noqa: S105 - the name of a volume
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path
_LOST_NODE_SECONDS = 300


def admit_pod(pod: Json, lookup: Lookup) -> None:
    """Complete *pod* in place; raise 403 for a service account that does not exist."""
    spec = pod.setdefault("spec", {})
    account_name = spec.get("serviceAccountName") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = account_name
    account = _account(pod, account_name, lookup)
    if account.get("imagePullSecrets") and not spec.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [dict(entry) for entry in account["imagePullSecrets"]]
    default = account.get("automountServiceAccountToken", True)
    if spec.get("automountServiceAccountToken", default):
        _mount_token(spec)
    _tolerate_lost_nodes(spec)
    spec.setdefault("priority", _priority(pod, lookup))
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")


_SYSTEM_PRIORITIES = {"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}
"""The classes that every cluster has; they are not stored here."""


def _priority(pod: Json, lookup: Lookup) -> int:
    name = pod["spec"].get("priorityClassName", "")
    if not name or name in _SYSTEM_PRIORITIES:
        return _SYSTEM_PRIORITIES.get(name, 0)
    known = lookup("priorityclasses", "", name)
    if known is None:
        why = f"no PriorityClass with name {name} was found"
        raise forbidden("", "pods", pod["metadata"].get("name", ""), why, [])
    return int(known.get("value", 0))


def _account(pod: Json, account_name: str, lookup: Lookup) -> Json:
    metadata = pod["metadata"]
    account = lookup("serviceaccounts", metadata["namespace"], account_name)
    if account is None and account_name != "default":
        why = (
            f"error looking up service account {metadata['namespace']}/{account_name}: "
            f'serviceaccount "{account_name}" not found'
        )
        name = metadata.get("name") or metadata.get("generateName", "")
        raise forbidden("", "pods", name, why, [])
    return account or {}  # the default one is created a little later than its namespace


def _mount_token(spec: Json) -> None:
    volume_names = (str(volume.get("name", "")) for volume in spec.get("volumes", []))
    volume = next(filter(lambda name: name.startswith(TOKEN_VOLUME_PREFIX), volume_names), "")
    for container in [*spec.get("containers", []), *spec.get("initContainers", [])]:
        mounts = container.get("volumeMounts", [])
        if any(mount.get("mountPath") == TOKEN_PATH for mount in mounts):
            continue
        if not volume:
            volume = TOKEN_VOLUME_PREFIX + names.random_suffix()
            spec["volumes"] = [*spec.get("volumes", []), _token_volume(volume)]
        mount = {"name": volume, "readOnly": True, "mountPath": TOKEN_PATH}
        container["volumeMounts"] = [*mounts, mount]


def _token_volume(name: str) -> Json:
    authority = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": authority},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": 420}}


def _tolerate_lost_nodes(spec: Json) -> None:
    tolerations = list(spec.get("tolerations", []))
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if any(entry.get("key") in (key, None) for entry in tolerations):
            continue
        toleration = {"key": key, "operator": "Exists", "effect": "NoExecute"}
        tolerations.append({**toleration, "tolerationSeconds": _LOST_NODE_SECONDS})
    spec["tolerations"] = tolerations
