# SPDX-License-Identifier: Apache-2.0
"""Scale levels and instantiation levels: from VNFD and request to instantiatedVnfInfo.

Source: SOL003, 5.5.2.2 (scaleStatus, maxScaleLevels), 5.5.2.4 and 5.5.2.5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from container_update.model.objects import Json
from container_update.model.scaling import SCALE_OUT, Level, Scaling
from container_update.vnfm import packages
from container_update.vnfm.lcm.operation_context import OperationContext, known_flavour


def scaling_of(context: OperationContext) -> Scaling:
    """Return how the instance is scaled, by its package and flavour."""
    flavour_id = context.record.flavour_id or context.request.get("flavourId")
    with context.opened(context.record.vnfd_id) as package:
        return packages.scaling_of(package.flavours, flavour_id)


def first_level(context: OperationContext) -> tuple[Scaling, Level]:
    """Return the instantiation level of the request, else the VNFD's default one."""
    scaling = scaling_of(context)
    return scaling, scaling.level(context.request.get("instantiationLevelId"))


def replicas(context: OperationContext) -> dict[str, int]:
    """Return the number of pods of each VDU's workload at the first level."""
    flavour_id = context.request.get("flavourId")
    with context.opened(context.record.vnfd_id) as package:
        vdus = package.vdus(known_flavour(package, flavour_id))
    return {vdus[vdu]: number for vdu, number in numbers(context).items() if vdu in vdus}


def numbers(context: OperationContext) -> Mapping[str, int]:
    """Return the number of VNFCs of each VDU at the first level, as far as the VNFD says."""
    return first_level(context)[1].instances


def status(context: OperationContext) -> Json:
    """Return scaleStatus and maxScaleLevels of an instance that was just created."""
    scaling, level = first_level(context)
    if not scaling.aspects:
        return {}
    info: Json = {"scaleStatus": _scale_info(level.scale_levels)}
    if context.api == "v2":
        most = {name: aspect.max_level for name, aspect in scaling.aspects.items()}
        info["maxScaleLevels"] = _scale_info(most)
    return info


def scaled(scaling: Scaling, info: Json, request: Mapping[str, Any]) -> tuple[Json, dict[str, int]]:
    """Return instantiatedVnfInfo with the new scale level, and the new number of each VDU.

    Counted from the recorded VNFCs, as Tacker does: another try has the same result.

    :param info: instantiatedVnfInfo.
    :param request: a ScaleVnfRequest.
    :raises PackageError: the VNFD has no such aspect, or does not allow the level or a number.
    """
    recorded = {entry["aspectId"]: entry["scaleLevel"] for entry in info.get("scaleStatus") or ()}
    levels = {**scaling.level(None).scale_levels, **recorded}
    aspect_id, number = request["aspectId"], int(request.get("numberOfSteps") or 1)
    steps = number if request["type"] == SCALE_OUT else -number
    level = levels.get(aspect_id, 0)
    numbers = scaling.scaled_instances(aspect_id, level, steps, vnfcs_of(info))
    return {**info, "scaleStatus": _scale_info({**levels, aspect_id: level + steps})}, numbers


def vnfcs_of(info: Json) -> Counter[str]:
    """Return the number of VNFCs of each VDU in instantiatedVnfInfo."""
    return Counter(str(vnfc["vduId"]) for vnfc in info.get("vnfcResourceInfo") or ())


def _scale_info(levels: Mapping[str, int]) -> list[Json]:
    return [{"aspectId": name, "scaleLevel": level} for name, level in levels.items()]
