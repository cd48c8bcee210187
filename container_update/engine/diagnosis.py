# SPDX-License-Identifier: Apache-2.0
"""Why a workload does not get ready: what its failing pod reports, read before an undo deletes it.

Nothing depends on it. It takes two requests and a few seconds at most; where the informer has kept
only some of the Secrets they are read once more. An account that may neither list Events nor read
logs gets a diagnosis without them.
"""

from __future__ import annotations

import base64
import contextlib
import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from container_update.cluster.informer import Informer
from container_update.model import context_threads
from container_update.model.cluster import ReadOnlyCluster
from container_update.model.errors import ClusterError
from container_update.model.objects import Json, ObjectKey
from container_update.model.outcome import Diagnosis
from container_update.planning.comparison import diff
from container_update.workloads import ownership
from container_update.workloads.kind import POD
from container_update.workloads.pod_events import event_text, event_time
from container_update.workloads.pod_status import (
    FailingContainer,
    failing_container,
    is_deleting,
    pull_text,
)
from container_update.workloads.readiness import Baseline
from container_update.workloads.registry import kind_of

LOG = logging.getLogger(__name__)

_SECONDS = 5.0
"""How long an undo waits for a diagnosis."""
_EVENTS, _LOG_LINES, _LOG_BYTES = 3, 5, 16 * 1024
_LONGEST = 400
"""Characters of an Event's message or of a line of a log."""
_SHORTEST_SECRET = 4
"""Characters; shorter texts occur in other words by chance."""
HIDDEN = "***"


@dataclass(frozen=True)
class Diagnostician:
    """Reads what the pods of failing workloads report; values of *secrets* are hidden."""

    cluster: ReadOnlyCluster
    informer: Informer
    secrets: Collection[Json] = ()
    seconds: float = _SECONDS

    def diagnose(self, key: ObjectKey, before: Baseline, known: str) -> Diagnosis | None:
        """Return what a failing pod of a workload reports; None where all are ready.

        :param before: the pods before the change.
        :param known: the message of the failure: an Event that only repeats it is left out.
        """
        pod, container = self._failing(key, before)
        if pod is None or container is None:
            return None
        diagnosis = Diagnosis(ObjectKey.of(pod), container.name, container.reason)
        answers: list[Diagnosis] = []

        def ask() -> None:
            try:
                hidden = hidden_words([*self.secrets, *self.informer.everything(("", "Secret"))])
            except ClusterError as error:
                LOG.info("%s", error)
                return
            answers.append(replace(diagnosis, events=self._events(pod, known, hidden)))
            answers.append(replace(answers[-1], log=self._log(diagnosis.pod, container, hidden)))

        thread = context_threads.daemon(ask, name=f"diagnose {key}")
        thread.start()
        thread.join(self.seconds)
        if thread.is_alive():
            LOG.info("%s: the API server takes too long to tell why it fails", key)
        return answers[-1] if answers else diagnosis

    def _failing(
        self, key: ObjectKey, before: Baseline
    ) -> tuple[Json | None, FailingContainer | None]:
        """Return the pod with the worst trouble, a new one first, and the container that has it."""
        kind, live = kind_of(key), self.informer.get(key)
        if kind is None or live is None:
            return None, None
        pods = self.informer.pods_or_itself(live)
        if kind.runs_to_completion:  # the informer keeps pods of those that run on
            pods = ownership.owned_pods(live, self.informer.everything(POD), ())
        failing = [
            (pod, container)
            for pod in pods
            if not is_deleting(pod) and (container := failing_container(pod, before.restarts))
        ]

        def rank(entry: tuple[Json, FailingContainer]) -> tuple[bool, bool]:
            return not entry[1].has_trouble, entry[0]["metadata"]["uid"] in before.uids

        return min(failing, key=rank, default=(None, None))

    def _events(self, pod: Json, known: str, hidden: Sequence[str]) -> tuple[str, ...]:
        """Return the newest warnings about a pod, the newest first."""
        events = self.informer.events_about(pod, type="Warning")
        events = tuple(sorted(events, key=event_time, reverse=True))
        new = (each for each in events if pull_text(str(each.get("message"))) not in known)
        texts = map(event_text, new)
        return tuple(redact(dict.fromkeys(texts), hidden))[:_EVENTS]

    def _log(
        self, pod: ObjectKey, container: FailingContainer, hidden: Sequence[str]
    ) -> tuple[str, ...]:
        """Return the last lines of a container's log; none where it never ran."""
        if not container.has_run:
            return ()
        try:
            text = self.cluster.log(
                pod,
                container.name,
                previous=container.is_previous,
                lines=_LOG_LINES,
                limit=_LOG_BYTES,
            )
        except ClusterError as error:
            LOG.info("%s", error)
            return ()
        return tuple(redact(text.splitlines()[-_LOG_LINES:], hidden))


def hidden_words(secrets: Iterable[Json]) -> list[str]:
    """Return what of Secrets no text may show, the longest first."""
    return sorted({word for body in secrets for word in _words(body)}, key=len, reverse=True)


def redact(texts: Iterable[str], hidden: Sequence[str]) -> Iterator[str]:
    """Yield texts without the hidden words, and none too long."""
    for text in texts:
        for word in hidden:
            text = text.replace(word, HIDDEN)  # noqa: PLW2901
        yield text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _words(secret: Json) -> Iterator[str]:
    """Yield what of a Secret must not be shown: its values line by line, and in base64."""
    values: Iterable[bytes] = ()
    with contextlib.suppress(ValueError):  # the server refuses such a Secret, so no pod has it
        values = diff.content(secret).data.values()
    for value in values:
        lines = map(str.strip, value.decode(errors="ignore").splitlines())
        words = (*lines, base64.b64encode(value).decode())
        yield from (word for word in words if len(word) >= _SHORTEST_SECRET)
