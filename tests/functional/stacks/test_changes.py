# SPDX-License-Identifier: Apache-2.0
"""Changes of the package that succeed, in both ways, against a cloud."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from container_update import (
    CancelToken,
    PackageError,
    ScriptStep,
    UpdateFailedError,
    UpdateInterruptedError,
)
from tests.functional.stacks import templates
from tests.functional.stacks.change import Call, plan_change
from tests.functional.stacks.vnf import NEW_VNFD, Vnf, until
from tests.internals.core import (
    Action,
    CoordinationError,
    Reason,
    Records,
    StackChange,
    hot,
)
from tests.internals.stacks import BLUE_GREEN, ROLLING, Replacement, live, reference

SHAPES = ["server", "nested", "group", "group of servers"]


def recorded_servers(records: Records) -> set[str]:
    """Return the servers that the host has to write down for VDU1."""
    return {vnfc.pod_name for vnfc in records.vnfcs if vnfc.vdu_id == "VDU1"}


class Scripts:
    """Records the coordination calls."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def __call__(self, step: Call, /) -> None:
        self.calls.append(step)


VOLUMES = [
    ("group", "group with volume"),
    ("group with volume", "group"),
    ("group with volume", "group with volume"),
    ("nested with volume", "nested with volume"),
    ("server", "server with volume"),
    ("server with volume", "server with volume"),
]


@pytest.mark.parametrize(("old", "new"), VOLUMES)
def test_a_server_that_boots_from_a_volume_before_or_after_gets_another_id(
    vnf: Vnf, old: str, new: str
) -> None:
    vnf.instantiate(old)
    before, ports = vnf.servers(), vnf.ids("OS::Neutron::Port")
    outcome = vnf.change(vnf.package(new, vnf.site.images[1]))
    after = vnf.servers()
    assert len(after) == len(before)
    assert not set(after) & set(before)
    assert vnf.ids("OS::Neutron::Port") == ports, "connection points stay"
    assert recorded_servers(outcome.records) == set(after)
    recreated = [step for step in outcome.outcome.plan.steps if step.action is Action.RECREATE]
    assert len(recreated) == len(before)
    assert {step.key.name.rpartition("(server ")[2].rstrip(")") for step in recreated} == set(
        before
    )
    assert all(Reason(Replacement.REPLACED.value) in step.reasons for step in recreated)


@pytest.mark.parametrize("shape", [*SHAPES, "group with volume"])
def test_blue_green_replaces_the_old_stack_by_a_new_one(vnf: Vnf, shape: str) -> None:
    vnf.instantiate(shape)
    old_stack, before = vnf.live_stack(), vnf.servers()
    kinds = ("OS::Neutron::Port", "OS::Cinder::Volume")
    old_ids = [vnf.ids(kind) for kind in kinds]
    outcome = vnf.change(vnf.package(shape, vnf.site.images[1]), BLUE_GREEN)
    after, records = vnf.servers(), outcome.records
    assert len(after) == len(before)
    assert not set(after) & set(before)
    assert vnf.body().parameters["image"] == vnf.site.images[1]
    assert records.vnfd_id == NEW_VNFD
    assert records.instance_ref == vnf.live_stack()["id"] != old_stack["id"]
    assert recorded_servers(records) == set(after)
    renamed = (records.network_resources, records.storage_resources)
    for kind, new_names, old in zip(kinds, renamed, old_ids, strict=True):
        now = set(new_names.values())
        assert now == vnf.ids(kind)
        assert new_names.keys() == old
        assert not now & old
    assert vnf.heat.stack(old_stack["id"]) is None


def test_flavours_come_from_the_vnfd_and_other_parameters_from_the_old_stack(vnf: Vnf) -> None:
    vnf.instantiate("group", size=1)
    vnf.change(vnf.package("group", vnf.site.images[1], vnf.site.flavors[1]))
    assert vnf.body().parameters == {
        "image": vnf.site.images[1],
        "flavor": vnf.site.flavors[1],
        "network": vnf.site.network,
        "size": 1,
    }


