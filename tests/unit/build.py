# SPDX-License-Identifier: Apache-2.0
"""Objects and manifests for the tests of the pure modules, in few words."""

from __future__ import annotations

import base64
import copy
import textwrap
from typing import Any

import yaml

from container_update.model.objects import Json, Manifest, ObjectKey, Source
from container_update.model.plan import Plan
from container_update.planning.comparison.match import Matching, match
from container_update.planning.update import make_plan

GROUPS = {
    "Deployment": "apps/v1",
    "DaemonSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
}


def yaml_of(text: str) -> Any:
    """The value that this YAML spells."""
    return yaml.safe_load(textwrap.dedent(text))


def b64(text: str) -> str:
    """As a Secret's ``data`` spells it."""
    return base64.b64encode(text.encode()).decode()


def config_map(name: str = "cm", data: dict[str, Any] | None = None, **more: Any) -> Json:
    """A ConfigMap as a manifest or as the live object has it."""
    return _object("v1", "ConfigMap", name, data={"a": "1"} if data is None else data, **more)


def secret(name: str = "sec", data: dict[str, str] | None = None, **more: Any) -> Json:
    """A Secret with these values in plain words, in base64 under ``data``."""
    encoded = {key: b64(value) for key, value in ({"a": "1"} if data is None else data).items()}
    return _object("v1", "Secret", name, data=encoded, **more)


def workload(kind: str, pod_spec: str | Json, name: str = "w", **spec: Any) -> Json:
    """A workload of that kind whose pods have that spec; *spec* beside the template."""
    inner = yaml_of(pod_spec) if isinstance(pod_spec, str) else copy.deepcopy(pod_spec)
    if kind == "Pod":
        return _object("v1", kind, name, spec=inner)
    template: Json = {"metadata": {"labels": {"app": name}}, "spec": inner}
    if kind == "CronJob":
        spec["jobTemplate"] = {"spec": {"template": template}}
    else:
        spec["template"] = template
    return _object(GROUPS[kind], kind, name, spec=spec)


def _object(version: str, kind: str, name: str, **more: Any) -> Json:
    body: Json = {"apiVersion": version, "kind": kind, "metadata": {"name": name}}
    metadata = more.pop("metadata", {})
    body["metadata"].update(copy.deepcopy(metadata))
    return {**body, **copy.deepcopy(more)}


def live(body: Json, uid: str | None = None, version: str = "7", **metadata: Any) -> Json:
    """The object as the server has it: with a namespace, a UID and a resourceVersion."""
    found = copy.deepcopy(body)
    found["metadata"].setdefault("namespace", "ns")
    found["metadata"].update({"uid": uid or f"uid-{body['metadata']['name']}", **metadata})
    found["metadata"]["resourceVersion"] = version
    if "stringData" in found:
        for key, value in found.pop("stringData").items():
            found.setdefault("data", {})[key] = b64(value)
    return found


def by_identity(*bodies: Json) -> dict[ObjectKey, Json]:
    """Live objects as the planner and the inventory take them."""
    return {ObjectKey.of(body): body for body in bodies}


def manifest(body: Json, path: str = "new.yaml", line: int = 1) -> Manifest:
    """The manifest of an object in a def-file."""
    return Manifest(ObjectKey.of(body, "ns"), body, Source(path, line))


def manifests(path: str, *bodies: Json) -> tuple[Manifest, ...]:
    """The manifests of a def-file, ten lines each."""
    return tuple(manifest(body, path, 1 + 10 * number) for number, body in enumerate(bodies))


def matched(old: list[Json], new: list[Json], listed: list[Json] | None = None) -> Matching:
    """The matching of one def-file, the same path in both packages, and of one listed file."""
    return match(
        {"f.yaml": manifests("f.yaml", *old)},
        {"listed.yaml": manifests("listed.yaml", *listed)} if listed else {},
        {"f.yaml": manifests("f.yaml", *new)},
        {},
    )


def planned(
    old: list[Json], new: list[Json], cluster: list[Json], instance_id: str | None = None
) -> Plan:
    """The plan for one def-file and these live objects."""
    return make_plan(
        matched(old, new), by_identity(*cluster), namespace="ns", instance_id=instance_id
    )


def pod(
    name: str,
    *,
    uid: str | None = None,
    owner: str | None = None,
    ready: bool = True,
    phase: str = "Running",
    deleting: bool = False,
    status: Json | None = None,
    containers: list[Json] | None = None,
) -> Json:
    """A live Pod with the facts that readiness and inventory look at."""
    metadata: Json = {"name": name, "namespace": "ns", "uid": uid or name}
    if owner:
        metadata["ownerReferences"] = [{"uid": owner, "controller": True}]
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    facts: Json = {
        "phase": phase,
        "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        "containerStatuses": containers or [],
        **(status or {}),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": facts}


def container(
    name: str = "a", *, restarts: int = 0, ready: bool = False, started: bool = True, **more: Any
) -> Json:
    """An entry of ``containerStatuses``; *more* is ``waiting``, ``running``, ``ended`` (before)."""
    last = more.pop("ended", None)
    return {
        "name": name,
        "ready": ready,
        "restartCount": restarts,
        "state": more,
        "lastState": {"terminated": last} if last else {},
        **({"containerID": "containerd://1"} if started else {}),
    }
