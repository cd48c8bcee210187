# SPDX-License-Identifier: Apache-2.0
"""The size of a scaling group, wherever the template has it."""

from __future__ import annotations

from typing import Any

import pytest

from container_update.model.errors import PlanError
from container_update.openstack.templates import groups
from container_update.openstack.templates.groups import resize
from container_update.package.hot import GROUP, SERVER, Place, StackBody

PLACES = {"VDU1": Place("group", grouped=True), "VDU2": Place("server", server="server")}


def body(capacity: Any, **parameters: Any) -> StackBody:
    properties = {"resource": {"type": SERVER}}
    properties |= {} if capacity is None else {"desired_capacity": capacity}
    resources = {
        "group": {"type": GROUP, "properties": properties},
        "server": {"type": SERVER},
    }
    return StackBody({"resources": resources}, parameters)


TACKERS = {"get_param": ["nfv", "VDU", "VDU1", "desired_capacity"]}
"""As Tacker's sample packages write it."""


@pytest.mark.parametrize(
    ("size", "parameters", "after"),
    [
        ({"get_param": "size"}, {"size": 2, "image": "i"}, {"size": 5, "image": "i"}),
        ({"get_param": "size"}, {}, {"size": 5}),
        (
            TACKERS,
            {"nfv": {"VDU": {"VDU1": {"desired_capacity": 1, "image": "i"}}, "CP": {}}},
            {"nfv": {"VDU": {"VDU1": {"desired_capacity": 5, "image": "i"}}, "CP": {}}},
        ),
    ],
)
def test_a_parameter_gets_the_size(
    size: Any, parameters: dict[str, Any], after: dict[str, Any]
) -> None:
    before = body(size, **parameters)
    changed = resize(before, PLACES, {"VDU1": 5})
    assert changed.parameters == after
    assert changed.template == before.template


@pytest.mark.parametrize("size", [2, None])
def test_the_template_gets_the_size_where_no_parameter_has_it(size: int | None) -> None:
    changed = resize(body(size), PLACES, {"VDU1": 5})
    assert changed.template["resources"]["group"]["properties"]["desired_capacity"] == 5
    assert changed.parameters == {}


@pytest.mark.parametrize("vdu", ["VDU2", "VDU3"])
def test_a_vdu_without_a_group_is_refused(vdu: str) -> None:
    with pytest.raises(PlanError, match=f"{vdu}: expected its server in a resource of type"):
        resize(body(1), PLACES, {vdu: 2})


# --- a group's own stack --------------------------------------------------------------------------

FILES = {
    "new.yaml": """\
heat_template_version: 2015-04-30
parameters:
  image: {type: string}
  password: {type: string, hidden: true}
resources:
  VDU1: {type: OS::Nova::Server}
"""
}


def own_stack(*names: str, image: str = "one", password: str = "open-sesame") -> StackBody:
    """Return a group's own stack as Heat has it: hidden values are not masked."""
    properties = {"image": image, "password": password}
    members = {name: {"type": "new.yaml", "properties": properties} for name in names}
    return StackBody({"heat_template_version": "2015-04-30", "resources": members}, files=FILES)


def test_the_hidden_values_in_a_groups_own_stack_are_masked_and_come_back() -> None:
    group = own_stack("a", "b")
    masked = groups.mask(group, FILES)
    assert "open-sesame" not in str(masked)
    assert groups.unmask(masked, group.template) == group


def test_a_settled_group_says_of_the_given_members_what_they_are_now() -> None:
    group = groups.mask(own_stack("a", "b"), FILES)
    definition = {"type": "new.yaml", "properties": {"image": "two", "password": "secret"}}
    settled = groups.settle(group, ["b"], definition, FILES)
    images = {
        name: member["properties"]["image"]
        for name, member in settled.template["resources"].items()
    }
    assert images == {"a": "one", "b": "two"}
    assert "secret" not in str(settled)
    assert not groups.is_settled(group, settled)
    assert groups.is_settled(settled, settled)


def test_a_number_in_a_groups_stack_is_the_same_as_its_text() -> None:
    number, text = (
        StackBody({"resources": {"a": {"type": "new.yaml", "properties": {"size": size}}}})
        for size in (1, "1")
    )
    assert groups.is_settled(number, text)


def test_a_restored_group_keeps_the_members_that_it_has_now() -> None:
    before = own_stack("a", "b", image="old")
    now = own_stack("b", "c", image="new")
    restored = groups.with_members_of(before, now)
    assert list(restored.template["resources"]) == ["b", "c"]
    images = {m["properties"]["image"] for m in restored.template["resources"].values()}
    assert images == {"old"}
