# SPDX-License-Identifier: Apache-2.0
"""``container-update try demo``: a sample's VNF on an emulator: created, shown, changed, shown."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TextIO

from container_update.cli.reports.outcome_report import summary_line
from container_update.cli.terminal.progress import shown
from container_update.cli.terminal.screen import Screen
from container_update.cluster.client import KubernetesCluster, connect
from container_update.emulator.demo import views
from container_update.emulator.demo.emulators import embedded_cloud, embedded_cluster
from container_update.engine.goals.change import KubernetesTarget
from container_update.engine.goals.change_job import ChangeJob
from container_update.engine.goals.change_package import Target, run_change
from container_update.engine.goals.change_request import ChangeRequest
from container_update.engine.goals.install import install
from container_update.engine.goals.update import update
from container_update.engine.run import operate
from container_update.model.errors import (
    ContainerUpdateError,
    UndoIncompleteError,
    UpdateFailedError,
)
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress
from container_update.model.requests import DEF_FILES, UpdateRequest
from container_update.model.scripts import ScriptReport
from container_update.package.tools import samples
from container_update.workloads.registry import is_workload

if TYPE_CHECKING:
    from container_update.emulator.heat.balancer import Balancer

STACK = "vnf-sample"
INSTANCE_ID = "f21814f0-3e00-4651-a9ac-ec10f3248c19"
"""The VNF instance of the user guide."""
_NEW_IMAGE = "cirros"
"""The image that both guides' updates give to Deployments and Pods."""


@dataclass(frozen=True)
class Vnf:
    """A sample's VNF on an emulator."""

    heading: str
    """Of its change."""
    install: Callable[[], object]
    change: Callable[[Progress], tuple[Outcome, Sequence[object]]]
    """Returns also what is to be shown below the outcome, line by line."""
    show: Callable[[TextIO], None]
    last_heading: str = "The VNF after the change"


def run(scenario: str, guide: str, out: TextIO) -> None:
    """Instantiate a sample's old package, show the VNF, change it, show it again.

    :param scenario: 'modify', 'failure', or a key of :data:`SCENARIOS`.
    :param guide: of 'modify' and 'failure': 'v1' or 'v2'.
    :raises ContainerUpdateError: a step failed, or an extra is not installed.
    """
    guides = {"modify": _guide, "failure": _failing_guide}
    opened = guides[scenario](guide) if scenario in guides else SCENARIOS[scenario]()
    with opened as vnf:
        _write_title(out, "The VNF as its old package describes it")
        vnf.install()
        vnf.show(out)
        _write_title(out, vnf.heading)
        with shown(out) as progress:
            outcome, below = vnf.change(progress)
        Screen(out).show([summary_line(outcome)])
        out.writelines(f"{line}\n" for line in below)
        _write_title(out, vnf.last_heading)
        vnf.show(out)
    if scenario == "modify":
        _write_title(out, "What restarted, and what did not")
        out.writelines(f"{line}\n" for line in _restarts(outcome))


def _write_title(out: TextIO, text: str) -> None:
    out.write(f"\n{text}\n{'=' * len(text)}\n\n")


def _restarts(outcome: Outcome) -> Iterator[str]:
    for step in (result.step for result in outcome.results if not result.step.is_config):
        reasons = "; ".join(str(reason) for reason in step.reasons[:2])
        more = len(step.reasons) - 2
        reasons += f" (and {more} more)" if more > 0 else ""
        yield f"{step.key}: {step.action.value}, because {reasons}"
    for key in filter(is_workload, outcome.plan.unchanged):
        yield f"{key}: not restarted, nothing that it uses changed"


# --- the embedded cluster -----------------------------------------------------------------------


@contextmanager
def _connected(bad_images: Sequence[str] = ()) -> Iterator[KubernetesCluster]:
    """Connect to an embedded cluster.

    :param bad_images: patterns of the images that cannot be pulled.
    """
    with (
        embedded_cluster() as embedded,
        TemporaryDirectory() as folder,
        connect(str(embedded.write_kubeconfig(Path(folder, "kubeconfig")))) as cluster,
    ):
        embedded.behaviour.bad_images.extend(bad_images)
        yield cluster


@contextmanager
def _guide(guide: str) -> Iterator[Vnf]:
    request = guide_request(guide)
    files, instance_id = request.def_files, request.instance_id
    with _connected() as cluster:
        yield Vnf(
            "The update",
            lambda: install(request.old, cluster, def_files=files, instance_id=instance_id),
            lambda progress: (update(request, cluster, progress=progress), ()),
            partial(views.show_cluster, cluster, instance_id),
        )


