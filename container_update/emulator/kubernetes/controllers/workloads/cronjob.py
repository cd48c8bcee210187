"""CronJobs: a Job when a test asks for one.

There is no clock behind them: ``Behaviour.run_cronjob`` is the hour that strikes.
"""

from __future__ import annotations

from collections.abc import Mapping

from container_update.emulator.clock import stamp
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.controllers.base import Controller, Handler, Key, key_of
from container_update.emulator.kubernetes.controllers.workloads.job import is_over
from container_update.emulator.kubernetes.ownership import controller_of, reference_to

COMPONENT = "cronjob-controller"
SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


class CronJobs(Controller):
    """Makes Jobs from CronJobs, and tells which of them run."""

    resource = "cronjobs"

    def handlers(self) -> Mapping[str, Handler]:
        """Jobs: a CronJob tells which of its own are active."""
        return {"jobs": self._job_changed}

    def reconcile(self, key: Key) -> None:
        """List the running Jobs in the status."""
        cronjob = self.registry.get(self.resource, *key)
        if cronjob is None:
            return
        jobs = self.index.controlled("jobs", cronjob["metadata"]["uid"])
        status = {name: value for name, value in cronjob["status"].items() if name != "active"}
        active = [_reference(job) for job in jobs if not is_over(job)]
        self.write_status(cronjob, {**status, "active": active} if active else status)

    def run(self, namespace: str, name: str) -> None:
        """Make a Job now; nothing happens where there is no such CronJob or it is suspended."""
        cronjob = self.registry.get(self.resource, namespace, name)
        if cronjob is None or cronjob["spec"].get("suspend"):
            return
        job = self.registry.create("jobs", namespace, _job_of(cronjob))
        text = f"Created job {job['metadata']['name']}"
        self.record.normal(COMPONENT, cronjob, "SuccessfulCreate", text)
        self.write_status(cronjob, {**cronjob.get("status", {}), "lastScheduleTime": stamp()})
        self.queue.add((namespace, name))

    def _job_changed(self, _event: str, job: Json, _previous: Json | None) -> None:
        owner = controller_of(job)
        if owner is not None and owner["kind"] == "CronJob":
            self.queue.add((job["metadata"]["namespace"], owner["name"]))


def _job_of(cronjob: Json) -> Json:
    template = cronjob["spec"]["jobTemplate"]
    given = template.get("metadata") or {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "generateName": f"{cronjob['metadata']['name']}-",
            "labels": given.get("labels") or {},
            "annotations": {**(given.get("annotations") or {}), SCHEDULED: stamp()},
            "ownerReferences": [reference_to(cronjob)],
        },
        "spec": template["spec"],
    }


def _reference(job: Json) -> Json:
    namespace, name = key_of(job)
    return {
        "kind": "Job",
        "namespace": namespace,
        "name": name,
        "uid": job["metadata"]["uid"],
        "apiVersion": "batch/v1",
        "resourceVersion": job["metadata"]["resourceVersion"],
    }
