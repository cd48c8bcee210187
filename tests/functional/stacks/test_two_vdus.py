# SPDX-License-Identifier: Apache-2.0
"""A VNF of two VDUs whose servers are in one template; VDU1 waits for VDU2."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from container_update import UpdateFailedError
from container_update.emulator.heat import CloudFaults, ResourceFault
from tests.functional.stacks import templates
from tests.functional.stacks.change import Call, change
from tests.functional.stacks.conftest import Front
from tests.functional.stacks.proxy import NeverComplete
from tests.functional.stacks.site import REAL
from tests.functional.stacks.vnf import Vnf
from tests.internals.core import Reason, hot, operate
from tests.internals.stacks import (
    Replacement,
    StackHeal,
    instantiated_info,
    live,
    reference,
)

SHAPE = "two servers"
VNFCS = "vnfcResourceInfo"
VDUS = {"VDU1": "VDU1", "VDU2": "VDU2"}


def resources(vnf: Vnf) -> dict[str, tuple[str, str]]:
    """Return the id of each resource, and the image of each server."""
    top, found = reference(vnf.live_stack()), {}
    for entry in vnf.heat.resources(top, live.DEPTH):
        name, image = str(entry["resource_name"]), ""
        if entry["resource_type"] == hot.SERVER:
            server = vnf.heat.resource(top, name) or {}
            image = server["attributes"]["image"] and server["attributes"]["image"]["id"]
        found[name] = (str(entry["physical_resource_id"]), image)
    return found


@pytest.mark.parametrize("vdus", [("VDU1",), ("VDU1", "VDU2")])
def test_each_server_changes_in_a_step_of_its_own_whatever_waits_for_it(
    vnf: Vnf, vdus: tuple[str, ...]
) -> None:
    vnf.instantiate(SHAPE)
    before, seen = resources(vnf), []

    def script(step: Call, /) -> None:
        changed = [name for name, now in resources(vnf).items() if now != before[name]]
        seen.append((step.member and step.member.vdu_id, changed))

    request = replace(vnf.request(vnf.package(SHAPE, vnf.site.images[1])), vdu_ids=vdus)
    plan = change(request, vnf.heat, vnf.options, coordinate=script).outcome.plan
    assert seen == [(vdu, list(vdus[: number + 1])) for number, vdu in enumerate(vdus)]
    assert Reason(Replacement.REBUILT.value) in plan.steps[0].reasons
    changed = {name: (before[name][0], vnf.site.images[1]) for name in vdus}
    assert resources(vnf) == before | changed


def test_the_plan_says_what_else_the_last_step_changes(vnf: Vnf) -> None:
    vnf.instantiate(SHAPE)
    before = resources(vnf)
    path = "BaseHOT/simple/top.yaml"
    top = yaml.safe_load(templates.hot("server")[path])
    top["resources"]["net9"] = {"type": "OS::Neutron::Net"}
    new = vnf.package("server", vnf.site.images[0], **{path: yaml.safe_dump(top)})
    *_, step = vnf.change(new).outcome.plan.steps
    assert [reason.text for reason in step.reasons[1:]] == [
        "net9: new",
        "CP2, VDU2: removed, with all that is in it",
    ]
    after = resources(vnf)
    assert after.keys() == {"CP1", "VDU1", "net9"}
    assert after["VDU1"] == before["VDU1"]


def test_an_undo_says_what_it_could_only_make_anew(
    front: Front, faults: CloudFaults, vnf: Vnf
) -> None:
    """The last step has removed a server when it fails."""
    vnf.instantiate(SHAPE)
    before = resources(vnf)
    fault = ResourceFault(type="OS::Neutron::Port", name="CP2", action="DELETE", times=1)
    faults.resources.append(fault)
    if REAL:
        front.middlewares.append(NeverComplete("FAILED", complete=1))
    with pytest.raises(UpdateFailedError) as caught:
        vnf.change(vnf.package("server", vnf.site.images[0]))
    after = resources(vnf)
    assert (after["VDU1"], after.keys()) == (before["VDU1"], before.keys())
    assert after["VDU2"] != before["VDU2"]
    remark = "CP2, VDU2: removed already, and had to be made anew"
    assert str(caught.value).endswith(f"Everything is as before, but {remark}")


def with_data_and_address() -> dict[str, str]:
    """Return the top template with a volume that is attached to VDU2, and a port of both."""
    path = "BaseHOT/simple/top.yaml"
    top = yaml.safe_load(templates.hot(f"{SHAPE} with volume")[path])
    ids = {"instance_uuid": "VDU2", "volume_id": "Data2"}
    attached = {name: {"get_resource": resource} for name, resource in ids.items()}
    top["resources"] |= {
        "Data2": {"type": "OS::Cinder::Volume", "properties": {"size": 1}},
        "attached": {"type": "OS::Cinder::VolumeAttachment", "properties": attached},
        "both": templates.PORT,
    }
    return {path: yaml.safe_dump(top)}


def test_ports_and_volumes_are_those_of_the_server_that_uses_them(vnf: Vnf) -> None:
    vnf.instantiate(f"{SHAPE} with volume", with_data_and_address())
    members = live.members_of(vnf.heat, vnf.live_stack(), VDUS)
    assert {member.vdu_id: (set(member.ports), set(member.volumes)) for member in members} == {
        "VDU1": ({"CP1", "both"}, {"Disk1"}),
        "VDU2": ({"CP2", "both"}, {"Disk2", "Data2"}),
    }
    info = instantiated_info({}, members, "stack")
    ports = [entry["vnfVirtualLinkDescId"] for entry in info["vnfVirtualLinkResourceInfo"]]
    assert sorted(ports) == ["CP1", "CP2", "both"]
    storages = {entry["vduId"]: len(entry["storageResourceIds"]) for entry in info[VNFCS]}
    assert storages == {"VDU1": 1, "VDU2": 2}


def test_a_heal_with_storage_leaves_the_volumes_of_other_vdus_alone(vnf: Vnf) -> None:
    vnf.instantiate(f"{SHAPE} with volume", with_data_and_address())
    before = resources(vnf)
    heal = StackHeal(vnf.stack, VDUS, vnf.options, "1", [before["VDU1"][0]], True)
    operate(heal, vnf.instance())
    after = resources(vnf)
    assert {name for name in before if after[name] != before[name]} == {"VDU1", "Disk1"}
