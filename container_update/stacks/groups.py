"""The sizes of a stack's scaling groups. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from container_update.model.errors import PlanError
from container_update.package import hot
from container_update.package.hot import Body, Place

_SIZE = "desired_capacity"


def resized(body: Body, places: Mapping[str, Place], numbers: Mapping[str, int]) -> Body:
    """Return a stack whose scaling groups have other sizes.

    The size is written where the template has it: in a parameter, in a value inside of a parameter
    (``get_param: [nfv, VDU, VDU1, desired_capacity]``), or in the template itself.

    :param numbers: VDU id to number of members.
    :raises PlanError: a VDU has no scaling group.
    """
    template, parameters = copy.deepcopy(body.template), copy.deepcopy(body.parameters)
    for vdu_id, number in numbers.items():
        place = places.get(vdu_id)
        if place is None or not place.grouped:
            raise PlanError(
                f"{vdu_id}: expected its server in a resource of type {hot.GROUP}, which can be "
                "scaled, found none in the stack's template"
            )
        properties = template["resources"][place.head]["properties"]
        path = _parameter_path(properties.get(_SIZE))
        if path:
            _assign(parameters, path, number)
        else:
            properties[_SIZE] = number
    return replace(body, template=template, parameters=parameters)


def _parameter_path(size: object) -> list[str]:
    """Return the parameter that a size comes from, and the names inside it; empty: from none."""
    name = size.get("get_param") if isinstance(size, dict) else None
    return [str(part) for part in name] if isinstance(name, list) else [name] if name else []


def _assign(values: dict[str, Any], path: Sequence[str], number: int) -> None:
    for name in path[:-1]:
        values = values.setdefault(name, {})
        if not isinstance(values, dict):
            raise PlanError(f"parameter {path[0]}: expected a JSON object with {'.'.join(path)}")
    values[path[-1]] = number
