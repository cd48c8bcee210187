# SPDX-License-Identifier: Apache-2.0
"""Jobs: pods run until enough of them have succeeded or too many have failed.

A pod of a Job has a finalizer until it has been counted as succeeded or failed, so that none is
counted twice and none is lost.
"""

from __future__ import annotations

from collections.abc import Mapping

from container_update.emulator import clock
from container_update.emulator.clock import stamp
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import pod_state
from container_update.emulator.kubernetes.controllers.base import Context, Handler, WorkQueue
from container_update.emulator.kubernetes.controllers.claim import ClaimingController
from container_update.emulator.kubernetes.controllers.workloads.templates import pod_of
from container_update.emulator.kubernetes.objects import (
    Key,
    controller_of,
    has_finalizer,
    is_deleting,
    key_of,
    new_condition,
    without_finalizer,
)

TRACKING = "batch.kubernetes.io/job-tracking"
_RESUMED, _SUSPENDED = ("JobResumed", "Job resumed"), ("JobSuspended", "Job suspended")
_COMPLETED = ("CompletionsReached", "Reached expected number of succeeded pods")
_FAILED = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")


class Jobs(ClaimingController):
    """Runs every Job until it is complete or has failed."""

    resource, kind, owned, component = "jobs", "Job", "pods", "job-controller"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._behaviour = context.behaviour
        self._orphans = WorkQueue(context.loop, self._release_orphan)

    def handlers(self) -> Mapping[str, Handler]:
        """Handle Jobs and pods."""
        return {"jobs": self.enqueue, "pods": self._pod_changed}

    def reconcile(self, job: Json) -> None:
        """Count finished pods, start missing ones, write the status."""
        pods = self.claim(job)
        if not is_finished(job):
            job = self.write_status(job, self._advance(job, pods))
        for pod in pods:
            if pod_state.is_finished(pod):
                self._untrack(pod)
        ttl = job["spec"].get("ttlSecondsAfterFinished")
        if ttl is not None and is_finished(job) and not is_deleting(job):
            self._expire(key_of(job), job, ttl)

    def stop(self) -> None:
        """Stop both queues."""
        super().stop()
        self._orphans.stop()

    def _pod_changed(self, event: str, pod: Json, previous: Json | None) -> None:
        self.owned_changed(event, pod, previous)
        if event != "DELETED" and has_finalizer(pod, TRACKING) and self._job_of(pod) is None:
            self._orphans.add(key_of(pod))

    def _release_orphan(self, key: Key) -> None:
        """Remove the finalizer of a pod whose Job is removed."""
        pod = self.registry.get("pods", *key)
        if pod is not None and self._job_of(pod) is None:
            self._untrack(pod)

    def _job_of(self, pod: Json) -> Json | None:
        owner = controller_of(pod)
        return self.stored_object(owner["uid"]) if owner is not None else None

    def _untrack(self, pod: Json) -> None:
        stored = self.registry.get("pods", *key_of(pod))
        if stored is not None and has_finalizer(stored, TRACKING):
            self.registry.update("pods", *key_of(pod), without_finalizer(stored, TRACKING))

    def _advance(self, job: Json, pods: list[Json]) -> Json:
        """Start or stop pods, and return the status for what was there before."""
        finished = _count_finished(job, pods)
        active = [pod for pod in pods if pod_state.is_active(pod)]
        desired, conditions = self._decide(job, finished, active)
        running = self._scale(job, active, desired, finished["failed"])
        counts = {"active": min(running, desired), **finished}
        status: Json = {
            "terminating": sum(map(pod_state.is_terminating, pods)),
            "uncountedTerminatedPods": {},
            "ready": sum(map(pod_state.is_ready, active)) if desired else 0,
            **{name: count for name, count in counts.items() if count},
        }
        if not job["spec"].get("suspend"):
            status["startTime"] = job.get("status", {}).get("startTime") or stamp()
        if conditions:
            status["conditions"] = conditions
        if any(entry["type"] == "Complete" for entry in conditions):
            status["completionTime"] = stamp()
        return status

    def _decide(
        self, job: Json, finished: dict[str, int], active: list[Json]
    ) -> tuple[int, list[Json]]:
        """Return how many pods should run now, and the Job's conditions."""
        spec, conditions = job["spec"], list(job.get("status", {}).get("conditions") or [])
        if is_deleting(job):
            return len(active), conditions
        if finished["failed"] + sum(map(pod_state.restarts, active)) > spec.get("backoffLimit", 6):
            self.record.warning(self.component, job, *_FAILED)
            return 0, [*conditions, *_both("FailureTarget", "Failed", *_FAILED)]
        if _is_complete(spec, finished["succeeded"], active):
            self.record.normal(self.component, job, "Completed", "Job completed")
            return 0, [*conditions, *_both("SuccessCriteriaMet", "Complete", *_COMPLETED)]
        suspended = bool(spec.get("suspend"))
        desired = 0 if suspended else _desired_pods(spec, finished["succeeded"])
        return desired, _with_suspension(conditions, suspended)

    def _scale(self, job: Json, active: list[Json], desired: int, failures: int) -> int:
        """Bring the number of active pods to *desired* and return it; later after a new failure."""
        counted = job.get("status", {}).get("failed", 0)
        if failures > counted and len(active) < desired:
            self.queue.add_after(key_of(job), self._behaviour.backoff(failures))
            return len(active)
        for _ in range(desired - len(active)):
            body = pod_of(job, job["spec"]["template"])
            body["metadata"]["finalizers"] = [*body["metadata"].get("finalizers", []), TRACKING]
            self.create_pod(job, body)
        for pod in active[desired:]:
            self.delete_pod(job, pod)
        return desired

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


