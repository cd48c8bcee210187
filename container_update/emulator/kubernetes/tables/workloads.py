# SPDX-License-Identifier: Apache-2.0
"""The rows of the workloads."""

from __future__ import annotations

from typing import Any

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import selectors
from container_update.emulator.kubernetes.tables.texts import (
    NONE,
    age,
    age_of,
    between,
    join,
    label_text,
)


def _template(spec: Json) -> list[Any]:
    """Return the cells for containers, images and selector."""
    containers = spec["template"]["spec"].get("containers", [])
    return [
        join(entry["name"] for entry in containers),
        join(entry["image"] for entry in containers),
        selectors.text_of(spec.get("selector")),
    ]


def deployment(item: Json) -> list[Any]:
    """Return Ready, Up-to-date, Available, Age, Containers, Images, Selector."""
    status, spec = item.get("status", {}), item["spec"]
    return [
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 1)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(item),
        *_template(spec),
    ]


def replica_set(item: Json) -> list[Any]:
    """Return Desired, Current, Ready, Age, Containers, Images, Selector."""
    status, spec = item.get("status", {}), item["spec"]
    return [
        spec.get("replicas", 1),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(item),
        *_template(spec),
    ]


def daemon_set(item: Json) -> list[Any]:
    """Return Five counts, Node Selector, Age, Containers, Images, Selector."""
    status, spec = item.get("status", {}), item["spec"]
    counts = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [
        *(status.get(name, 0) for name in counts),
        label_text(spec["template"]["spec"].get("nodeSelector")),
        age(item),
        *_template(spec),
    ]


def stateful_set(item: Json) -> list[Any]:
    """Return Ready, Age, Containers, Images."""
    ready = item.get("status", {}).get("readyReplicas", 0)
    spec = item["spec"]
    return [f"{ready}/{spec.get('replicas', 1)}", age(item), *_template(spec)[:2]]


def job(item: Json) -> list[Any]:
    """Return Status, Completions, Duration, Age, Containers, Images, Selector."""
    status, spec = item.get("status", {}), item["spec"]
    conditions = [
        entry["type"] for entry in status.get("conditions", []) if entry["status"] == "True"
    ]
    states = ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet")
    state = next((kind for kind in states if kind in conditions), "Running")
    if "deletionTimestamp" in item["metadata"] and state == "Running":
        state = "Terminating"
    completions = spec.get("completions")
    if completions is None:
        parallelism = spec.get("parallelism", 1)
        completions = f"1 of {parallelism}" if parallelism > 1 else 1
    start, end = status.get("startTime"), status.get("completionTime")
    duration = (between(start, end) if end else age_of(start)) if start else ""
    return [
        state,
        f"{status.get('succeeded', 0)}/{completions}",
        duration,
        age(item),
        *_template(spec),
    ]


def cron_job(item: Json) -> list[Any]:
    """Return Schedule, Timezone, Suspend, Active, Last Schedule, Age, and the template."""
    status, spec = item.get("status", {}), item["spec"]
    last = status.get("lastScheduleTime")
    return [
        spec["schedule"],
        spec.get("timeZone") or NONE,
        str(spec.get("suspend", False)),
        len(status.get("active", [])),
        age_of(last) if last else NONE,
        age(item),
        *_template(spec["jobTemplate"]["spec"]),
    ]
