# SPDX-License-Identifier: Apache-2.0
"""The virtual links of a request, in Tacker's template: as its user data applies them."""

from __future__ import annotations

from typing import Any

import pytest

from container_update.model.errors import PackageError
from container_update.openstack.templates.desired import VnfdSoftware, desired_stack
from container_update.openstack.templates.links import StackLinks, record_links
from container_update.package.hot import StackBody

RESOURCES: dict[str, Any] = {
    "VDU1": {
        "type": "VDU1.yaml",
        "properties": {
            "net1": {"get_param": ["nfv", "CP", "VDU1_CP1", "network"]},
            "net2": {"get_resource": "internalVL1"},
            "nets": [{"network": {"get_resource": "internalVL2"}}],
        },
        "depends_on": ["internalVL1", "internalVL2_subnet"],
    },
    "internalVL1": {"type": "OS::Neutron::Net"},
    "internalVL2": {"type": "OS::Neutron::Net"},
    "internalVL1_subnet": {
        "type": "OS::Neutron::Subnet",
        "properties": {"network": {"get_resource": "internalVL1"}},
    },
    "internalVL2_subnet": {
        "type": "OS::Neutron::Subnet",
        "properties": {"network": {"get_resource": "internalVL2"}},
    },
}
TEMPLATE = {"parameters": {"nfv": {"type": "json"}}, "resources": RESOURCES}


def managed(name: str, network: str) -> dict[str, str]:
    return {"id": f"link of {name}", "vnfVirtualLinkDescId": name, "resourceId": network}


def test_a_managed_link_takes_the_place_of_its_network_and_subnets() -> None:
    links = StackLinks(managed=[managed("internalVL1", "the-network")])
    resources = links.apply_to(StackBody(TEMPLATE)).template["resources"]
    assert sorted(resources) == ["VDU1", "internalVL2", "internalVL2_subnet"]
    assert resources["VDU1"]["properties"]["net2"] == "the-network"
    assert resources["VDU1"]["properties"]["nets"] == RESOURCES["VDU1"]["properties"]["nets"]
    assert resources["VDU1"]["depends_on"] == ["internalVL2_subnet"]


def test_links_of_earlier_requests_stay_and_a_new_one_replaces_its_own() -> None:
    first = {"extManagedVirtualLinks": [managed("internalVL1", "a"), managed("internalVL2", "b")]}
    info = record_links({}, first)
    second = {"extManagedVirtualLinks": [managed("internalVL2", "c")]}
    vdu = StackLinks.of(second, info).apply_to(StackBody(TEMPLATE)).template["resources"]["VDU1"]
    assert vdu["properties"]["net2"] == "a"
    assert vdu["properties"]["nets"] == [{"network": "c"}]
    after = record_links(info, second)["extManagedVirtualLinkInfo"]
    assert [entry["networkResource"]["resourceId"] for entry in after] == ["a", "c"]


def test_a_recorded_link_that_the_new_template_does_not_have_is_left_alone() -> None:
    info = record_links({}, {"extManagedVirtualLinks": [managed("gone", "a")]})
    assert StackLinks.of({}, info).apply_to(StackBody(TEMPLATE)) == StackBody(TEMPLATE)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"extManagedVirtualLinks": [managed("VL9", "n")]}, "it has internalVL1, .*found VL9"),
        (
            {"extManagedVirtualLinks": [{"resourceId": "n"}]},
            r"extManagedVirtualLinks\[0\].vnfVirtualLinkDescId: expected text, found nothing",
        ),
        ({"extVirtualLinks": [{"id": "l"}]}, r"extVirtualLinks\[0\].resourceId: expected text"),
    ],
)
def test_a_link_that_says_too_little_or_fits_nothing_is_named(
    request_: dict[str, Any], message: str
) -> None:
    with pytest.raises(PackageError, match=message):
        StackLinks.of(request_).apply_to(StackBody(TEMPLATE))


def test_what_uses_a_subnet_that_is_not_made_is_named() -> None:
    port = {"type": "P", "properties": {"subnet": {"get_resource": "internalVL1_subnet"}}}
    template = {**TEMPLATE, "resources": {**RESOURCES, "port": port}}
    with pytest.raises(PackageError, match=r"resource port .* uses internalVL1_subnet"):
        StackLinks(managed=[managed("internalVL1", "n")]).apply_to(StackBody(template))


def test_a_port_of_the_request_is_the_connection_points() -> None:
    config = {"a": {"linkPortId": "lp"}}
    link = {
        "resourceId": "net",
        "extCps": [{"cpdId": "VDU2_CP1", "cpConfig": config}],
        "extLinkPorts": [{"id": "lp", "resourceHandle": {"resourceId": "the-port"}}],
    }
    assert StackLinks(external=[link]).points()["VDU2_CP1"]["port"] == "the-port"


def test_in_a_change_the_requests_connection_points_count_and_the_others_stay() -> None:
    cps = {"VDU1_CP1": {"network": "old"}, "VDU2_CP1": {"network": "stays"}}
    live = StackBody(TEMPLATE, {"nfv": {"CP": cps, "VDU": {"VDU1": {"name": "n"}}}})
    links = StackLinks(external=[{"resourceId": "new", "extCps": [{"cpdId": "VDU1_CP1"}]}])
    after = desired_stack(StackBody(TEMPLATE), live, {}, VnfdSoftware(), {}, points=links.points())
    assert after.parameters["nfv"] == {
        "CP": {"VDU1_CP1": {"network": "new"}, "VDU2_CP1": {"network": "stays"}},
        "VDU": {"VDU1": {"name": "n"}},
    }
