# SPDX-License-Identifier: Apache-2.0
"""Live objects as tables like those of ``kubectl get``; Secrets as byte counts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from container_update.model.objects import Json, ObjectKey
from container_update.planning.comparison import diff
from container_update.workloads import pod_template
from container_update.workloads.registry import known_kind

Row = tuple[str, ...]


def table(header: Row, rows: Iterable[Row]) -> str:
    """Return a table; columns are as wide as their widest cell, three spaces apart."""
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def config(objects: Sequence[Json]) -> str:
    """Return a table of ConfigMaps with their text, and Secrets with the size of each key."""
    return table(("NAME", "KIND", "CONTENT"), (_config_row(body) for body in objects))


def _config_row(body: Json) -> Row:
    secret = body["kind"] == "Secret"
    cells = [
        f"{key}: {len(value)} bytes" if secret else f"{key}: {_one_line(value)}"
        for key, value in sorted(diff.content(body).data.items())
    ]
    return body["metadata"]["name"], body["kind"], ", ".join(cells)


def _one_line(value: bytes, limit: int = 60) -> str:
    text = " / ".join(value.decode("utf-8", "backslashreplace").split("\n")).strip(" /")
    return text if len(text) <= limit else text[: limit - 3] + "..."


def pods(objects: Sequence[Json], now: datetime) -> str:
    """Return a table of pods with readiness, restarts, age and images."""
    header = ("NAME", "READY", "STATUS", "RESTARTS", "AGE", "IMAGES")
    return table(header, (_pod_row(body, now) for body in objects))


def _pod_row(body: Json, now: datetime) -> Row:
    metadata, status = body["metadata"], body.get("status") or {}
    statuses = status.get("containerStatuses") or ()
    ready = sum(1 for container in statuses if container.get("ready"))
    restarts = sum(int(container.get("restartCount", 0)) for container in statuses)
    return (
        metadata["name"],
        f"{ready}/{len(body['spec']['containers'])}",
        "Terminating" if metadata.get("deletionTimestamp") else status.get("phase", "Pending"),
        str(restarts),
        _age(body, now),
        _images(body),
    )


def workloads(objects: Sequence[Json], now: datetime) -> str:
    """Return a table of workloads that run until they are deleted, with readiness and images."""
    header = ("KIND", "NAME", "READY", "AGE", "IMAGES")
    return table(header, (_workload_row(body, now) for body in objects))


def _workload_row(body: Json, now: datetime) -> Row:
    counts = known_kind(ObjectKey.of(body)).counts(body)
    ready = f"{counts.ready}/{counts.desired}"
    return body["kind"], body["metadata"]["name"], ready, _age(body, now), _images(body)


def _images(body: Json) -> str:
    return ",".join(
        str(c.get("image")) for _, c in pod_template.containers(pod_template.pod_spec(body))
    )


def _age(body: Json, now: datetime) -> str:
    created = body["metadata"].get("creationTimestamp")
    if not created:
        return "<unknown>"
    creation = datetime.fromisoformat(str(created).replace("Z", "+00:00"))
    seconds = max(0, int((now - creation).total_seconds()))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
