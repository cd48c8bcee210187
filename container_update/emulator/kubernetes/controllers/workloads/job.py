"""Jobs: pods that run until enough of them have succeeded, or too many have failed.

A pod of a Job bears a finalizer until its end has been counted, so that none is counted twice and
none is lost.
"""

from __future__ import annotations

from collections.abc import Mapping

from container_update.emulator import clock
from container_update.emulator.clock import stamp
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import pod_state
from container_update.emulator.kubernetes.controllers.base import (
    Context,
    Handler,
    Key,
    WorkQueue,
    key_of,
)
from container_update.emulator.kubernetes.controllers.claim import ClaimingController
from container_update.emulator.kubernetes.controllers.workloads.templates import pod_of
from container_update.emulator.kubernetes.ownership import controller_of, is_deleting

COMPONENT = "job-controller"
TRACKING = "batch.kubernetes.io/job-tracking"
_NOT_SUSPENDED, _SUSPENDED = ("JobResumed", "Job resumed"), ("JobSuspended", "Job suspended")
_DONE = ("CompletionsReached", "Reached expected number of succeeded pods")
_FAILED = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")


class Jobs(ClaimingController):
    """Runs every Job to its end."""

    resource, kind, owned = "jobs", "Job", "pods"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._behaviour = context.behaviour
        self._orphans = WorkQueue(context.loop, self._let_go)

    def handlers(self) -> Mapping[str, Handler]:
        """Its own objects, and pods."""
        return {"jobs": self.enqueue, "pods": self._pod_changed}

    def reconcile(self, key: Key) -> None:
        """Count what has ended, start what is missing, tell."""
        job = self.registry.get(self.resource, *key)
        if job is None:
            return
        pods = self.claim(job)
        if not is_over(job):
            status = self._advance(job, pods)
            job = self.write_status(job, status)
        for pod in pods:
            if pod_state.is_finished(pod):
                self._uncount(pod)
        ttl = job["spec"].get("ttlSecondsAfterFinished")
        if ttl is not None and is_over(job) and not is_deleting(job):
            self._expire(key, job, ttl)

    def stop(self) -> None:
        """Stop both queues."""
        super().stop()
        self._orphans.stop()

    def _pod_changed(self, event: str, pod: Json, previous: Json | None) -> None:
        self.owned_changed(event, pod, previous)
        if event != "DELETED" and _is_tracked(pod) and self._job_of(pod) is None:
            self._orphans.add(key_of(pod))

    def _let_go(self, key: Key) -> None:
        """A pod without its Job needs no counting any more."""
        pod = self.registry.get("pods", *key)
        if pod is not None and self._job_of(pod) is None:
            self._uncount(pod)

    def _job_of(self, pod: Json) -> Json | None:
        owner = controller_of(pod)
        ref = self.index.where(owner["uid"]) if owner is not None else None
        return self.registry.get(*ref) if ref is not None else None

    def _uncount(self, pod: Json) -> None:
        stored = self.registry.get("pods", *key_of(pod))
        if stored is None or not _is_tracked(stored):
            return
        metadata = stored["metadata"]
        kept = [entry for entry in metadata["finalizers"] if entry != TRACKING]
        body = {**stored, "metadata": {**metadata, "finalizers": kept}}
        self.registry.update("pods", *key_of(pod), body)

    def _advance(self, job: Json, pods: list[Json]) -> Json:
        """Start or stop pods; the status that follows from what was found before."""
        tally = _tally(job, pods)
        active = [pod for pod in pods if pod_state.is_active(pod)]
        wanted, conditions = self._decide(job, tally, active)
        running = self._match(job, active, wanted, tally["failed"])
        numbers = {"active": min(running, wanted), **tally}
        status: Json = {
            "terminating": sum(map(pod_state.is_terminating, pods)),
            "uncountedTerminatedPods": {},
            "ready": sum(map(pod_state.is_ready, active)) if wanted else 0,
            **{name: number for name, number in numbers.items() if number},
        }
        if not job["spec"].get("suspend"):
            status["startTime"] = job.get("status", {}).get("startTime") or stamp()
        if conditions:
            status["conditions"] = conditions
        if any(entry["type"] == "Complete" for entry in conditions):
            status["completionTime"] = stamp()
        return status

    def _decide(
        self, job: Json, tally: dict[str, int], active: list[Json]
    ) -> tuple[int, list[Json]]:
        """How many pods should run now, and the conditions that say why."""
        spec, conditions = job["spec"], list(job.get("status", {}).get("conditions") or [])
        if is_deleting(job):
            return len(active), conditions
        if tally["failed"] + sum(map(pod_state.restarts, active)) > spec.get("backoffLimit", 6):
            self.record.warning(COMPONENT, job, *_FAILED)
            return 0, [*conditions, *_both("FailureTarget", "Failed", *_FAILED)]
        if _is_enough(spec, tally["succeeded"], active):
            self.record.normal(COMPONENT, job, "Completed", "Job completed")
            return 0, [*conditions, *_both("SuccessCriteriaMet", "Complete", *_DONE)]
        suspended = bool(spec.get("suspend"))
        wanted = 0 if suspended else _wanted(spec, tally["succeeded"])
        return wanted, _suspension(conditions, suspended)

    def _match(self, job: Json, active: list[Json], wanted: int, failures: int) -> int:
        """Bring the number of running pods to *wanted*; after a new failure, not at once.

        :returns: how many there are then.
        """
        known = job.get("status", {}).get("failed", 0)
        if failures > known and len(active) < wanted:
            self.queue.add_after(key_of(job), self._behaviour.backoff(failures))
            return len(active)
        for _ in range(wanted - len(active)):
            self._create(job)
        for pod in active[wanted:]:
            self.registry.delete("pods", *key_of(pod), uid=pod["metadata"]["uid"])
            text = f"Deleted pod: {pod['metadata']['name']}"
            self.record.normal(COMPONENT, job, "SuccessfulDelete", text)
        return wanted

    def _create(self, job: Json) -> None:
        body = pod_of(job, job["spec"]["template"])
        body["metadata"]["finalizers"] = [*body["metadata"].get("finalizers", []), TRACKING]
        pod = self.registry.create("pods", job["metadata"]["namespace"], body)
        text = f"Created pod: {pod['metadata']['name']}"
        self.record.normal(COMPONENT, job, "SuccessfulCreate", text)

    def _expire(self, key: Key, job: Json, ttl: int) -> None:
        ended = next(
            entry["lastTransitionTime"]
            for entry in job["status"]["conditions"]
            if entry["type"] in {"Complete", "Failed"}
        )
        left = ttl - (clock.now() - clock.parse(ended)).total_seconds()
        if left > 0:
            self.queue.add_after(key, left)
        else:
            self.registry.delete(self.resource, *key, propagation="Foreground")


