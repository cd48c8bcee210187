"""Blue-Green on Kubernetes: new Deployments beside the old ones, the Service switched between them.

Source: the specification's "Blue-Green deployment process for Kubernetes VIM": the Deployment's
name changes, VNFCs keep their ids.
"""

from __future__ import annotations

from container_update.model.objects import Manifest
from container_update.model.plan import Action
from container_update.operations.strategies.kubernetes import KubernetesStrategy
from container_update.planning.blue_green import BlueGreenPlanner
from container_update.planning.change import ChangePlanner
from container_update.planning.comparison.package_pair import Objects
from container_update.planning.release_labels import pod_labels, selector_of
from container_update.workloads.traffic import selects


class KubernetesBlueGreen(KubernetesStrategy):
    """See the module."""

    planner = BlueGreenPlanner
    new_vnfc_ids = False

    def switch_over(self) -> None:
        """Switch, then let the old pods finish the requests that they have."""
        super().switch_over()
        run = self._running
        if any(step.action is Action.DELETE for step in run.execution.plan.steps):
            run.execution.linger(self.job.options.drain_seconds)

    def successors(self, planner: ChangePlanner) -> dict[str, str]:
        """Return the old Deployments' names to those of the new ones."""
        assert isinstance(planner, BlueGreenPlanner), "this strategy's own planner"
        return {pair.blue.name: planner.renamed[key.name] for key, pair in planner.pairs.items()}

    def connection_points(self, planner: ChangePlanner) -> dict[str, str]:
        """Return old to new name of a Service that another one has replaced."""
        assert isinstance(planner, BlueGreenPlanner), "this strategy's own planner"
        replaced: dict[str, str] = {}
        for pair in planner.pairs.values():
            old = _serving(self.packages.old, pair.old, but_in=self.packages.new)
            new = _serving(self.packages.new, pair.new, but_in=self.packages.old)
            replaced.update(zip(old, new, strict=False))
        return replaced


def _serving(objects: Objects, served: Manifest | None, *, but_in: Objects) -> list[str]:
    return [
        key.name
        for key, manifest in objects.items()
        if key.kind == "Service"
        and key not in but_in
        and served is not None
        and selects(selector_of(manifest.body), pod_labels(served.body))
    ]
