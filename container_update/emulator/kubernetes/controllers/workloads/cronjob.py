# SPDX-License-Identifier: Apache-2.0
"""CronJobs: they create a Job when ``Behaviour.run_cronjob`` is called, not by the clock."""

from __future__ import annotations

from collections.abc import Mapping

from container_update.emulator.clock import stamp
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.controllers.base import Controller, Handler
from container_update.emulator.kubernetes.controllers.workloads.job import is_finished
from container_update.emulator.kubernetes.objects import controller_of, key_of, reference_to

COMPONENT = "cronjob-controller"
SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


class CronJobs(Controller):
    """Creates Jobs from CronJobs, and lists those that run."""

    resource = "cronjobs"

    def handlers(self) -> Mapping[str, Handler]:
        """Handle Jobs."""
        return {"jobs": self._job_changed}

    def reconcile(self, cronjob: Json) -> None:
        """List the running Jobs in the status."""
        jobs = self.index.controlled_objects("jobs", cronjob["metadata"]["uid"])
        status = {name: value for name, value in cronjob["status"].items() if name != "active"}
        active = [_reference(job) for job in jobs if not is_finished(job)]
        self.write_status(cronjob, {**status, "active": active} if active else status)

    def run(self, namespace: str, name: str) -> None:
        """Create a Job now; do nothing without such a CronJob or if it is suspended."""
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
    metadata = template.get("metadata") or {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "generateName": f"{cronjob['metadata']['name']}-",
            "labels": metadata.get("labels") or {},
            "annotations": {**(metadata.get("annotations") or {}), SCHEDULED: stamp()},
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