def is_over(job: Json) -> bool:
    """The Job is complete or has failed."""
    return any(
        entry["type"] in {"Complete", "Failed"} and entry["status"] == "True"
        for entry in job.get("status", {}).get("conditions") or []
    )


def _is_tracked(pod: Json) -> bool:
    return TRACKING in (pod["metadata"].get("finalizers") or [])


def _tally(job: Json, pods: list[Json]) -> dict[str, int]:
    """How many pods have succeeded and failed so far: those counted before, and the new ones."""
    before = job.get("status", {})
    uncounted = list(filter(_is_tracked, pods))
    return {
        name: before.get(name, 0) + sum(pod_state.phase(pod) == phase for pod in uncounted)
        for name, phase in (("succeeded", "Succeeded"), ("failed", "Failed"))
    }


def _is_enough(spec: Json, succeeded: int, active: list[Json]) -> bool:
    completions = spec.get("completions")
    if completions is None:
        return succeeded > 0 and not active
    return bool(succeeded >= completions)


def _wanted(spec: Json, succeeded: int) -> int:
    """How many pods may run at once now."""
    parallel: int = spec.get("parallelism", 1)
    completions: int | None = spec.get("completions")
    if completions is None:
        return 0 if succeeded else parallel
    return min(parallel, completions - succeeded)


def _condition(kind: str, status: str, reason: str, message: str) -> Json:
    now = stamp()
    return {
        "type": kind,
        "status": status,
        "lastProbeTime": now,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }


def _both(first: str, second: str, reason: str, message: str) -> list[Json]:
    """The condition that announces the end, and the one that states it."""
    return [_condition(kind, "True", reason, message) for kind in (first, second)]


def _suspension(conditions: list[Json], suspended: bool) -> list[Json]:
    told = next((entry for entry in conditions if entry["type"] == "Suspended"), None)
    if (told is not None and told["status"] == str(suspended)) or (not told and not suspended):
        return conditions
    others = [entry for entry in conditions if entry is not told]
    news = _SUSPENDED if suspended else _NOT_SUSPENDED
    return [*others, _condition("Suspended", str(suspended), *news)]
