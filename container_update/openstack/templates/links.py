# SPDX-License-Identifier: Apache-2.0
"""The networks of a request that another system manages, in the templates. Pure.

An external one has an id for each connection point that the templates ask for. An internal one
(``extManagedVirtualLinks``) takes the place of a network that the top template would make.

Source: SOL003, 4.4.1.11 and 4.4.1.12; Tacker's user data does the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from container_update.model.errors import PackageError
from container_update.model.objects import Json
from container_update.package import hot
from container_update.package.hot import StackBody

EXTERNAL, MANAGED = "extVirtualLinks", "extManagedVirtualLinks"
_DESCRIPTOR, _RESOURCE = "vnfVirtualLinkDescId", "resourceId"
_NETWORK, _SUBNET = "OS::Neutron::Net", "OS::Neutron::Subnet"


@dataclass(frozen=True)
class StackLinks:
    """The virtual links of a request."""

    external: Sequence[Json] = ()
    """``extVirtualLinks``."""
    managed: Sequence[Json] = ()
    """``extManagedVirtualLinks``."""
    recorded: Mapping[str, str] = field(default_factory=dict)
    """The managed ones of earlier requests, which stay: descriptor id to the network's id."""

    @classmethod
    def of(cls, request: Mapping[str, Any], info: Mapping[str, Any] | None = None) -> StackLinks:
        """Return the links of a request; PackageError: one does not say which network it is."""
        links = cls(request.get(EXTERNAL) or (), request.get(MANAGED) or ())
        for name, entries, needed in (
            (EXTERNAL, links.external, (_RESOURCE,)),
            (MANAGED, links.managed, (_DESCRIPTOR, _RESOURCE)),
        ):
            for number, entry in enumerate(entries):
                for attribute in needed:
                    if not isinstance(entry.get(attribute), str) or not entry[attribute]:
                        raise PackageError(
                            f"{name}[{number}].{attribute}: expected text, found "
                            f"{'nothing' if entry.get(attribute) is None else 'another value'}"
                        )
        before = (info or {}).get("extManagedVirtualLinkInfo") or ()
        recorded = {str(e[_DESCRIPTOR]): str(e["networkResource"][_RESOURCE]) for e in before}
        return replace(links, recorded=recorded)

    def points(self) -> dict[str, Json]:
        """Return each external connection point: its network, port and fixed addresses."""
        return dict(_points(self.external))

    def apply_to(self, body: StackBody) -> StackBody:
        """Return a package's templates without the networks that another system manages.

        :raises PackageError: the top template has no such network, or what goes with it is used.
        """
        resources: Json = body.template["resources"]
        networks = {n for n, each in resources.items() if each.get("type") == _NETWORK}
        for number, link in enumerate(self.managed):
            if link[_DESCRIPTOR] not in networks:
                raise PackageError(
                    f"{MANAGED}[{number}].{_DESCRIPTOR}: expected a network of the top template "
                    f"(it has {', '.join(sorted(networks)) or 'none'}), found {link[_DESCRIPTOR]}"
                )
        given = {link[_DESCRIPTOR]: link[_RESOURCE] for link in self.managed}
        ids = {n: id_ for n, id_ in {**self.recorded, **given}.items() if n in networks}
        gone = ids.keys() | {
            name
            for name, each in resources.items()
            if each.get("type") == _SUBNET and _network_of(each) in ids
        }
        left = {
            name: _without(hot.with_ids(each, ids), gone)
            for name, each in resources.items()
            if name not in gone
        }
        for name, each in left.items():
            if used := sorted(hot.references(each) & gone):
                raise PackageError(
                    f"resource {name} of the top template uses {', '.join(used)}, which is not "
                    f"made where {MANAGED} gives its network: leave the link out, or take the "
                    "value from a parameter"
                )
        outputs = {"outputs": hot.with_ids(o, ids)} if (o := body.template.get("outputs")) else {}
        return replace(body, template={**body.template, "resources": left, **outputs})


def record_links(info: Mapping[str, Any], request: Mapping[str, Any]) -> Json:
    """Return the attributes of instantiatedVnfInfo about links after a request (SOL003, 5.5.3.2 and
    5.5.3.5): those of earlier ones stay unless the request has them too."""
    made: Json = {}
    for attribute, key, entries in (
        ("extVirtualLinkInfo", "id", [_external_info(e) for e in request.get(EXTERNAL) or ()]),
        (
            "extManagedVirtualLinkInfo",
            _DESCRIPTOR,
            [_managed_info(e) for e in request.get(MANAGED) or ()],
        ),
    ):
        kept = {entry[key]: entry for entry in (*(info.get(attribute) or ()), *entries)}
        if kept:
            made[attribute] = list(kept.values())
    return made


def _external_info(link: Mapping[str, Any]) -> Json:
    points = {"currentVnfExtCpData": link["extCps"]} if link.get("extCps") else {}
    return {"id": link.get("id") or link[_RESOURCE], "resourceHandle": _handle(link), **points}


def _managed_info(link: Mapping[str, Any]) -> Json:
    named = {"id": link.get("id") or link[_DESCRIPTOR], _DESCRIPTOR: link[_DESCRIPTOR]}
    return {**named, "networkResource": _handle(link)}


def _handle(link: Mapping[str, Any]) -> Json:
    names = ("vimConnectionId", "resourceProviderId", _RESOURCE)
    return {name: link[name] for name in names if link.get(name)}


def _points(links: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Json]]:
    for link in links:
        ports = {
            port.get("id"): (port.get("resourceHandle") or {}).get(_RESOURCE)
            for port in link.get("extLinkPorts") or ()
        }
        for point in link.get("extCps") or ():
            configs = _values(point.get("cpConfig"))
            addresses = [
                {
                    "subnet": address.get("subnetId"),
                    "ip_address": next(iter(address.get("fixedAddresses") or ()), None),
                }
                for config in configs
                for protocol in config.get("cpProtocolData") or ()
                for address in (protocol.get("ipOverEthernet") or {}).get("ipAddresses") or ()
            ]
            port = next((ports.get(each.get("linkPortId")) for each in configs), None)
            values = {"network": link.get(_RESOURCE), "port": port, "fixed_ips": addresses}
            yield str(point.get("cpdId")), values


def _values(configs: Any) -> Sequence[Json]:
    """Return the configurations: a map in v2, a list in v1."""
    return list(configs.values()) if isinstance(configs, dict) else list(configs or ())


def _network_of(subnet: Mapping[str, Any]) -> str | None:
    properties = subnet.get("properties") or {}
    network = properties.get("network") or properties.get("network_id")
    name = network.get("get_resource") if isinstance(network, dict) else network
    return name if isinstance(name, str) else None


def _without(definition: Json, gone: set[str]) -> Json:
    """Return a resource that no longer waits for those that are not made."""
    waits = definition.get("depends_on")
    if not waits:
        return definition
    names = [waits] if isinstance(waits, str) else waits
    return {**definition, "depends_on": [name for name in names if name not in gone]}
