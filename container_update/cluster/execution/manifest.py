"""Objects that come, change as a whole, and go: what a change of the package does beside restarts.

As in ``restart``, every step can be taken again: what is there already is looked at, not repeated.
"""

from __future__ import annotations

from dataclasses import dataclass

from container_update.cluster.execution.workload import ChangedByAnotherError, Restarter
from container_update.model.objects import INSTANCE_LABEL, Json
from container_update.model.plan import Action, Step
from container_update.planning import step_edits
from container_update.workloads import readiness
from container_update.workloads.readiness import Baseline


@dataclass(frozen=True)
class Objects:
    """Carries out the steps of whole objects in one cluster."""

    restarter: Restarter

    def write(self, step: Step) -> None:
        """Create or replace what runs no containers.

        :raises ChangedByAnotherError: it is neither as planned nor as wanted.
        """
        if step.action is Action.CREATE:
            self._create(step)
        else:
            self._replace(step)

    def create_workload(self, step: Step, deadline: float) -> None:
        """Create what runs containers and wait until all of them are Ready.

        :raises NotReadyError: they did not get there.
        :raises ChangedByAnotherError: another made an object of that name.
        """
        self.restarter.waiter.informer.observe(self._create(step))
        self.until_ready(step, deadline)

    def until_ready(self, step: Step, deadline: float) -> None:
        """Wait until a workload that was created has all of its pods Ready."""
        if step.key.kind == "Pod":
            self.restarter.until_recreated(step.key, "", deadline)
        elif step.key.kind in readiness.CONTROLLERS:
            self.restarter.until_new(step.key, Baseline(), deadline)

    def switch(self, step: Step, leaving: frozenset[str], deadline: float) -> None:
        """Point a Service, or what else points, at the new pods; see its traffic arrive there.

        :param leaving: UIDs of the pods that are to get none any more.
        :raises NotReadyError: the Service's endpoints did not follow.
        :raises ChangedByAnotherError: it is neither as planned nor as wanted.
        """
        self._replace(step)
        if step.key.kind == "Service":
            self.restarter.until_served(step.key, leaving, deadline)

    def delete(self, step: Step, deadline: float) -> None:
        """Delete the object that the plan was made from.

        :raises NotReadyError: it does not go.
        :raises ChangedByAnotherError: there is another one of that name by now.
        """
        assert step.before is not None, "only what is there is deleted"
        uid = step.before["metadata"]["uid"]
        live = self.restarter.cluster.get(step.key)
        if live is None:
            return
        if live["metadata"]["uid"] != uid:
            raise ChangedByAnotherError(f"{step.key} was made again by another")
        self.restarter.cluster.delete(step.key, uid=uid)
        if step.key.is_workload and step.key.kind not in ("Job", "CronJob"):
            self.restarter.until_gone(step.key, uid, deadline)

    def _create(self, step: Step) -> Json:
        assert step.content is not None, "what is created has its manifest"
        instance = self.restarter.instance_id
        labels = {INSTANCE_LABEL: instance} if instance else {}
        body = step_edits.new_object(step.content, step.key.namespace, labels)
        return self.restarter.create(body, lambda live: step_edits.is_ours(step, live))

    def _replace(self, step: Step) -> None:
        live = self.restarter.cluster.get(step.key)
        written = self.restarter.write(step, live, step_edits.desired, step_edits.is_untouched)
        self.restarter.waiter.informer.observe(written)
