"""The parameter ``nfv`` of a top template: what Tacker's user data scripts compute. Pure.

A package's script is not run: its common computation is built in. ``nfv`` gets what the template
asks for with ``get_param: [nfv, ...]``, from the VNFD and from the request.

Source: Tacker's user guide "Deploying VNFs with user script", and ``extVirtualLinks`` in SOL003,
4.4.1.11 to 4.4.1.12.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from container_update.model.errors import PackageError
from container_update.model.objects import Json
from container_update.package import hot
from container_update.package.hot import Body, Path

NFV = "nfv"
USER_DATA, USER_DATA_CLASS = "lcm-operation-user-data", "lcm-operation-user-data-class"
"""Names in additionalParams: the script and its class."""
BUILT_IN = ("StandardUserData",)
"""The classes whose computation is built in."""

_OPTIONAL = "locationConstraints"
"""Left out, it is an empty text to Heat, and Nova chooses the zone."""


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


def computed(
    body: Body,
    images: Mapping[str, str],
    flavours: Mapping[str, str],
    links: Sequence[Mapping[str, Any]],
    given: Mapping[str, Any],
) -> Json:
    """Return the value of ``nfv``.

    :param body: the package's templates.
    :param images: VDU or storage node to the name of its image.
    :param flavours: VDU to the name of its flavour.
    :param links: ``extVirtualLinks`` of the request.
    :param given: ``additionalParams.nfv``, which takes precedence.
    :raises PackageError: the template asks for a value that is given nowhere.
    """
    points = dict(_connection_points(links))
    value: Json = dict(given)
    for path in dict.fromkeys(_asked(body)):
        found = hot.get_at(given, path)
        if found is None:  # so Tacker's user data names the first instance of a VDU
            found = hot.get_at(given, (*path[:1], f"{path[1]}-0", *path[2:]))
        if found is None:
            found = _known(path, images, flavours, points)
        if found is None and path[-1] == _OPTIONAL:
            continue
        if found is None:
            names = ".".join(map(str, path))
            raise PackageError(
                f"{NFV}.{names}: the top template asks for it, and neither the VNFD nor "
                f"extVirtualLinks gives it: give it in additionalParams.{NFV}"
            )
        value = hot.set_at(value, path, found)
    return value


def _asked(body: Body) -> Iterator[Path]:
    """Yield the paths below ``nfv`` that the top template asks for."""
    for name, argument in hot.calls(body.template["resources"]):
        if name == "get_param" and isinstance(argument, list) and argument[0] == NFV:
            yield tuple(argument[1:])


def _known(
    path: Path,
    images: Mapping[str, str],
    flavours: Mapping[str, str],
    points: Mapping[str, Json],
) -> Any:
    section, name, *rest = (*path, None, None)[: max(len(path), 2)]
    if (section, rest) == ("VDU", ["computeFlavourId"]):
        return flavours.get(str(name))
    if (section, rest) == ("VDU", ["vcImageId"]):
        return images.get(str(name))
    return hot.get_at(points, path[1:]) if section == "CP" else None


def _connection_points(links: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Json]]:
    """Yield the id of each external connection point, and its network and fixed addresses."""
    for link in links:
        for point in link.get("extCps") or ():
            addresses = [
                {
                    "subnet": address.get("subnetId"),
                    "ip_address": next(iter(address.get("fixedAddresses") or ()), None),
                }
                for config in _values(point.get("cpConfig"))
                for protocol in config.get("cpProtocolData") or ()
                for address in (protocol.get("ipOverEthernet") or {}).get("ipAddresses") or ()
            ]
            yield (
                str(point.get("cpdId")),
                {
                    "network": link.get("resourceId"),
                    "fixed_ips": addresses,
                },
            )


def _values(configs: Any) -> Sequence[Json]:
    """Return the configurations: a map in v2, a list in v1."""
    return list(configs.values()) if isinstance(configs, dict) else list(configs or ())
