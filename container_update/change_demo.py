"""A change of the VNF package, start to end, on the embedded cluster: ``demo --scenario``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TextIO

from container_update import report
from container_update.change_vnfpkg.change import Changed, change_vnfpkg
from container_update.change_vnfpkg.kubernetes import KubernetesSite
from container_update.change_vnfpkg.request import ChangeRequest
from container_update.change_vnfpkg.strategy import Order
from container_update.cluster import connect
from container_update.config import Options
from container_update.demo import embedded_cluster, find_samples, show, title
from container_update.instantiate import instantiate


@dataclass(frozen=True)
class Scenario:
    """A sample, and the VNF instance that it plays with."""

    sample: str
    instance_id: str

    def order(self, folder: Path) -> Order:
        """From the package before to the one after."""
        return Order(
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
    :raises ContainerUpdateError: something did not work, the embedded cluster's extra is missing.
    """
    scenario = SCENARIOS[name]
    order = scenario.order(find_samples() / scenario.sample)
    with embedded_cluster() as embedded, TemporaryDirectory() as folder:
        kubeconfig = str(embedded.write_kubeconfig(Path(folder) / "kubeconfig"))
        with connect(kubeconfig) as cluster:
            title(out, "The VNF as its old package describes it")
            instantiate(order.old, cluster, instance_id=order.instance_id)
            show(cluster, out)
            title(out, f"The change: {order.request.upgrade_type.value}")
            site = KubernetesSite(cluster, access={"kubeconfig": kubeconfig})
            changed = change_vnfpkg(order, site)
            out.write(f"{report.plan_text(changed.outcome.plan)}\n\n")
            out.write(f"{report.outcome_text(changed.outcome)}\n")
            for script in changed.scripts:
                out.write(f"{script}\n")
            title(out, "The VNF after the change")
            show(cluster, out)
            return changed
