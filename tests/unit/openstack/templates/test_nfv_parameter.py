# SPDX-License-Identifier: Apache-2.0
"""What a top template asks for as ``nfv``: Tacker's own template and request, without its script.

Source: Tacker's sample package for ChangeCurrentVNFPackage with the standard user data.
"""

from __future__ import annotations

from typing import Any

import pytest

from container_update.model.errors import PackageError
from container_update.openstack.templates import nfv_parameter
from container_update.openstack.templates.desired import VnfdSoftware, initial_stack
from container_update.openstack.templates.links import StackLinks
from container_update.package.hot import StackBody

TEMPLATE = {
    "heat_template_version": "2013-05-23",
    "parameters": {"nfv": {"type": "json"}},
    "resources": {
        "VDU1": {
            "type": "VDU1.yaml",
            "properties": {
                "flavor": {"get_param": ["nfv", "VDU", "VDU1", "computeFlavourId"]},
                "image-VDU1": {"get_param": ["nfv", "VDU", "VDU1", "vcImageId"]},
                "zone": {"get_param": ["nfv", "VDU", "VDU1", "locationConstraints"]},
                "name": {"get_param": ["nfv", "VDU", "VDU1", "name"]},
                "net1": {"get_param": ["nfv", "CP", "VDU1_CP1", "network"]},
                "net2": {"get_resource": "internalVL1"},
            },
        },
        "VDU2": {
            "type": "VDU2.yaml",
            "properties": {
                "image": {"get_param": ["nfv", "VDU", "VDU2-VirtualStorage", "vcImageId"]},
                "net1": {"get_param": ["nfv", "CP", "VDU2_CP1", "network"]},
                "subnet1": {"get_param": ["nfv", "CP", "VDU2_CP1", "fixed_ips", 0, "subnet"]},
            },
        },
        "internalVL1": {"type": "OS::Neutron::Net"},
    },
}
SOFTWARE = VnfdSoftware(
    {"VDU1": "cirros-0.5.2-x86_64-disk", "VDU2-VirtualStorage": "VDU2-VirtualStorage-image"},
    {"VDU1": "m1.tiny", "VDU2": "m1.tiny"},
)
USER_DATA = {
    "lcm-operation-user-data": "./UserData/userdata_standard.py",
    "lcm-operation-user-data-class": "StandardUserData",
}
NAME = {"nfv": {"VDU": {"VDU1": {"name": "VDU1-a"}}}}


def point(cpd_id: str, **address: Any) -> dict[str, Any]:
    """An external connection point of the request."""
    addresses = [{"type": "IPV4", "numDynamicAddresses": 1, **address}]
    protocol = {"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": {"ipAddresses": addresses}}
    return {"cpdId": cpd_id, "cpConfig": {f"{cpd_id}_1": {"cpProtocolData": [protocol]}}}


NET, SUBNET = "0cefe3d4-6729-41c5-bd39-277fd9ece3d3", "f2ca4370-8b4b-4c2a-8c0a-4994d3da556d"
LINKS = [
    {
        "id": "ext_vl_id_net1",
        "resourceId": NET,
        "extCps": [point("VDU1_CP1"), point("VDU2_CP1", subnetId=SUBNET)],
    }
]


def nfv(given: dict[str, Any], links: Any = LINKS) -> Any:
    """The value that the stack is created with."""
    points = StackLinks(external=links).points()
    return initial_stack(StackBody(TEMPLATE), given, {}, SOFTWARE, points=points).parameters["nfv"]


def test_the_vnfd_and_the_request_give_what_the_template_asks_for() -> None:
    assert nfv({**USER_DATA, **NAME}) == {
        "VDU": {
            "VDU1": {
                "name": "VDU1-a",
                "computeFlavourId": "m1.tiny",
                "vcImageId": "cirros-0.5.2-x86_64-disk",
            },
            "VDU2-VirtualStorage": {"vcImageId": "VDU2-VirtualStorage-image"},
        },
        "CP": {
            "VDU1_CP1": {"network": NET},
            "VDU2_CP1": {"network": NET, "fixed_ips": [{"subnet": SUBNET}]},
        },
    }


def test_a_name_may_be_left_out_as_in_tackers_guide() -> None:
    assert "name" not in nfv(USER_DATA)["VDU"]["VDU1"]


def test_what_the_request_gives_as_nfv_counts_most() -> None:
    given = {"nfv": {"VDU": {"VDU1": {"name": "n", "computeFlavourId": "big"}}, "more": [1]}}
    made = nfv(given)
    assert made["VDU"]["VDU1"]["computeFlavourId"] == "big"
    assert made["more"] == [1]
    assert given["nfv"]["VDU"] == {"VDU1": {"name": "n", "computeFlavourId": "big"}}


@pytest.mark.parametrize(
    ("given", "links", "missing"),
    [
        ({**USER_DATA, **NAME}, [], "nfv.CP.VDU1_CP1.network"),
        (
            {**USER_DATA, **NAME},
            [{**LINKS[0], "extCps": [point("VDU1_CP1"), point("VDU2_CP1")]}],
            "nfv.CP.VDU2_CP1.fixed_ips.0.subnet",
        ),
    ],
)
def test_a_value_that_nobody_gives_is_refused_by_its_name(
    given: dict[str, Any], links: Any, missing: str
) -> None:
    with pytest.raises(PackageError, match=f"{missing}: .*additionalParams.nfv"):
        nfv(given, links)


@pytest.mark.parametrize("name", ["MyUserData", None])
def test_a_script_whose_computation_is_not_built_in_is_refused(name: str | None) -> None:
    script = {**USER_DATA, "lcm-operation-user-data-class": name}
    with pytest.raises(
        PackageError, match="user-data-class: expected DefaultUserData, StandardUserData"
    ):
        nfv_parameter.without_script(script)
