# SPDX-License-Identifier: Apache-2.0
"""What keeps a VNF that runs: to heal it, or some of its VNFCs, and to scale it."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

from container_update.engine.goal import Intent, Observed, PackageGoal
from container_update.engine.instances import manifests_in_record
from container_update.engine.read_packages import packages_of
from container_update.model.objects import ObjectKey
from container_update.model.options import Options
from container_update.model.plan import Plan
from container_update.model.requests import HealRequest, ScaleRequest
from container_update.package import csar
from container_update.planning.comparison.package_pair import Packages
from container_update.planning.finished_jobs import gone_jobs
from container_update.planning.upkeep import HealPlanner, scale_plan


class _Upkeep(PackageGoal):
    """A goal of a VNF that runs: its package is the old one and the new one."""

    verb: ClassVar[str]

    def __init__(self, request: HealRequest | ScaleRequest, options: Options) -> None:
        self.intent = Intent(request.namespace, request.instance_id, happens_once=True)
        self._given, self._options = request, options
        self.request_id = request.request_id or str(uuid.uuid4())

    @cached_property
    def packages(self) -> Packages:
        """The package, read when it is first needed."""
        with csar.open_package(self._given.package, options=self._options) as opened:
            return packages_of(opened, self._given)

    def digest(self) -> str:
        """See Goal."""
        self.read_manifests()
        return f"{self.verb} {self.request_id}"


class Heal(_Upkeep):
    """New pods for the broken ones, or the whole VNF as its package says."""

    verb = "heal"

    def __init__(self, request: HealRequest, options: Options = Options()) -> None:  # noqa: B008
        super().__init__(request, options)
        self._vnfcs = request.vnfcs

    def plan(self, observed: Observed) -> Plan:
        """See Goal."""
        packages, heal_id = self.packages, self.request_id
        where = namespace, _ = self.intent.where
        live = observed.read_packages(packages, namespace)
        if gone := gone_jobs(packages.new.values(), live):
            packages = self._with_recorded(packages, gone, observed)
        planner = HealPlanner(packages, live, *where, heal_id=heal_id)
        plan = planner.plan_vnfcs(self._vnfcs) if self._vnfcs else planner.plan()
        return replace(plan, vdus=packages.vdus)

    def _with_recorded(
        self, packages: Packages, jobs: Collection[ObjectKey], observed: Observed
    ) -> Packages:
        """Return the packages with these Jobs as recorded: the VNF may have begun without some."""
        recorded = manifests_in_record(observed.cluster, *self.intent.where)
        if recorded is None:
            return packages
        others = {key: old for key, old in packages.old.items() if key not in jobs}
        known = {key: recorded[key] for key in jobs if key in recorded}
        return replace(packages, old={**others, **known})


class Scale(_Upkeep):
    """Other numbers of pods for some VDUs, so many of them Ready and no more there."""

    verb = "scale"

    def __init__(self, request: ScaleRequest, options: Options = Options()) -> None:  # noqa: B008
        super().__init__(request, options)
        self._numbers = request.numbers

    def plan(self, observed: Observed) -> Plan:
        """See Goal."""
        packages, where = self.packages, self.intent.where
        live = observed.read_packages(packages, self.intent.namespace)
        return replace(scale_plan(packages, live, self._numbers, *where), vdus=packages.vdus)


def upkeep_of(request: HealRequest | ScaleRequest, options: Options) -> Heal | Scale:
    """Return the goal of a request."""
    return Heal(request, options) if isinstance(request, HealRequest) else Scale(request, options)