def is_finished(job: Json) -> bool:
    """Return whether the Job is complete or has failed."""
    return any(
        entry["type"] in {"Complete", "Failed"} and entry["status"] == "True"
        for entry in job.get("status", {}).get("conditions") or []
    )


def _count_finished(job: Json, pods: list[Json]) -> dict[str, int]:
    """Return how many pods have succeeded and failed so far, those counted before included."""
    before = job.get("status", {})
    uncounted = [pod for pod in pods if has_finalizer(pod, TRACKING)]
    return {
        name: before.get(name, 0) + sum(pod_state.phase(pod) == phase for pod in uncounted)
        for name, phase in (("succeeded", "Succeeded"), ("failed", "Failed"))
    }


def _is_complete(spec: Json, succeeded: int, active: list[Json]) -> bool:
    completions = spec.get("completions")
    if completions is None:
        return succeeded > 0 and not active
    return bool(succeeded >= completions)


def _desired_pods(spec: Json, succeeded: int) -> int:
    """Return how many pods should run now."""
    parallelism, completions = int(spec.get("parallelism", 1)), spec.get("completions")
    if completions is None:
        return 0 if succeeded else parallelism
    return min(parallelism, int(completions) - succeeded)


def _condition(kind: str, status: str, reason: str, message: str) -> Json:
    now = stamp()
    return new_condition(kind, status, reason, message, now, lastProbeTime=now)


def _both(first: str, second: str, reason: str, message: str) -> list[Json]:
    """Return the condition that announces the end of a Job, and the one that states it."""
    return [_condition(kind, "True", reason, message) for kind in (first, second)]


def _with_suspension(conditions: list[Json], suspended: bool) -> list[Json]:
    old = next((entry for entry in conditions if entry["type"] == "Suspended"), None)
    if (old is not None and old["status"] == str(suspended)) or (not old and not suspended):
        return conditions
    others = [entry for entry in conditions if entry is not old]
    reason, message = _SUSPENDED if suspended else _RESUMED
    return [*others, _condition("Suspended", str(suspended), reason, message)]
