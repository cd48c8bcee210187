"""The rows of what makes pods."""

from __future__ import annotations

from typing import Any

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import selectors
from container_update.emulator.kubernetes.tables import durations
from container_update.emulator.kubernetes.tables.texts import NONE, age, joined, label_text


def _images(item: Json) -> list[Any]:
    containers = item["spec"]["template"]["spec"].get("containers", [])
    return [
        joined(entry["name"] for entry in containers),
        joined(entry["image"] for entry in containers),
    ]


def deployment(item: Json) -> list[Any]:
    """Ready, Up-to-date, Available, Age, Containers, Images, Selector."""
    status, spec = item.get("status", {}), item["spec"]
    return [
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 1)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(item),
        *_images(item),
        selectors.text_of(spec.get("selector")),
    ]


def replica_set(item: Json) -> list[Any]:
    """Desired, Current, Ready, Age, Containers, Images, Selector."""
    status, spec = item.get("status", {}), item["spec"]
    return [
        spec.get("replicas", 1),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(item),
        *_images(item),
        selectors.text_of(spec.get("selector")),
    ]


def daemon_set(item: Json) -> list[Any]:
    """Five counts, Node Selector, Age, Containers, Images, Selector."""
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
        *_images(item),
        selectors.text_of(spec.get("selector")),
    ]


def stateful_set(item: Json) -> list[Any]:
    """Ready, Age, Containers, Images."""
    ready = item.get("status", {}).get("readyReplicas", 0)
    return [f"{ready}/{item['spec'].get('replicas', 1)}", age(item), *_images(item)]


def job(item: Json) -> list[Any]:
    """Status, Completions, Duration, Age, Containers, Images, Selector."""
    status, spec = item.get("status", {}), item["spec"]
    conditions = [
        entry["type"] for entry in status.get("conditions", []) if entry["status"] == "True"
    ]
    state = "Running"
    for condition, text in (
        ("Complete", "Complete"),
        ("Failed", "Failed"),
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    ):
        if condition in conditions:
            state = text
            break
    if "deletionTimestamp" in item["metadata"] and state == "Running":
        state = "Terminating"
    wanted = spec.get("completions")
    if wanted is None:
        parallelism = spec.get("parallelism", 1)
        wanted = f"1 of {parallelism}" if parallelism > 1 else 1
    duration = ""
    if status.get("startTime"):
        end = status.get("completionTime")
        duration = (
            durations.between(status["startTime"], end)
            if end
            else durations.age(status["startTime"])
        )
    return [
        state,
        f"{status.get('succeeded', 0)}/{wanted}",
        duration,
        age(item),
        *_images(item),
        selectors.text_of(spec.get("selector")),
    ]


def cron_job(item: Json) -> list[Any]:
    """Schedule, Timezone, Suspend, Active, Last Schedule, Age, and the template."""
    status, spec = item.get("status", {}), item["spec"]
    last = status.get("lastScheduleTime")
    template = {"spec": spec["jobTemplate"]["spec"]}
    return [
        spec["schedule"],
        spec.get("timeZone") or NONE,
        str(spec.get("suspend", False)),
        len(status.get("active", [])),
        durations.age(last) if last else NONE,
        age(item),
        *_images(template),
        selectors.text_of(spec["jobTemplate"]["spec"].get("selector")),
    ]
