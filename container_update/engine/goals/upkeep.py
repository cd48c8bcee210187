# SPDX-License-Identifier: Apache-2.0
"""What keeps a VNF that runs: to heal it, or some of its VNFCs, and to scale it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from container_update.engine.goal import Observed, PackageGoal
from container_update.engine.read_packages import packages_of
from container_update.engine.run import run
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import Cluster
from container_update.model.options import Options
from container_update.model.outcome import Outcome, Progress
from container_update.model.plan import Plan
from container_update.package import csar
from container_update.planning.comparison.package_pair import Packages, Placing
from container_update.planning.heal import HealPlanner
from container_update.planning.scale import scale_plan


def heal(  # noqa: PLR0913, PLR0917
    package: str,
    cluster: Cluster,
    vnfcs: Sequence[tuple[str, str]] = (),
    options: Options = Options(),  # noqa: B008
    cancel: CancelToken | None = None,
    progress: Progress = lambda _: None,
    *,
    placing: Placing = Placing(),  # noqa: B008
    instance_id: str | None = None,
    heal_id: str = "",
    leave_failed: bool = False,
) -> Outcome:
    """Replace broken pods; without *vnfcs*, bring the whole VNF to what its package says.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     heal("packages/v1", cluster, [("VDU1", "web-5c-x2")], placing=Placing(namespace="cnf"))

    :param package: what it runs from: a folder or a CSAR zip.
    :param vnfcs: VDU id and pod name of each VNFC; empty: the whole VNF.
    :param instance_id: objects that bear another instance's label are refused.
    :param heal_id: identifies the heal, so that it can be tried again; '': a new one.

    The other parameters and the errors are those of :func:`~container_update.engine.run.run`.
    """
    goal = Heal(package, placing, instance_id, options, heal_id or str(uuid.uuid4()), vnfcs)
    return run(goal, cluster, options, cancel, progress, leave_failed=leave_failed)


def scale(  # noqa: PLR0913, PLR0917
    package: str,
    cluster: Cluster,
    numbers: Mapping[str, int],
    options: Options = Options(),  # noqa: B008
    cancel: CancelToken | None = None,
    progress: Progress = lambda _: None,
    *,
    placing: Placing = Placing(),  # noqa: B008
    instance_id: str | None = None,
    scale_id: str = "",
    leave_failed: bool = False,
) -> Outcome:
    """Give VDUs another number of pods, and wait until so many are Ready and no more are there.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     scale("packages/v1", cluster, {"VDU1": 3}, placing=Placing(namespace="cnf"))

    :param numbers: VDU id to number of pods.
    :param scale_id: identifies the request, so that it can be tried again; '': a new one.

    The other parameters and the errors are those of :func:`heal`.
    """
    goal = Scale(package, placing, instance_id, options, scale_id or str(uuid.uuid4()), numbers)
    return run(goal, cluster, options, cancel, progress, leave_failed=leave_failed)


@dataclass(eq=False)
class _Upkeep(PackageGoal):
    """A goal of a VNF that runs: its package is the old one and the new one."""

    package: str
    placing: Placing
    instance_id: str | None
    options: Options
    request_id: str
    """Two tries of one request have the same."""

    verb: ClassVar[str]
    happens_once = True

    def __post_init__(self) -> None:
        self.namespace = self.placing.namespace

    @cached_property
    def packages(self) -> Packages:
        """The package, read when it is first needed."""
        with csar.open_package(self.package, options=self.options) as opened:
            return packages_of(opened, self.placing)

    def digest(self) -> str:
        """See Goal."""
        self.check()
        return f"{self.verb} {self.request_id}"


@dataclass(eq=False)
class Heal(_Upkeep):
    """A VNF, or some of its VNFCs, as the package says."""

    vnfcs: Sequence[tuple[str, str]]
    verb = "heal"

    def plan(self, observed: Observed) -> Plan:
        """See Goal."""
        live = observed.read_packages(self.packages, self.namespace)
        heal_id = self.request_id
        planner = HealPlanner(self.packages, live, self.namespace, self.instance_id, heal_id)
        return planner.plan_vnfcs(self.vnfcs) if self.vnfcs else planner.plan()


@dataclass(eq=False)
class Scale(_Upkeep):
    """Other numbers of pods for some VDUs."""

    numbers: Mapping[str, int]
    verb = "scale"

    def plan(self, observed: Observed) -> Plan:
        """See Goal."""
        live = observed.read_packages(self.packages, self.namespace)
        return scale_plan(self.packages, live, self.numbers, self.namespace, self.instance_id)
