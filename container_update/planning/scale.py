# SPDX-License-Identifier: Apache-2.0
"""The plan of a scaling: a workload of each VDU gets another number of pods. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from container_update.model.errors import PlanError
from container_update.model.objects import ObjectKey
from container_update.model.plan import Action, Plan, Reason
from container_update.planning.comparison import renames
from container_update.planning.comparison.package_pair import Packages
from container_update.planning.configuration import Live
from container_update.planning.steps import ScaleStep
from container_update.planning.update import UpdatePlanner
from container_update.workloads.readiness import replicas
from container_update.workloads.registry import is_workload, known_kind


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
    names = renames.live_names(live)
    check = UpdatePlanner(live, instance_id)
    steps = []
    for vdu_id, number in numbers.items():
        for manifest_key in workloads_of(vdu_id, packages):
            key = names.get(manifest_key, manifest_key)
            body = live.get(key)
            if body is None:
                raise PlanError(
                    f"{key}: is not in the cluster, so it cannot be scaled: heal the VNF"
                )
            check.refuse_unfit(key, body)
            now = replicas(body)
            if now != number:
                why = (Reason(f"{vdu_id}: {now} -> {number} pods"),)
                steps.append(ScaleStep(key, Action.SCALE, body, reasons=why, replicas=number))
    return Plan(
        namespace,
        instance_id,
        tuple(steps),
        def_files=packages.def_files,
        manifests=tuple(renames.with_live_name(new, names) for new in packages.new.values()),
    )


def workloads_of(vdu_id: str, packages: Packages) -> Iterator[ObjectKey]:
    """Yield the workloads of a VDU, each under the name in its manifest.

    :raises PlanError: it has none that can be scaled.
    """
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
