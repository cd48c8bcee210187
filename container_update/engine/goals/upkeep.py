# SPDX-License-Identifier: Apache-2.0
"""What keeps a VNF that runs: to heal it, or some of its VNFCs, and to scale it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from container_update.engine.goal import Observed, PackageGoal
from container_update.engine.instances import manifests_in_record
from container_update.engine.read_packages import packages_of
from container_update.model.objects import ObjectKey
from container_update.model.options import Options
from container_update.model.plan import Plan
from container_update.package import csar
from container_update.planning.comparison.package_pair import Packages, Placing
from container_update.planning.finished_jobs import gone_jobs
from container_update.planning.upkeep import HealPlanner, scale_plan


@dataclass(eq=False)
class _Upkeep(PackageGoal):
    """A goal of a VNF that runs: its package is the old one and the new one."""

    package: str
    """What it runs from: a folder or a CSAR zip."""
    placing: Placing
    instance_id: str | None
    """Objects that bear another instance's label are refused."""
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
    """New pods for the broken ones, or the whole VNF as its package says."""

    vnfcs: Sequence[tuple[str, str]]
    """VDU id and pod name of each VNFC; empty: the whole VNF."""
    verb = "heal"

    def plan(self, observed: Observed) -> Plan:
        """See Goal."""
        packages, heal_id = self.packages, self.request_id
        live = observed.read_packages(packages, self.namespace)
        if gone := gone_jobs(packages.new.values(), live):
            packages = self._with_recorded(packages, gone, observed)
        planner = HealPlanner(packages, live, self.namespace, self.instance_id, heal_id=heal_id)
        return planner.plan_vnfcs(self.vnfcs) if self.vnfcs else planner.plan()

    def _with_recorded(
        self, packages: Packages, jobs: Collection[ObjectKey], observed: Observed
    ) -> Packages:
        """Return the packages with these Jobs as the record has them, where there is a record: the
        VNF may have got the package without all of its Jobs."""
        recorded = manifests_in_record(observed.cluster, self.namespace, self.instance_id)
        if recorded is None:
            return packages
        others = {key: old for key, old in packages.old.items() if key not in jobs}
        known = {key: recorded[key] for key in jobs if key in recorded}
        return replace(packages, old={**others, **known})


@dataclass(eq=False)
class Scale(_Upkeep):
    """Other numbers of pods for some VDUs, so many of them Ready and no more there."""

    numbers: Mapping[str, int]
    """VDU id to number of pods."""
    verb = "scale"

    def plan(self, observed: Observed) -> Plan:
        """See Goal."""
        live = observed.read_packages(self.packages, self.namespace)
        return scale_plan(self.packages, live, self.numbers, self.namespace, self.instance_id)