@pytest.mark.parametrize("upgrade_type", [BLUE_GREEN, ROLLING])
def test_the_environment_of_the_stack_stays(vnf: Vnf, upgrade_type: str) -> None:
    vnf.instantiate("server")
    environment = {
        "event_sinks": [{"type": "zaqar-queue", "target": "operators"}],
        "parameter_defaults": {"other": "x"},
    }
    vnf.heat.update(vnf.stack, {"environment": environment}, existing=True)
    until(lambda: vnf.live_stack()["stack_status"] == "UPDATE_COMPLETE")
    vnf.change(vnf.package("server", vnf.site.images[1]), upgrade_type)
    after = vnf.heat.environment(reference(vnf.live_stack()))
    assert {name: after[name] for name in environment} == environment


def test_a_rolling_update_coordinates_each_vnfc_after_its_update(vnf: Vnf) -> None:
    vnf.instantiate("group")
    scripts = Scripts()
    new = vnf.package("group", vnf.site.images[1])
    plan = plan_change(vnf.request(new), vnf.heat)
    vnf.change(new, coordinate=scripts)
    actions = [step.action for step in plan.steps]
    updates = [Action.UPDATE] * 2  # of the group and of the whole stack
    members_group_and_stack = [*[Action.UPDATE, Action.RUN] * 2, *updates]
    assert actions == members_group_and_stack
    assert [step.role for step in plan.steps if isinstance(step, ScriptStep)] == ["new", "new"]
    calls = [(call.role, call.member and call.member.server_id) for call in scripts.calls]
    assert calls == [("new", member.server_id) for member in plan.members]


def test_blue_green_coordinates_the_new_vnf_then_the_old_one_while_both_run(vnf: Vnf) -> None:
    vnf.instantiate("group")
    calls = []

    def script(step: Call, /) -> None:
        names = [name for name in vnf.stacks() if name.startswith("vnf-")]
        calls.append((step.role, step.stack.partition("/")[0] == vnf.stack, len(names)))

    vnf.change(vnf.package("group", vnf.site.images[1]), BLUE_GREEN, coordinate=script)
    assert calls == [("new", False, 2), ("old", True, 2)]


def test_a_plan_writes_nothing_and_names_what_happens_to_each_server(vnf: Vnf) -> None:
    vnf.instantiate("group")
    before = vnf.live_stack()
    new = vnf.package("group", vnf.site.images[1])
    plan = plan_change(vnf.request(new), vnf.heat)
    first = plan.steps[0]
    change = f"image {vnf.site.images[0]} -> {vnf.site.images[1]}"
    assert first.reasons == (Reason(change), Reason(Replacement.REBUILT.value))
    assert vnf.live_stack() == before


def test_a_second_blue_green_does_not_lengthen_the_stacks_name(vnf: Vnf) -> None:
    vnf.instantiate("server")
    for image in (1, 0):
        vnf.change(vnf.package("server", vnf.site.images[image]), BLUE_GREEN)
    assert len(vnf.live_stack()["stack_name"]) == len(vnf.stack) + 9


VDU1 = {"vdu_params": [{"vdu_id": "VDU1"}]}
SCRIPT = {"lcm-operation-coordinate-new-vnf": "Scripts/new.py"}


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"vdu_params": None}, "vdu_params: expected the VDUs"),
        ({**VDU1, **SCRIPT}, "external_lb_param: expected"),
        ({**VDU1, "hold": True}, "hold: a change on OpenStack does not wait"),
        (
            {**VDU1, "gate": {"query": "up", "at_least": 1}},
            "gate: a change on OpenStack does not wait",
        ),
        ({**VDU1, "canary_steps": [10, 100]}, "canary_steps: a change on OpenStack does not wait"),
    ],
)
def test_a_blue_green_change_that_lacks_something_or_cannot_wait_is_refused_before_a_second_stack(
    vnf: Vnf, params: dict[str, Any], says: str
) -> None:
    vnf.instantiate("server")
    new = vnf.package("server", vnf.site.images[1])
    request = vnf.change_request(new, {"upgrade_type": BLUE_GREEN, **params})
    with pytest.raises(PackageError, match=says):
        StackChange(request, vnf.heat, vnf.stack, vnf.options).run()
    assert len(vnf.stacks()) == 1


