"""Scale a VNF in a cluster: other numbers of pods for some of its VDUs."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from functools import partial

from container_update.model.cancellation import CancelToken
from container_update.model.outcome import Outcome, Progress
from container_update.operations.upkeep.running_vnf import RunningVnf
from container_update.planning.scale import scale_plan


def scale(
    vnf: RunningVnf,
    numbers: Mapping[str, int],
    scale_id: str = "",
    cancel: CancelToken | None = None,
    progress: Progress = lambda _: None,
) -> Outcome:
    """Give VDUs another number of pods, and wait until so many are Ready and no more are there.

    :param numbers: VDU id to number of pods.
    :param scale_id: identifies the request, so that it can be tried again; '': a new one.
    :raises ContainerUpdateError: as :meth:`RunningVnf.run`.
    """
    planned = partial(
        scale_plan,
        numbers=numbers,
        namespace=vnf.placing.namespace,
        instance_id=vnf.instance_id,
    )
    return vnf.run(f"scale {scale_id or uuid.uuid4()}", planned, cancel, progress)
