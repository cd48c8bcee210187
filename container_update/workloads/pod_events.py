# SPDX-License-Identifier: Apache-2.0
"""What the Events about pods say. Pure."""

from __future__ import annotations

from container_update.model.objects import Json

KEPT_PENDING = frozenset({"FailedScheduling", "FailedMount", "FailedAttachVolume"})
"""Reasons of Events about a pod that has no node or no volume. They name objects alone; what a
runtime says of a container may have a value of a Secret, which only a diagnosis hides.

Source: kube-scheduler and kubelet, reasons of Events.
"""


def event_time(event: Json) -> str:
    """Return when an Event was last seen; a few controllers give only the precise time.

    >>> event_time({"lastTimestamp": None, "eventTime": "2026-11-29T07:00:00.000000Z"})
    '2026-11-29T07:00:00.000000Z'
    """
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")


def event_text(event: Json) -> str:
    """Return an Event in words.

    >>> event_text({"reason": "FailedMount", "message": "secret not found", "count": 3})
    'FailedMount: secret not found (3 times)'
    """
    count = int(event.get("count") or 1)
    times = f" ({count} times)" if count > 1 else ""
    return f"{event.get('reason')}: {' '.join(str(event.get('message')).split())}{times}"
