# SPDX-License-Identifier: Apache-2.0
"""Events about workloads, for ``kubectl describe`` and dashboards: what was undone, and what was
done for a reason that the user gave.

Why else a workload was changed is in its annotation of the last change, which costs no request.
Source: Kubernetes API reference, Event v1 core; API conventions, "Events". An account that may not
create them, or a server that refuses them, costs nothing but the Events.
"""

from __future__ import annotations

import logging
import uuid
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from container_update.cluster.lease import utc_now
from container_update.model import context_threads
from container_update.model.cluster import Cluster
from container_update.model.errors import ClusterError
from container_update.model.objects import Json
from container_update.model.outcome import StepResult
from container_update.planning.steps import ObjectStep

LOG = logging.getLogger(__name__)

COMPONENT = "container-update"
_SENDERS = 4
_LONGEST = 1024
"""Characters of an Event's message; the server refuses longer ones."""


@dataclass
class EventRecorder:
    """Records the Events of one run, without retries, with the user's reason *why*."""

    cluster: Cluster
    why: str = ""
    _refused: bool = field(default=False, init=False)
    _sending: list[Future[None]] = field(default_factory=list, init=False)
    _pool: ThreadPoolExecutor = field(
        default_factory=lambda: context_threads.pool(_SENDERS), init=False
    )

    def finish(self) -> None:
        """Wait until all Events are recorded, or refused."""
        while self._sending:
            self._sending.pop().result()

    def was_undone(self, result: StepResult, cause: str) -> None:
        """Record that a workload was restored, or could not be, and why the change was undone."""
        about = result.step.before if isinstance(result.step, ObjectStep) else None
        self._record(about, result, f": {cause}", type="Warning", reason="UpdateUndone")

    def was_done(self, result: StepResult, live: Json | None) -> None:
        """Record that a workload was changed, if the user gave a reason."""
        if self.why:
            self._record(live, result, type="Normal", reason="Updated")

    def _record(self, about: Json | None, result: StepResult, more: str = "", **how: str) -> None:
        if about is not None and "uid" in about["metadata"]:  # the run does not wait for it
            asked = f" ({self.why})" if self.why else ""
            message = f"{result.step.action.value}{asked}: {result.state.value}{more}"
            self._sending.append(self._pool.submit(self._send, _event(about, message, **how)))

    def _send(self, event: Json) -> None:
        if self._refused:
            return
        try:
            self.cluster.create(event)
        except ClusterError as error:
            self._refused = True
            LOG.info("no Events are recorded: %s", error)


def _event(about: Json, message: str, **how: str) -> Json:
    metadata, now = about["metadata"], utc_now().strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{metadata['name'][:200]}.{uuid.uuid4().hex[:16]}",
            "namespace": metadata["namespace"],
        },
        "involvedObject": {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            **{name: metadata[name] for name in ("namespace", "name", "uid")},
        },
        **how,
        "message": message if len(message) <= _LONGEST else f"{message[: _LONGEST - 3]}...",
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