@contextmanager
def _failing_guide(guide: str) -> Iterator[Vnf]:
    request = guide_request(guide)
    files, instance_id = request.def_files, request.instance_id
    with _connected(bad_images=(_NEW_IMAGE,)) as cluster:
        yield Vnf(
            f"The update, when the image {_NEW_IMAGE} cannot be pulled",
            lambda: install(request.old, cluster, def_files=files, instance_id=instance_id),
            partial(_failed, request, cluster),
            partial(views.show_cluster, cluster, instance_id),
            "The VNF after the failure: as it was before",
        )


def _failed(
    request: UpdateRequest, cluster: KubernetesCluster, progress: Progress
) -> tuple[Outcome, Sequence[object]]:
    """Return the outcome of an update that fails and is undone, and what it ends with.

    :raises UndoIncompleteError: it could not be undone.
    """
    try:
        update(request, cluster, Options(grace_period=1), progress=progress)
    except UndoIncompleteError:
        raise
    except UpdateFailedError as error:
        return error.outcome, [f"{error}."]
    raise ContainerUpdateError(f"the update succeeded: expected that {_NEW_IMAGE} cannot be pulled")


def guide_request(guide: str) -> UpdateRequest:
    """Return the update of a user guide, from its old package to the new one.

    :param guide: 'v1' or 'v2'.
    """
    folder = samples.root() / samples.GUIDE / guide
    instance = _json(folder / "instance_kubernetes.json")
    modify = _json(folder / "sample_param_file.json")
    return UpdateRequest(
        old=str(folder / "before"),
        new=str(folder / "after"),
        def_files=tuple(instance["additionalParams"][DEF_FILES]),
        config_paths=tuple(modify["metadata"]["configmap_secret_paths"]),
        instance_id=INSTANCE_ID,
    )


@contextmanager
def _on_cluster(sample: str, instance_id: str) -> Iterator[Vnf]:
    folder = samples.root() / sample
    job = _job(folder, _json(folder / "request.json"), instance_id)
    with _connected() as cluster:
        target = KubernetesTarget(cluster, access=cluster.access)
        yield Vnf(
            f"The change: {job.request.upgrade_type}",
            lambda: install(job.old, cluster, instance_id=instance_id),
            partial(_changed, job, target),
            partial(views.show_cluster, cluster, instance_id),
        )


# --- the embedded cloud -------------------------------------------------------------------------


@contextmanager
def _on_cloud(sample: str) -> Iterator[Vnf]:
    with embedded_cloud() as (cloud, balancer), TemporaryDirectory() as folder:
        from container_update.openstack.change import OpenStackTarget  # noqa: PLC0415
        from container_update.openstack.client import connect  # noqa: PLC0415
        from container_update.openstack.instantiate import Instantiate, described_by  # noqa: PLC0415
        from container_update.openstack.stack_instance import StackInstance  # noqa: PLC0415

        copy = Path(shutil.copytree(samples.root() / sample, Path(folder, "sample")))
        job = _job(copy, _request(copy, balancer), "sample")
        stack = described_by(job.old, "simple", {"network": "private"}, job.options)
        goal = Instantiate(STACK, stack, job.options, STACK)
        with connect(auth=cloud.auth()) as heat:
            yield Vnf(
                f"The change: {job.request.upgrade_type}",
                lambda: operate(goal, StackInstance(heat, job.instance_id, job.options)),
                partial(_changed, job, OpenStackTarget(heat, STACK)),
                partial(views.show_stacks, heat),
            )


def _request(folder: Path, balancer: Balancer) -> Any:
    """Return a sample's request, with the login of the balancer (step 2 of its README)."""
    body = _json(folder / "request.json")
    if "external_lb_param" in body["additionalParams"]:
        body["additionalParams"]["external_lb_param"] = balancer.login()
        (folder / "after" / "Scripts" / "known_hosts").write_text(balancer.known_hosts())
    return body


# --- both ---------------------------------------------------------------------------------------


def _job(folder: Path, body: Mapping[str, Any], instance_id: str) -> ChangeJob:
    return ChangeJob(
        request=ChangeRequest.of(body),
        old=str(folder / "before"),
        new=str(folder / "after"),
        instance_id=instance_id,
        options=Options(drain_seconds=1),
    )


def _changed(
    job: ChangeJob, target: Target, progress: Progress
) -> tuple[Outcome, Sequence[ScriptReport]]:
    changed = run_change(job, target, progress=progress)
    return changed.outcome, changed.scripts


def _json(path: Path) -> Any:
    return json.loads(path.read_text())


SCENARIOS: Mapping[str, Callable[[], AbstractContextManager[Vnf]]] = {
    "blue-green": partial(_on_cluster, "04-blue-green", "sample-04"),
    "rolling": partial(_on_cluster, "05-rolling-update", "sample-05"),
    "openstack-blue-green": partial(_on_cloud, "06-openstack-blue-green"),
    "openstack-rolling": partial(_on_cloud, "07-openstack-rolling"),
}
"""A change of the package to how its VNF is made."""
