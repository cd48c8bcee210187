"""A user guide's update, start to end, on the embedded cluster: ``container-update demo``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TextIO

from container_update.cli.demo import tables
from container_update.cli.reports import text_report
from container_update.cluster.client import KubernetesCluster, connect
from container_update.model.errors import ContainerUpdateError
from container_update.model.objects import Collection, Json
from container_update.model.outcome import Outcome
from container_update.model.requests import DEF_FILES, UpdateRequest
from container_update.operations.install import install
from container_update.operations.update import update
from container_update.package import samples
from container_update.workloads.registry import is_workload

if TYPE_CHECKING:
    from container_update.emulator.kubernetes import EmbeddedCluster

INSTANCE_ID = "f21814f0-3e00-4651-a9ac-ec10f3248c19"
"""The VNF instance of the user guide."""

_WORKLOADS = ("Deployment", "DaemonSet", "ReplicaSet", "StatefulSet")


@dataclass(frozen=True)
class Guide:
    """The packages and requests of one of the two user guides."""

    folder: Path

    @property
    def def_files(self) -> tuple[str, ...]:
        """Those of its instantiate request."""
        request = self._request("instance_kubernetes.json")
        return tuple(request["additionalParams"][DEF_FILES])

    @property
    def config_paths(self) -> tuple[str, ...]:
        """``configmap_secret_paths`` of its modify request."""
        request = self._request("sample_param_file.json")
        return tuple(request["metadata"]["configmap_secret_paths"])

    def update_request(self) -> UpdateRequest:
        """Return the update from the old package to the new one."""
        return UpdateRequest(
            old=str(self.folder / "before"),
            new=str(self.folder / "after"),
            def_files=self.def_files,
            config_paths=self.config_paths,
            instance_id=INSTANCE_ID,
        )

    def _request(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())


def demo(guide: str, out: TextIO) -> Outcome:
    """Instantiate the guide's old package, show it, update it, show it again.

    :param guide: 'v1' or 'v2'.
    :raises ContainerUpdateError: a step failed, or the extra emulator is not installed.
    """
    sample = Guide(samples.root() / samples.GUIDE / guide)
    with embedded_cluster() as embedded, TemporaryDirectory() as folder:
        kubeconfig = embedded.write_kubeconfig(Path(folder) / "kubeconfig")
        with connect(str(kubeconfig)) as cluster:
            return _run(sample, cluster, out)


def embedded_cluster(*, port: int = 0, nodes: int = 1) -> EmbeddedCluster:
    """Return the embedded cluster, not started yet.

    :raises ContainerUpdateError: the extra emulator is not installed.
    """
    try:
        from container_update.emulator.kubernetes import EmbeddedCluster  # noqa: PLC0415
    except ImportError as error:
        raise ContainerUpdateError(
            f"the embedded cluster needs the Python package {error.name}: install it with "
            "pip install 'container-update[emulator]'"
        ) from error
    return EmbeddedCluster(port=port, nodes=nodes)


def _run(guide: Guide, cluster: KubernetesCluster, out: TextIO) -> Outcome:
    request = guide.update_request()
    title(out, "The CNF as its old package describes it")
    install(request.old, cluster, def_files=request.def_files, instance_id=request.instance_id)
    show(cluster, out)
    title(out, "The update")
    outcome = update(request, cluster)
    out.write(f"{text_report.plan_text(outcome.plan)}\n\n{text_report.outcome_text(outcome)}\n")
    title(out, "The CNF after the update")
    show(cluster, out)
    title(out, "What restarted, and what did not")
    out.write(_summary(outcome) + "\n")
    return outcome


def title(out: TextIO, text: str) -> None:
    """Write a heading."""
    out.write(f"\n{text}\n{'=' * len(text)}\n\n")


def show(cluster: KubernetesCluster, out: TextIO) -> None:
    """Show the CNF in the namespace default as tables: configuration, pods, workloads."""
    now = datetime.now(timezone.utc)

    def objects(kind: str, group: str = "") -> list[Json]:
        listing = cluster.list(Collection(group, kind, "default"))
        return [body for body in listing.items if body["metadata"]["name"] != "kube-root-ca.crt"]

    workloads = [body for kind in _WORKLOADS for body in objects(kind, "apps")]
    out.write(tables.config([*objects("ConfigMap"), *objects("Secret")]) + "\n\n")
    out.write(tables.pods(objects("Pod"), now) + "\n\n")
    out.write(tables.workloads(workloads, now) + "\n")


def _summary(outcome: Outcome) -> str:
    lines = []
    for result in outcome.results:
        step = result.step
        if not step.is_config:
            reasons = "; ".join(str(reason) for reason in step.reasons[:2])
            more = len(step.reasons) - 2
            reasons += f" (and {more} more)" if more > 0 else ""
            lines.append(f"{step.key}: {step.action.value}, because {reasons}")
    lines += [
        f"{key}: not restarted, nothing that it uses changed"
        for key in outcome.plan.unchanged
        if is_workload(key)
    ]
    return "\n".join(lines)
