"""From live objects to done, progressing, failing or failed: what the kinds share. Pure.

The rule: status counts can lag behind, so a workload is done only when every pod it owns is proven
new.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from container_update.model.objects import Json
from container_update.workloads.pod_status import (
    container_statuses,
    is_deleting,
    is_finished,
    is_ready,
    problem,
    waiting_for,
    was_started,
)


class State(enum.Enum):
    """Where a workload is on its way."""

    DONE = "done"
    PROGRESSING = "progressing"
    FAILING = "failing"
    """All of its new pods are in trouble: a failure if it lasts for the grace period."""
    FAILED = "failed"
    """It will not get there by waiting."""


@dataclass(frozen=True)
class Readiness:
    """A state, and what it rests on, for the operator."""

    state: State
    message: str = ""


DONE = Readiness(State.DONE)
NOT_SEEN = Readiness(State.PROGRESSING, "its controller has not seen the change yet")


@dataclass(frozen=True)
class Baseline:
    """What was there before the change, to tell new from old."""

    uids: frozenset[str] = frozenset()
    """UIDs of the pods from before."""
    restarts: Mapping[str, int] = field(default_factory=dict)
    """For a restart in place: container to its restart count before; only those to restart.
    -1 for one that never started: its first start is not counted as a restart."""
    allowed: frozenset[str] = frozenset()
    """UIDs of pods from before that may still be there: their turn has not come."""

    @classmethod
    def of(cls, pods: Sequence[Json], containers: Sequence[str] = ()) -> Baseline:
        """Return the baseline of these pods; with *containers*, of their restart in place."""
        counts = {
            status["name"]: int(status.get("restartCount", 0)) if was_started(status) else -1
            for pod in pods
            for status in container_statuses(pod)
            if status["name"] in containers
        }
        return cls(frozenset(pod["metadata"]["uid"] for pod in pods), counts)


def _progressing(count: str, new: Sequence[Json], pods: Sequence[Json]) -> Readiness:
    """Not there yet: failing where all new pods are in trouble."""
    problems = [problem(pod) for pod in new if not is_deleting(pod)]
    if problems and all(problems):
        return Readiness(State.FAILING, f"{count}: {problems[0]}")
    waiting = waiting_for(new) or waiting_for(pods)
    return Readiness(State.PROGRESSING, f"{count}: {waiting}" if waiting else count)


# --- workloads with a controller ----------------------------------------------------------------


@dataclass(frozen=True)
class Counts:
    """What a workload's status fields come down to: numbers of pods."""

    wanted: int
    updated: int
    ready: int
    available: int
    total: int
    """Pods of the old template too."""


def judge(live: Json, counts: Counts, pods: Sequence[Json], baseline: Baseline) -> Readiness:
    """Judge by the rule that all controllers share.

    :param pods: all that the workload owns.
    """
    active = [pod for pod in pods if not is_finished(pod)]
    new = [pod for pod in active if pod["metadata"]["uid"] not in baseline.uids]
    if not is_observed(live):
        return NOT_SEEN
    may_stay = sum(1 for pod in active if pod["metadata"]["uid"] in baseline.allowed)
    needed = counts.wanted - may_stay
    if counts.updated < needed:
        return _progressing(f"{counts.updated} of {needed} pods are updated", new, active)
    if counts.total > counts.wanted:
        surplus = counts.total - counts.wanted
        return _progressing(f"{surplus} old pods are still there", new, active)
    serving = min(counts.ready, counts.available)
    if serving < counts.wanted:
        return _progressing(f"{serving} of {counts.wanted} pods are ready", new, active)
    surplus = sum(1 for pod in active if pod["metadata"]["uid"] in baseline.uids - baseline.allowed)
    if surplus:
        return _progressing(f"{surplus} old pods are still there", new, active)
    return _proof(counts.wanted, active, new)


def _proof(wanted: int, active: Sequence[Json], new: Sequence[Json]) -> Readiness:
    """Every owned pod is Ready, and none is being deleted."""
    ready = sum(1 for pod in active if is_ready(pod))
    if ready < len(active) or ready < wanted:
        return _progressing(f"{ready} of {wanted} pods are ready", new, active)
    return DONE


def all_there(live: Json, wanted: int, pods: Sequence[Json]) -> Readiness:
    """Judge whether the controller has seen the last change, and *wanted* pods are there."""
    if not is_observed(live):
        return NOT_SEEN
    there = sum(1 for pod in pods if not is_finished(pod) and not is_deleting(pod))
    if there < wanted:
        return Readiness(State.PROGRESSING, f"{there} of {wanted} pods are there")
    return DONE


def is_observed(live: Json) -> bool:
    """Return whether the controller has seen the last change of the spec."""
    return status_count(live, "observedGeneration") >= int(live["metadata"].get("generation", 0))


def replicas(live: Json) -> int:
    """Return ``spec.replicas``, which is 1 where it is not given."""
    number = (live.get("spec") or {}).get("replicas")
    return 1 if number is None else int(number)


def status_count(live: Json, name: str) -> int:
    """Return a number of the status, 0 where it has none of that name."""
    return int((live.get("status") or {}).get(name) or 0)


# --- the traffic to pods ------------------------------------------------------------------------

SERVICE_LABEL = "kubernetes.io/service-name"
"""On an EndpointSlice: the Service it belongs to (API reference, EndpointSlice)."""


def service(
    live: Json, slices: Sequence[Json], pods: Sequence[Json], old: frozenset[str]
) -> Readiness:
    """Judge whether a Service's endpoints are the ready pods that it selects, and none is old.

    Source: API reference, EndpointSlice: an endpoint whose condition ``ready`` is not false gets
    traffic.

    :param slices: all of the namespace.
    :param pods: all of the namespace.
    :param old: UIDs of the pods that are to get no traffic any more.
    """
    selector = live["spec"].get("selector") or {}
    if not selector or live["spec"].get("type") == "ExternalName":
        return DONE
    wanted = {pod["metadata"]["uid"] for pod in pods if selects(selector, pod) and is_ready(pod)}
    found = _served(live["metadata"]["name"], slices)
    if found & old:
        return Readiness(State.PROGRESSING, f"{len(found & old)} old pods still get its traffic")
    missing = wanted - found
    if missing:
        return Readiness(State.PROGRESSING, f"{len(missing)} ready pods get no traffic of it yet")
    surplus = found - wanted
    if surplus and not live["spec"].get("publishNotReadyAddresses"):
        return Readiness(State.PROGRESSING, f"{len(surplus)} other pods still get its traffic")
    return DONE


def selects(selector: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    """Return whether a Service's selector selects a pod, or the pods of a template."""
    labels = (body.get("metadata") or {}).get("labels") or {}
    return bool(selector) and all(labels.get(name) == value for name, value in selector.items())


def _served(name: str, slices: Sequence[Json]) -> set[str]:
    return {
        str((endpoint.get("targetRef") or {}).get("uid"))
        for body in slices
        if (body["metadata"].get("labels") or {}).get(SERVICE_LABEL) == name
        for endpoint in body.get("endpoints") or ()
        if (endpoint.get("conditions") or {}).get("ready") is not False
    }
