# SPDX-License-Identifier: Apache-2.0
"""The plan of a rolling update: every workload in place, by the cluster's own mechanism. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from container_update.model.objects import Manifest, ObjectKey
from container_update.model.plan import Step
from container_update.model.scripts import NEW
from container_update.planning.release_labels import pod_labels, selector_of
from container_update.planning.strategy import Strategy
from container_update.workloads.traffic import selects


class RollingPlanner(Strategy):
    """Decides a rolling update: a change of the package with everything in place.

    Source: the specification's "Rolling update process for Kubernetes VIM": Deployment and
    connection points stay, VNFCs get new ids.
    """

    script_roles = frozenset({NEW})  # run after the update: no old VNF is left

    def other_step(self, key: ObjectKey, new: Manifest) -> Iterator[Step]:
        """Yield the step that switches a Service once the new pods are there; note a gap."""
        for step in super().other_step(key, new):
            self._warn_of_gap(key, new)
            yield step

    def _warn_of_gap(self, key: ObjectKey, new: Manifest) -> None:
        live = self.live.get(key)
        if key.kind != "Service" or key.group or live is None:
            return
        now, then = selector_of(live), selector_of(new.body)
        for workload_key, manifest in self.packages.new.items():
            before, is_near = self.live.get(workload_key), workload_key.namespace == key.namespace
            if before is None or workload_key.kind != "Deployment" or now == then or not is_near:
                continue
            if selects(now, pod_labels(before)) and selects(then, pod_labels(manifest.body)):
                self._note(
                    key,
                    f"its selector changes along with the labels of {workload_key}: between the "
                    "two it has no endpoints; Blue-Green has no such gap",
                )
