# SPDX-License-Identifier: Apache-2.0
"""Carries out the steps that run a coordination script."""

from __future__ import annotations

from dataclasses import replace

from container_update.cluster.waiting import AbortedError
from container_update.engine.context import ExecutionContext
from container_update.model.objects import ObjectKey
from container_update.model.scripts import NEW, OLD, ScriptReport, ScriptStep, VduChange


class ScriptExecutor:
    """Runs a script with the names and the addresses of the pods that its VDU has now."""

    def __init__(self, context: ExecutionContext) -> None:
        self._waiter, self._run_script = context.rollout.waiter, context.run_script

    def apply(self, step: ScriptStep, deadline: float) -> ScriptReport | None:  # noqa: ARG002
        """Run the script, which has a time limit of its own; return its report."""
        report = self._run_script(replace(step, vdu=self._with_pods(step.vdu)))
        if self._waiter.aborted.is_set():
            raise AbortedError
        return report

    def _with_pods(self, vdu: VduChange) -> VduChange:
        new = self._pods(vdu, vdu.new_resource)
        old = self._pods(vdu, vdu.old_resource) if vdu.old_resource else {}
        first = {which: next(iter(ips.values()), "") for which, ips in ((NEW, new), (OLD, old))}
        pods = {"new_pods": list(new), "old_pods": list(old), "pod_ips": {**old, **new}}
        return replace(
            vdu,
            details={**vdu.details, **pods},
            ssh_ips={which: ip for which, ip in first.items() if ip},
        )

    def _pods(self, vdu: VduChange, name: str) -> dict[str, str]:
        """Return the names of a workload's pods to their addresses."""
        key = ObjectKey("apps", vdu.details["kind"], vdu.details["namespace"], name)
        live = self._waiter.informer.get(key)
        pods = self._waiter.informer.pods_of(live) if live else ()
        return {pod["metadata"]["name"]: pod.get("status", {}).get("podIP", "") for pod in pods}
