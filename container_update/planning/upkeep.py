# SPDX-License-Identifier: Apache-2.0
"""The plans of what keeps a VNF as its package describes it: to scale it, and to heal it. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from container_update.model.errors import PlanError
from container_update.model.objects import Json, Manifest, ObjectKey
from container_update.model.plan import Action, Plan, Reason, Step
from container_update.planning.comparison import live_objects
from container_update.planning.comparison.package_pair import Packages
from container_update.planning.configuration import Live
from container_update.planning.finished_jobs import HAS_RUN, has_run
from container_update.planning.staying import HOLDS_DATA, with_claims_kept
from container_update.planning.steps import PodsStep, ScaleStep
from container_update.planning.steps.manifest import without_recorded_digest
from container_update.planning.strategy import (
    FOLLOWS_PODS,
    Strategy,
    refuse_other_selector,
)
from container_update.planning.update import UpdatePlanner
from container_update.workloads import ownership
from container_update.workloads.kind import POD, REPLICA_SET
from container_update.workloads.readiness import replicas
from container_update.workloads.registry import is_workload, known_kind

# --- scale --------------------------------------------------------------------------------------


def scale_plan(
    packages: Packages,
    live: Live,
    numbers: Mapping[str, int],
    namespace: str,
    instance_id: str | None,
) -> Plan:
    """Return the plan; a VDU that has its number of pods already has no step.

    :param numbers: VDU id to number of pods.
    :raises PlanError: a VDU has no workload that can be scaled now; the message names it.
    """
    check = UpdatePlanner(live, instance_id)
    steps = []
    for vdu_id, number in numbers.items():
        for key in workloads_of(vdu_id, packages):
            body = live.get(key)
            if body is None:
                raise PlanError(
                    f"{key}: is not in the cluster, so it cannot be scaled: heal the VNF"
                )
            check.refuse_unfit(key, body)
            now = replicas(body)
            if now != number:
                why = (Reason(f"{vdu_id}: {now} -> {number} pods"),)
                step = ScaleStep(key, Action.SCALE, body, reasons=why, replicas=number)
                steps.append(with_claims_kept(step))
    return Plan(
        namespace,
        instance_id,
        tuple(steps),
        def_files=packages.def_files,
        manifests=tuple(packages.new.values()),
    )


def workloads_of(vdu_id: str, packages: Packages) -> Iterator[ObjectKey]:
    """Yield the workloads of a VDU, or PlanError: it has none that can be scaled."""
    name = packages.new_vdus.get(vdu_id)
    keys = [key for key in packages.new if is_workload(key) and key.name == name]
    for key in keys:
        if not known_kind(key).is_scaled:
            raise PlanError(
                f"{key}: expected a workload with a number of pods (Deployment, StatefulSet, "
                f"ReplicaSet) for {vdu_id}, which is scaled, found a {key.kind}: correct the "
                "package's manifest, or the VNFD's scaling policies"
            )
        yield key
    if not keys:
        raise PlanError(
            f"{vdu_id}: is scaled, but no manifest of the VNF describes its workload {name}: "
            "correct the VDU's properties.name, or the VNFD's scaling policies"
        )


# --- heal ---------------------------------------------------------------------------------------
# The whole VNF: a change from the package to itself. Every object that is missing is created, every
# one that differs from its manifest is brought back to it, and all pods are replaced, each workload
# in its own way. So what an update left out takes effect too. Kept as in every plan: the number of
# pods, what others added, and objects that hold data.

_WHOLE = Reason("the whole VNF is healed")


@dataclass(eq=False, repr=False)
class HealPlanner(Strategy):
    """Decides one heal.

    :param packages: the VNF's package, as the old and as the new one; of Jobs that are gone the old
        one has what the instance's record says.
    :param heal_id: identifies the heal: planned again, its workloads count as healed.
    """

    brings_back: ClassVar[bool] = True
    heal_id: str = field(kw_only=True)

    # --- the whole VNF --------------------------------------------------------------------------

    def workload_step(self, key: ObjectKey) -> Iterator[Step]:
        """Yield the step that creates a workload, or mends it and replaces its pods."""
        new, live = self.packages.new[key], self.live.get(key)
        kind = known_kind(key)
        if live is None and has_run(new, self.packages.old.get(key)):
            self._note(key, HAS_RUN)
        elif live is None:
            yield self._missing(new)
        elif kind.runs_to_completion:
            yield from self._mend(new, live, kind.action(live, (), ()))
        else:
            self.config.refuse_unfit(key, live)
            step = self._replacement(new, live)
            if not kind.is_pod:
                digest = hashlib.sha256(self.heal_id.encode()).hexdigest()[:32]
                step = replace(step, digest=digest)
            if kind.is_pod or not step.is_applied(live):
                refuse_other_selector(step)
                for text in kind.notes(live):
                    self._note(key, text)
                yield replace(step, action=kind.action(live, (), ()), reasons=(_WHOLE,))

    def other_step(self, key: ObjectKey, new: Manifest) -> Iterator[Step]:
        """Yield the step that creates or mends an object that runs no containers."""
        live = self.live.get(key)
        if live is None:
            yield self._missing(new)
        else:
            follows = (key.group, key.kind) in FOLLOWS_PODS
            yield from self._mend(new, live, Action.SWITCH if follows else Action.REPLACE)

    def _missing(self, new: Manifest) -> Step:
        return replace(self._creation(new), reasons=(Reason("it was not in the cluster any more"),))

    def _mend(self, new: Manifest, live: Json, action: Action) -> Iterator[Step]:
        step = replace(self._replacement(new, live), mends=True)
        assert step.content is not None, "only a deletion has none"
        if live_objects.covers(live, without_recorded_digest(step.content)):
            return
        if new.key.kind in HOLDS_DATA:
            self._note(new.key, "differs from its manifest: left as it is, because it holds data")
            return
        self.config.refuse_unfit(step.key, live)
        yield replace(step, action=action, reasons=(Reason("it differs from its manifest"),))

    # --- some VNFCs -----------------------------------------------------------------------------

    def plan_vnfcs(self, vnfcs: Sequence[tuple[str, str]]) -> Plan:
        """Return the plan that replaces single pods.

        :param vnfcs: VDU id and pod name of each. A pod that is gone is only waited for.
        :raises PlanError: a VDU has no workload, or one that cannot be healed now.
        """
        asked: dict[str, list[str]] = {}
        for vdu_id, name in vnfcs:
            asked.setdefault(vdu_id, []).append(name)
        steps = [step for vdu, names in asked.items() for step in self._vnfc_steps(vdu, names)]
        return Plan(
            self.namespace,
            self.instance_id,
            tuple(steps),
            def_files=self.packages.def_files,
            manifests=tuple(self._in_force()),
        )

    def _vnfc_steps(self, vdu_id: str, names: Sequence[str]) -> Iterator[Step]:
        workload = self.packages.new_vdus.get(vdu_id)
        keys = [key for key in self.packages.new if is_workload(key) and key.name == workload]
        if not keys:
            raise PlanError(
                f"{vdu_id}: no manifest of the VNF describes its workload {workload}: heal the "
                "whole VNF, or correct the VDU's properties.name"
            )
        for key in keys:
            yield self._vnfc_step(key, names)

    def _vnfc_step(self, key: ObjectKey, names: Sequence[str]) -> Step:
        new, live = self.packages.new[key], self.live.get(key)
        if live is None:
            return self._missing(new)
        self.config.refuse_unfit(key, live)
        if known_kind(key).is_pod:
            step = self._replacement(new, live)
            return replace(step, action=Action.RECREATE_POD, reasons=(Reason("it is healed"),))
        pods = [body for at, body in self.live.items() if (at.group, at.kind) == POD]
        sets = [body for at, body in self.live.items() if (at.group, at.kind) == REPLICA_SET]
        healed = tuple(
            (pod["metadata"]["name"], pod["metadata"]["uid"])
            for pod in ownership.owned_pods(live, pods, sets)
            if pod["metadata"]["name"] in names
        )
        reasons = tuple(Reason(f"pod {name} is healed") for name in names)
        return PodsStep(key, Action.REPLACE_PODS, live, reasons=reasons, pods=healed)