@pytest.mark.parametrize("upgrade_type", [BLUE_GREEN, ROLLING])
def test_an_old_package_that_no_stack_runs_from_is_refused_before_a_write(
    vnf: Vnf, tmp_path: Path, upgrade_type: str
) -> None:
    vnf.instantiate("server")
    new = vnf.package("server", vnf.site.images[1])
    params = {"upgrade_type": upgrade_type, **VDU1}
    request = vnf.change_request(new, params, old=str(tmp_path))
    with pytest.raises(PackageError, match="expected the package that the stack runs from"):
        StackChange(request, vnf.heat, vnf.stack, vnf.options).run()
    assert vnf.live_stack()["stack_status"] == "CREATE_COMPLETE"


# --- resources that only the new template has ---------------------------------------------------

TOP = "BaseHOT/simple/top.yaml"
NET2 = {
    "net2": {"type": "OS::Neutron::Net"},
    "net2_subnet": {
        "type": "OS::Neutron::Subnet",
        "properties": {"network": {"get_resource": "net2"}, "cidr": "192.168.2.0/24"},
    },
}


def with_new_network(shape: str) -> dict[str, str]:
    """Return a top template whose servers are in a network that it makes itself."""
    top = yaml.safe_load(templates.hot(shape)[TOP])
    (definition,) = top["resources"].values()
    outer = definition["properties"].get("resource", definition)
    if "networks" in outer["properties"]:
        outer["properties"]["networks"] = [{"network": {"get_resource": "net2"}}]
    else:
        outer["properties"]["network"] = {"get_resource": "net2"}
    top["resources"] |= NET2
    return {TOP: yaml.safe_dump(top)}


def networks(vnf: Vnf) -> set[str]:
    """Return the networks that the members' own stacks say, or the group's stack of its members."""
    found = set()
    top = reference(vnf.live_stack())
    for entry in vnf.heat.resources(top, live.DEPTH):
        if entry["resource_type"] == hot.SERVER:
            stack = entry["links"][1]["href"].partition("/stacks/")[2]
            body = live.body_of(vnf.heat, stack)
            server = body.template["resources"][entry["resource_name"]]["properties"]
            inner = server.get("networks") or []
            found |= {n["network"] for n in inner if "network" in n}
            found |= {body.parameters["network"]} if "network" in body.parameters else set()
    return found


@pytest.mark.parametrize("shape", ["nested", "group", "group of servers"])
def test_a_rolling_update_adds_first_what_the_servers_of_the_new_template_use(
    vnf: Vnf, shape: str
) -> None:
    vnf.instantiate(shape)
    before = vnf.servers()
    new = vnf.package(shape, vnf.site.images[1], **with_new_network(shape))
    first, *_ = vnf.change(new).outcome.plan.steps
    assert (first.key.name, first.action) == (vnf.stack, Action.UPDATE)
    assert "net2, net2_subnet: new" in str(first)
    (network,) = vnf.ids("OS::Neutron::Net")
    assert networks(vnf) == {network}
    assert vnf.servers() == dict.fromkeys(before, vnf.site.images[1])
    assert vnf.stacks() == [vnf.stack], "the journal is gone"


@pytest.mark.parametrize("shape", ["nested", "group", "group of servers"])
def test_what_was_added_is_gone_after_the_undo(vnf: Vnf, shape: str) -> None:
    vnf.instantiate(shape)
    before, said = vnf.servers(), networks(vnf)

    def fails(step: Call) -> None:
        if step.role == "new":
            raise CoordinationError("the peer said no")

    new = vnf.package(shape, vnf.site.images[1], **with_new_network(shape))
    with pytest.raises(UpdateFailedError, match="Everything is as before"):
        vnf.change(new, coordinate=fails)
    assert vnf.servers() == before
    assert networks(vnf) == said
    assert vnf.ids("OS::Neutron::Net") == set()


def test_an_interrupted_change_goes_on_with_what_it_has_added(vnf: Vnf) -> None:
    vnf.instantiate("group")
    new = vnf.package("group", vnf.site.images[1], **with_new_network("group"))

    cancel = CancelToken()

    def stop(_: Call) -> None:
        cancel.request("by a test", keep_journal=True)

    with pytest.raises(UpdateInterruptedError):
        vnf.change(new, coordinate=stop, cancel=cancel)
    (network,) = vnf.ids("OS::Neutron::Net")
    vnf.change(new)
    assert vnf.ids("OS::Neutron::Net") == {network} == networks(vnf)
    assert set(vnf.servers().values()) == {vnf.site.images[1]}
