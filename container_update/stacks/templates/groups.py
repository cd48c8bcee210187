"""The sizes of a stack's scaling groups. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace

from container_update.model.errors import PlanError
from container_update.package import hot
from container_update.package.hot import Body, Place

_SIZE = "desired_capacity"


def with_size(body: Body, head: str, size: int) -> Body:
    """Return a stack whose scaling group has another size.

    It is written where the template has it: in a parameter, in a value inside of a parameter
    (``get_param: [nfv, VDU, VDU1, desired_capacity]``), or in the template itself.
    """
    path = hot.parameter_path((body.template["resources"][head].get("properties") or {}).get(_SIZE))
    if path is not None:
        parameters = hot.parse_json(body.template, body.parameters)
        return replace(body, parameters=hot.set_at(parameters, path, size))
    template = copy.deepcopy(body.template)
    template["resources"][head]["properties"][_SIZE] = size
    return replace(body, template=template)


def resized(body: Body, places: Mapping[str, Place], numbers: Mapping[str, int]) -> Body:
    """Return a stack whose scaling groups have other sizes.

    :param numbers: VDU id to number of members.
    :raises PlanError: a VDU has no scaling group.
    """
    for vdu_id, number in numbers.items():
        place = places.get(vdu_id)
        if place is None or not place.grouped:
            raise PlanError(
                f"{vdu_id}: expected its server in a resource of type {hot.GROUP}, which can be "
                "scaled, found none in the stack's template"
            )
        body = with_size(body, place.head, number)
    return body
