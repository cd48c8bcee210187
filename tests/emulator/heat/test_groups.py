# SPDX-License-Identifier: Apache-2.0
"""A group's update goes in batches of one, with what the group's own stack has stored."""

from tests.emulator.heat.lab import Lab


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
