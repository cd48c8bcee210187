"""Heal a VNF in a cluster: some of its VNFCs, or all of it.

package, live objects -> plan (``planning/heal.py``) -> execute (or undo) -> outcome
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from container_update.model.cancellation import CancelToken
from container_update.model.outcome import Outcome, Progress
from container_update.model.plan import Plan
from container_update.operations.upkeep.running_vnf import RunningVnf
from container_update.planning.comparison.package_pair import Packages
from container_update.planning.heal import HealPlanner
from container_update.planning.update import Live


def heal(
    vnf: RunningVnf,
    vnfcs: Sequence[tuple[str, str]] = (),
    heal_id: str = "",
    cancel: CancelToken | None = None,
    progress: Progress = lambda _: None,
) -> Outcome:
    """Replace broken pods; without *vnfcs*, bring the whole VNF to what its package says.

    :param vnfcs: VDU id and pod name of each VNFC; empty: the whole VNF.
    :param heal_id: identifies the heal, so that it can be tried again; '': a new one.
    :raises ContainerUpdateError: as :meth:`RunningVnf.run`.
    """
    heal_id = heal_id or str(uuid.uuid4())

    def planned(packages: Packages, live: Live) -> Plan:
        namespace, instance_id = vnf.placing.namespace, vnf.instance_id
        planner = HealPlanner(packages, live, namespace, instance_id, heal_id)
        return planner.plan_vnfcs(vnfcs) if vnfcs else planner.plan()

    return vnf.run(f"heal {heal_id}", planned, cancel, progress)
