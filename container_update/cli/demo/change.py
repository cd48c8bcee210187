"""A change of the VNF package, start to end, on the embedded cluster: ``demo --scenario``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TextIO

from container_update.cli.demo import tables
from container_update.cli.demo.update import embedded_cluster, show, title
from container_update.cli.reports import text_report
from container_update.cluster.client import KubernetesCluster, connect
from container_update.model.objects import Collection, Json
from container_update.model.options import Options
from container_update.operations.change_package import Changed, run_change
from container_update.operations.change_request import ChangeRequest
from container_update.operations.install import install
from container_update.operations.strategies.kubernetes import KubernetesTarget
from container_update.operations.strategy import ChangeJob
from container_update.package import samples
from container_update.planning.release_labels import selector_of
from container_update.workloads import traffic


@dataclass(frozen=True)
class Scenario:
    """A sample, and the id of its VNF instance."""

    sample: str
    instance_id: str

    def job(self, folder: Path) -> ChangeJob:
        """Return the change from the old package to the new one."""
        return ChangeJob(
            request=ChangeRequest.of(json.loads((folder / "request.json").read_text())),
            old=str(folder / "before"),
            new=str(folder / "after"),
            instance_id=self.instance_id,
            options=Options(drain_seconds=1),
        )


SCENARIOS = {
    "blue-green": Scenario("04-blue-green", "sample-04"),
    "rolling": Scenario("05-rolling-update", "sample-05"),
}


def demo_change(name: str, out: TextIO) -> Changed:
    """Instantiate the sample's old package, show it, change it, show it again.

    :param name: a key of :data:`SCENARIOS`.
    :raises ContainerUpdateError: a step failed, or the extra emulator is not installed.
    """
    scenario = SCENARIOS[name]
    job = scenario.job(samples.root() / scenario.sample)
    with embedded_cluster() as embedded, TemporaryDirectory() as folder:
        kubeconfig = str(embedded.write_kubeconfig(Path(folder) / "kubeconfig"))
        with connect(kubeconfig) as cluster:
            title(out, "The VNF as its old package describes it")
            install(job.old, cluster, instance_id=job.instance_id)
            _show_all(cluster, out)
            title(out, f"The change: {job.request.upgrade_type}")
            target = KubernetesTarget(cluster, access={"kubeconfig": kubeconfig})
            changed = run_change(job, target)
            out.write(f"{text_report.plan_text(changed.outcome.plan)}\n\n")
            out.write(f"{text_report.outcome_text(changed.outcome)}\n")
            for script in changed.scripts:
                out.write(f"{script}\n")
            title(out, "The VNF after the change")
            _show_all(cluster, out)
            return changed


def _show_all(cluster: KubernetesCluster, out: TextIO) -> None:
    """Show the objects, and which pods get the traffic of the Services."""
    show(cluster, out)
    slices = cluster.list(Collection("discovery.k8s.io", "EndpointSlice", "default")).items
    services = cluster.list(Collection("", "Service", "default")).items
    rows = [
        (
            service["metadata"]["name"],
            ",".join(f"{name}={value}" for name, value in selector_of(service).items()),
            ", ".join(_served(service["metadata"]["name"], slices)),
        )
        for service in services
        if selector_of(service)
    ]
    if rows:
        out.write("\n" + tables.table(("SERVICE", "SELECTOR", "SENDS ITS TRAFFIC TO"), rows) + "\n")


def _served(service: str, slices: Sequence[Json]) -> list[str]:
    return sorted(
        endpoint["targetRef"]["name"]
        for body in slices
        if body["metadata"]["labels"].get(traffic.SERVICE_LABEL) == service
        for endpoint in body.get("endpoints") or ()
        if endpoint["conditions"].get("ready")
    )
