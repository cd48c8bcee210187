# SPDX-License-Identifier: Apache-2.0
"""A group's update goes in batches of one, with what the group's own stack has stored."""

import pytest

from container_update.emulator.heat import ResourceFault
from tests.emulator.heat.lab import FILES, TOP, Lab


def test_an_update_of_the_root_rebuilds_every_member_once(lab: Lab) -> None:
    stack = lab.create()
    assert lab.patch(stack, parameters={"image": "new"}) == "UPDATE_COMPLETE"
    assert lab.images(stack) == ["new", "new"]
    assert lab.actions(stack) == [1, 1]


def test_members_that_were_updated_directly_go_back_before_they_go_forward_again(lab: Lab) -> None:
    stack = lab.create()
    for member in lab.members(stack):
        assert lab.put_member(member, image="new") == "UPDATE_COMPLETE"
    assert lab.actions(stack) == [1, 1]
    assert lab.patch(stack, parameters={"image": "new"}) == "UPDATE_COMPLETE"
    assert lab.images(stack) == ["new", "new"]
    assert lab.actions(stack) == [1, 3], "all but the first: new, old, new"


def test_with_the_definitions_of_the_groups_stack_first_no_server_is_touched(lab: Lab) -> None:
    stack = lab.create()
    for member in lab.members(stack):
        lab.put_member(member, image="new")
    assert lab.put_group(lab.group(stack), image="new") == "UPDATE_COMPLETE"
    assert lab.patch(stack, parameters={"image": "new"}) == "UPDATE_COMPLETE"
    assert lab.images(stack) == ["new", "new"]
    assert lab.actions(stack) == [1, 1]


def test_the_stored_definitions_stay_if_the_root_finds_no_difference(lab: Lab) -> None:
    stack = lab.create()
    assert lab.put_group(lab.group(stack), image="new") == "UPDATE_COMPLETE"
    assert lab.patch(stack, parameters={"image": "old"}) == "UPDATE_COMPLETE"
    assert lab.images(stack) == ["new", "new"], "complete, and not what it says"


def test_a_stuck_group_is_freed_by_the_definitions_in_its_own_stack(lab: Lab) -> None:
    lab.faults.images = {"old"}
    stack = lab.create(parameters={"size": 1})
    assert lab.patch(stack, parameters={"image": "none"}) == "UPDATE_FAILED"
    assert lab.patch(stack, parameters={"image": "old"}) == "UPDATE_FAILED"
    assert "none" in stack.reason
    assert lab.put_group(lab.group(stack), image="old") == "UPDATE_COMPLETE"
    assert lab.patch(stack, parameters={"image": "old"}) == "UPDATE_COMPLETE"
    assert lab.actions(stack) == [0]


def test_a_failed_batch_leaves_the_other_members_as_they_were(lab: Lab) -> None:
    stack = lab.create()
    lab.faults.resources.append(
        ResourceFault("no", "Forbidden", action="UPDATE", where=lambda now: now["image"] == "new")
    )
    assert lab.patch(stack, parameters={"image": "new"}) == "UPDATE_FAILED"
    assert lab.images(stack) == ["old", "old"]
    stored = lab.group(stack).template["resources"].values()
    assert sorted(each["properties"]["image"] for each in stored) == ["new", "old"]


@pytest.mark.parametrize("size", [1, 3])
def test_a_resized_group_keeps_the_stored_definitions(lab: Lab, size: int) -> None:
    stack = lab.create()
    before = [server.physical_id for server in lab.servers(stack)]
    assert lab.patch(stack, parameters={"size": size}) == "UPDATE_COMPLETE"
    after = [server.physical_id for server in lab.servers(stack)]
    assert len(after) == size
    assert len(set(after) & set(before)) == min(size, 2)
    assert set(lab.actions(stack)) == {0}


def test_a_batch_is_as_large_as_the_group_says(lab: Lab) -> None:
    group = TOP["resources"]["group"]
    policy = {"max_batch_size": 2, "min_in_service": 0}
    properties = {**group["properties"], "rolling_updates": policy}
    template = {**TOP, "resources": {"group": {**group, "properties": properties}}}
    stack = lab.create(template)
    for member in lab.members(stack):
        lab.put_member(member, image="new")
    assert lab.patch(stack, parameters={"image": "new"}) == "UPDATE_COMPLETE"
    assert lab.actions(stack) == [1, 1], "both get the new definition at once"


def test_an_update_of_the_root_updates_all_below_and_clears_their_tags(lab: Lab) -> None:
    stack = lab.create(tags="mine")
    (member, _) = lab.members(stack)
    assert lab.patch(member, tags="ours") == "UPDATE_COMPLETE"
    assert member.tags == ["ours"]
    events = len(member.events)
    assert lab.patch(stack) == "UPDATE_COMPLETE"
    assert (stack.tags, member.tags) == (["mine"], [])
    assert member.state == "UPDATE_COMPLETE"
    assert len(member.events) == events + 2, "updated, though nothing differs"


def test_a_member_marked_unhealthy_is_replaced_with_all_that_it_has(lab: Lab) -> None:
    stack = lab.create(parameters={"size": 1})
    (before,) = lab.members(stack)
    (member,) = lab.group(stack).resources.values()
    port = before.resources["port"].physical_id
    lab.mark_unhealthy(member)
    assert lab.patch(stack) == "UPDATE_COMPLETE"
    (after,) = lab.members(stack)
    assert after.resources["port"].physical_id != port
    assert before.deleted


def test_a_group_takes_new_files_in_one_batch(lab: Lab) -> None:
    """Only its property ``resource`` makes batches, and that names the file alone."""
    stack = lab.create()
    file = FILES["member.yaml"].replace("{get_param: image}", "new")
    group = lab.group(stack)
    before = [event.id for event in group.events]
    assert lab.patch(stack, files={"member.yaml": file}) == "UPDATE_COMPLETE"
    assert lab.images(stack) == ["new", "new"]
    events = [event for event in group.events if event.id not in before]
    states = [event.status for event in events if event.name == group.name]
    assert states == ["UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"]
