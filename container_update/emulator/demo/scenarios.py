# SPDX-License-Identifier: Apache-2.0
"""``container-update try demo``: a sample's VNF on an emulator: created, shown, changed, shown."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TextIO

from container_update.cli.terminal.progress import show_progress
from container_update.cli.terminal.screen import Screen
from container_update.cluster.client import KubernetesCluster, connect
from container_update.emulator.demo import views
from container_update.emulator.demo.emulators import embedded_cloud, embedded_cluster
from container_update.engine import run as engine
from container_update.engine.goals.change import PackageChange
from container_update.engine.verbs import install, update
from container_update.model.errors import (
    ContainerUpdateError,
    UndoIncompleteError,
    UpdateFailedError,
)
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress
from container_update.model.requests import DEF_FILES, ChangePackageRequest, UpdateRequest
from container_update.model.scripts import ScriptReport
from container_update.package.tools import samples
from container_update.reports.lines import Line
from container_update.reports.outcome_report import summary_line
from container_update.workloads.registry import is_workload

if TYPE_CHECKING:
    from container_update.emulator.heat.balancer import Balancer

STACK = "vnf-sample"
INSTANCE_ID = "f21814f0-3e00-4651-a9ac-ec10f3248c19"
"""The VNF instance of the user guide."""
_NEW_IMAGE = "cirros"
"""The image that both guides' updates give to Deployments and Pods."""
_OPTIONS = Options(drain_seconds=1)


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
        with show_progress(out) as progress:
            outcome, below = vnf.change(progress)
        Screen(out).show([summary_line(outcome)])
        Screen(out).show(Line.of(str(each)) for each in below)
        _write_title(out, vnf.last_heading)
        vnf.show(out)
    if scenario == "modify":
        _write_title(out, "What restarted, and what did not")
        Screen(out).show(map(Line.of, _restarts(outcome)))


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
def _connect_embedded(bad_images: Sequence[str] = ()) -> Iterator[KubernetesCluster]:
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
    with _connect_embedded() as cluster:
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
    with _connect_embedded(bad_images=(_NEW_IMAGE,)) as cluster:
        yield Vnf(
            f"The update, when the image {_NEW_IMAGE} cannot be pulled",
            lambda: install(request.old, cluster, def_files=files, instance_id=instance_id),
            partial(_fail_and_undo, request, cluster),
            partial(views.show_cluster, cluster, instance_id),
            "The VNF after the failure: as it was before",
        )


def _fail_and_undo(
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
    request = _change(samples.root() / sample, instance_id)
    with _connect_embedded() as cluster:
        change = PackageChange(request, cluster, _OPTIONS)

        def carry_out(progress: Progress) -> tuple[Outcome, Sequence[ScriptReport]]:
            outcome = engine.run(change, cluster, _OPTIONS, progress=progress)
            return outcome, change.reports

        yield Vnf(
            f"The change: {change.intent.kind}",
            lambda: install(request.old, cluster, instance_id=instance_id),
            carry_out,
            partial(views.show_cluster, cluster, instance_id),
        )


# --- the embedded cloud -------------------------------------------------------------------------


@contextmanager
def _on_cloud(sample: str) -> Iterator[Vnf]:
    with embedded_cloud() as (cloud, balancer), TemporaryDirectory() as folder:
        from container_update.openstack.change import StackChange  # noqa: PLC0415
        from container_update.openstack.client import connect  # noqa: PLC0415
        from container_update.openstack.instantiate import Instantiate, described_by  # noqa: PLC0415
        from container_update.openstack.stack_instance import StackInstance  # noqa: PLC0415

        copy = Path(shutil.copytree(samples.root() / sample, Path(folder, "sample")))
        request = replace(_change(copy, "sample"), body=_request(copy, balancer))
        stack = described_by(request.old, "simple", {"network": "private"}, _OPTIONS)
        goal = Instantiate(STACK, stack, _OPTIONS, STACK)
        with connect(auth=cloud.auth()) as heat:
            change = StackChange(request, heat, STACK, _OPTIONS)

            def carry_out(progress: Progress) -> tuple[Outcome, Sequence[ScriptReport]]:
                return change.run(progress=progress), change.reports

            yield Vnf(
                f"The change: {change.change.upgrade_type}",
                lambda: engine.operate(goal, StackInstance(heat, request.instance_id, _OPTIONS)),
                carry_out,
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


def _change(folder: Path, instance_id: str) -> ChangePackageRequest:
    old, new = str(folder / "before"), str(folder / "after")
    return ChangePackageRequest(_json(folder / "request.json"), old, new, instance_id=instance_id)


def _json(path: Path) -> Any:
    return json.loads(path.read_text())


SCENARIOS: Mapping[str, Callable[[], AbstractContextManager[Vnf]]] = {
    "blue-green": partial(_on_cluster, "04-blue-green", "sample-04"),
    "rolling": partial(_on_cluster, "05-rolling-update", "sample-05"),
    "openstack-blue-green": partial(_on_cloud, "06-openstack-blue-green"),
    "openstack-rolling": partial(_on_cloud, "07-openstack-rolling"),
}
"""A change of the package to how its VNF is made."""
