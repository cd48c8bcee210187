# SPDX-License-Identifier: Apache-2.0
"""The parameter ``nfv`` of a top template: what Tacker's user data scripts compute. Pure.

A package's script is not run: its common computation is built in. ``nfv`` gets what the template
asks for with ``get_param: [nfv, ...]``, from the VNFD and from the request.

Source: Tacker's user guide "Deploying VNFs with user script".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from container_update.model.errors import PackageError
from container_update.model.objects import FieldPath, Json, get_at, merge_patch
from container_update.package import hot
from container_update.package.hot import StackBody

NFV = "nfv"
USER_DATA, USER_DATA_CLASS = "lcm-operation-user-data", "lcm-operation-user-data-class"
"""Names in additionalParams: the script and its class."""
BUILT_IN = ("DefaultUserData", "StandardUserData")
"""The classes whose computation is built in."""

_POINTS = "CP"
_OPTIONAL = frozenset({"locationConstraints", "name"})
"""Left out, they are an empty text to Heat: Nova chooses the zone, and Heat the name."""


def without_script(given: Mapping[str, Any]) -> Json:
    """Return additionalParams without the name of a user data script, which is not run.

    :raises PackageError: its class is none of :data:`BUILT_IN`.
    """
    name = given.get(USER_DATA_CLASS)
    if given.get(USER_DATA) is not None and name not in BUILT_IN:
        raise PackageError(
            f"additionalParams.{USER_DATA_CLASS}: expected {', '.join(BUILT_IN)}, which is built "
            f"in, found {name}: user data scripts are not run; leave it out, and give the "
            "parameters of the top template in additionalParams"
        )
    return {k: v for k, v in given.items() if k not in (USER_DATA, USER_DATA_CLASS)}


def compute_nfv(
    body: StackBody,
    vnfd: Json,
    points: Mapping[str, Json],
    given: Mapping[str, Any],
    carried: Mapping[str, Any] | None = None,
) -> Json:
    """Return the value of ``nfv``.

    :param vnfd: what the VNFD says, as :func:`of_vnfd` returns it.
    :param given: ``additionalParams.nfv``, which takes precedence.
    :param carried: the value that the stack has, whose connection points the request's replace;
        None where there is no stack yet. What it lacks may be left out on purpose.
    :raises PackageError: the template of a new stack asks for a value that is given nowhere.
    """
    is_new, carried = carried is None, carried or {}
    value: Json = merge_patch(dict(carried), given)
    for path in dict.fromkeys(_asked_paths(body)):
        is_of_request = path[:1] == (_POINTS,) and path[1] in points
        known: tuple[Any, ...] = ({_POINTS: points},) if is_of_request else (carried, vnfd)
        leaf = _first(path, given, *known)
        if leaf is None:  # so Tacker's user data names the first instance of a VDU
            leaf = get_at(given, (*path[:1], f"{path[1]}-0", *path[2:]))
        if leaf is None and (path[-1] in _OPTIONAL or not is_new):
            continue
        if leaf is None:
            names = ".".join(map(str, path))
            raise PackageError(
                f"{NFV}.{names}: the top template asks for it, and neither the VNFD nor "
                f"extVirtualLinks gives it: give it in additionalParams.{NFV}"
            )
        value = hot.set_at(value, path, leaf)
    return value


def of_vnfd(
    images: Mapping[str, str], flavours: Mapping[str, str], sizes: Mapping[str, int]
) -> Json:
    """Return what the VNFD says, in the form of ``nfv``.

    :param sizes: VDU to the number of its instances at the instantiation level.
    """
    values: Json = {}
    for name, source in (
        ("vcImageId", images),
        ("computeFlavourId", flavours),
        ("desired_capacity", sizes),
    ):
        for node, entry in source.items():
            values.setdefault(node, {})[name] = entry
    return {"VDU": values}


def _asked_paths(body: StackBody) -> Iterator[FieldPath]:
    """Yield the paths below ``nfv`` that the top template asks for."""
    for name, argument in hot.calls(body.template["resources"]):
        if name == "get_param" and isinstance(argument, list) and argument[0] == NFV:
            yield tuple(argument[1:])


def _first(path: FieldPath, *sources: Mapping[str, Any]) -> Any:
    """Return the value of the first source that has one at the path."""
    values = (get_at(source, path) for source in sources)
    return next((value for value in values if value is not None), None)
