# SPDX-License-Identifier: Apache-2.0
"""What is done to each server: as little as it takes, whatever contains it."""

from __future__ import annotations

import threading
import uuid
from dataclasses import replace
from typing import Any

import pytest
import yaml

from container_update import ContainerUpdateError, UpdateFailedError
from container_update.emulator.heat import CloudFaults
from tests.functional.change_vnfpkg.dying import Died
from tests.functional.stacks import templates
from tests.functional.stacks.change import Call, change, plan_change
from tests.functional.stacks.clocks import in_an_hour
from tests.functional.stacks.conftest import Actions
from tests.functional.stacks.limits import Limits
from tests.functional.stacks.site import REAL
from tests.functional.stacks.test_failures import DiesAfterAnUpdate
from tests.functional.stacks.vnf import Vnf, until
from tests.internals.stacks import BLUE_GREEN, ROLLING, Heat, live, reference

SHAPES = pytest.mark.parametrize("shape", ["server", "nested", "group", "group of servers"])
CHANGES = {
    "another image": (1, 0, ["rebuild"]),
    "a larger flavour": (0, 1, ["resize"]),
    "both": (1, 1, ["resize", "rebuild"]),
}


@SHAPES
@pytest.mark.parametrize("name", CHANGES)
def test_a_rolling_update_does_one_thing_to_each_server_once(
    vnf: Vnf, actions: Actions, shape: str, name: str
) -> None:
    image, flavor, expected = CHANGES[name]
    vnf.instantiate(shape)
    before = vnf.servers()
    vnf.change(vnf.package(shape, vnf.site.images[image], vnf.site.flavors[flavor]))
    assert vnf.servers() == dict.fromkeys(before, vnf.site.images[image])
    assert {server: actions(server) for server in before} == dict.fromkeys(before, expected)


@SHAPES
def test_after_a_rolling_update_an_update_of_the_stack_by_hand_changes_no_server(
    vnf: Vnf, actions: Actions, shape: str
) -> None:
    vnf.instantiate(shape)
    vnf.change(vnf.package(shape, vnf.site.images[1]))
    stack, servers = reference(vnf.live_stack()), vnf.servers()
    done = {server: actions(server) for server in servers}
    vnf.heat.update(stack, {}, existing=True)
    until(lambda: vnf.live_stack()["stack_status"] == "UPDATE_COMPLETE")
    assert vnf.servers() == servers
    assert {server: actions(server) for server in servers} == done


@SHAPES
def test_an_undo_does_to_each_server_what_it_takes_and_no_more(
    limits: Limits, vnf: Vnf, actions: Actions, shape: str
) -> None:
    vnf.instantiate(shape)
    before = vnf.servers()
    limits.room_for(resizes=len(before) - 1)
    with pytest.raises(
        UpdateFailedError, match=r"Quota exceeded for cores.* Everything is as before"
    ):
        vnf.change(vnf.package(shape, vnf.site.images[1], limits.cores))
    assert vnf.servers() == dict.fromkeys(before, vnf.site.images[0])
    done = sorted(actions(server) for server in before)
    there_and_back = ["resize", "rebuild", "resize", "rebuild"]
    assert done == [[], *[there_and_back] * (len(before) - 1)]


class AtUpdates:
    """Heat, with the stacks that were updated, in order."""

    def __init__(self, heat: Heat) -> None:
        self._heat = heat
        self.updated: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._heat, name)

    def update(self, stack: str, body: Any, **more: Any) -> None:
        if not more.get("existing"):  # as the journal
            self.updated.append(stack.partition("/")[0])
        self._heat.update(stack, body, **more)


def test_a_change_that_dies_in_its_last_step_is_undone_from_the_inside_to_the_outside(
    vnf: Vnf, actions: Actions, faults: CloudFaults
) -> None:
    """While Heat still goes from one member to the next, which the undo has to wait for."""
    vnf.instantiate("group")
    before, body = vnf.servers(), vnf.body()
    faults.seconds = 0.05
    new = vnf.package("group", vnf.site.images[1])
    dying = DiesAfterAnUpdate(vnf.heat, reference(vnf.live_stack()))
    with pytest.raises(Died):
        change(vnf.request(new), dying, vnf.options)  # type: ignore[arg-type]
    watched = AtUpdates(vnf.heat)
    instance = replace(vnf.instance(clock=in_an_hour()), service=watched)  # type: ignore[arg-type]
    assert instance.recover(back=True) is not None
    member, other_member, group, whole = watched.updated
    assert group.startswith(f"{vnf.stack}-VDU1_group-")
    assert member.startswith(group)
    assert other_member.startswith(group)
    assert whole == vnf.stack
    assert vnf.servers() == dict.fromkeys(before, vnf.site.images[0])
    assert vnf.body() == body
    assert [actions(server) for server in before] == [["rebuild", "rebuild"]] * 2


def in_progress(heat: Heat, stack: str) -> list[str]:
    """Return the resources of a stack and of those in it that Heat is at work on."""
    return [
        resource["resource_name"]
        for resource in heat.resources(stack, live.DEPTH)
        if resource["resource_status"].endswith("_IN_PROGRESS")
    ]


class AtRest:
    """Heat that is asked, before each update, whether anything of a stack is in progress."""

    def __init__(self, heat: Heat, whole: str) -> None:
        self._heat, self._whole = heat, whole
        self.in_progress: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._heat, name)

    def update(self, stack: str, body: Any, **more: Any) -> None:
        if not more.get("existing"):  # as the journal
            self.in_progress += in_progress(self._heat, self._whole)
        self._heat.update(stack, body, **more)


@pytest.mark.parametrize("dies_in", ["a member", "the group", "the whole stack"])
def test_an_undo_changes_no_stack_before_heat_is_done_with_what_was_begun(
    vnf: Vnf, actions: Actions, faults: CloudFaults, dies_in: str
) -> None:
    """A cancelled update has failed at once, but its servers are still being rebuilt."""
    vnf.instantiate("group")
    before, whole = vnf.servers(), reference(vnf.live_stack())
    change_request = vnf.request(vnf.package("group", vnf.site.images[1]))
    member, *_, group = [
        step.stack
        for step in plan_change(change_request, vnf.heat).stack_steps
        if step.stack != whole
    ]
    dies_in_stack = {"a member": member, "the group": group, "the whole stack": whole}[dies_in]

    class Dying(DiesAfterAnUpdate):
        def update(self, stack: str, body: Any, **more: Any) -> None:
            faults.seconds = 1.5 if stack == dies_in_stack else faults.seconds
            try:
                super().update(stack, body, **more)
            except Died:
                if dies_in == "a member":
                    until(lambda: "VDU1" in in_progress(vnf.heat, member))
                raise

    with pytest.raises(Died):
        change(change_request, Dying(vnf.heat, dies_in_stack), vnf.options)  # type: ignore[arg-type]
    faults.seconds = 0.001  # what is under way takes its time all the same
    watched = AtRest(vnf.heat, whole)
    instance = replace(vnf.instance(clock=in_an_hour()), service=watched)  # type: ignore[arg-type]
    assert instance.recover(back=True) is not None
    assert watched.in_progress == []
    assert vnf.servers() == dict.fromkeys(before, vnf.site.images[0])
    back = ["rebuild", "rebuild"]
    done = sorted(actions(server) for server in before)
    assert done == ([[], back] if dies_in == "a member" else [back, back])


@SHAPES
def test_an_undo_takes_back_what_the_new_templates_add(vnf: Vnf, shape: str) -> None:
    """Another resource beside the server, and none of the group's members."""
    vnf.instantiate(shape)
    before, ports = vnf.body(), vnf.ids("OS::Heat::RandomString")
    files = templates.hot(shape)
    name = next((name for name in files if "nested/" in name), "BaseHOT/simple/top.yaml")
    changed = yaml.safe_load(files[name])
    changed["resources"]["Added"] = {"type": "OS::Heat::RandomString"}
    new = vnf.package(shape, vnf.site.images[1], **{name: yaml.safe_dump(changed)})
    added = []

    def script(step: Call) -> None:
        if not step.back:
            added.extend(vnf.ids("OS::Heat::RandomString"))
            raise ContainerUpdateError("the load balancer does not answer")

    with pytest.raises(UpdateFailedError, match="Everything is as before"):
        vnf.change(new, coordinate=script)
    assert bool(added) is ("nested/" in name)
    assert vnf.ids("OS::Heat::RandomString") == ports == set()
    assert vnf.body() == before
    assert set(vnf.servers().values()) == {vnf.site.images[0]}


# --- a disk that cannot shrink --------------------------------------------------------------------


def test_an_undo_of_a_larger_disk_replaces_the_server_as_the_plan_says(
    limits: Limits, vnf: Vnf
) -> None:
    vnf.instantiate("group")
    before = vnf.servers()
    new = vnf.package("group", vnf.site.images[1], limits.disk)
    first, *_ = plan_change(vnf.request(new), vnf.heat).steps
    assert "its disk grows from 1 to 2 GB" in str(first)
    assert "an undo replaces the server" in str(first)

    def script(step: Call) -> None:
        if not step.back:
            raise ContainerUpdateError("the load balancer does not answer")

    with pytest.raises(UpdateFailedError, match="was replaced by server") as caught:
        vnf.change(new, coordinate=script)
    after = vnf.servers()
    assert set(after.values()) == {vnf.site.images[0]}
    (replaced,) = set(before) - set(after)
    (new_one,) = set(after) - set(before)
    assert f"server {replaced} was replaced by server {new_one}" in str(caught.value)


# --- what Heat does not see -----------------------------------------------------------------------


@SHAPES
def test_a_server_that_was_rebuilt_behind_heats_back_is_mended_and_keeps_its_id(
    limits: Limits, vnf: Vnf, shape: str
) -> None:
    assert_mended(limits, vnf, shape)


def test_so_is_one_whose_image_is_given_by_its_id(limits: Limits, vnf: Vnf) -> None:
    if not REAL:  # whose images have ids of this form
        vnf.site = replace(vnf.site, images=(str(uuid.uuid4()), str(uuid.uuid4())))
    assert_mended(limits, vnf, "group")


def assert_mended(limits: Limits, vnf: Vnf, shape: str) -> None:
    vnf.instantiate(shape)
    before, (old, new) = vnf.servers(), vnf.site.images
    limits.rebuild(next(iter(before)), new)
    same = vnf.package(shape, old)
    step, *_ = plan_change(vnf.request(same), vnf.heat).steps
    assert f"the server has image {new} instead of {old}" in str(step)
    vnf.change(same)
    assert vnf.servers() == dict.fromkeys(before, old)


def test_a_server_that_changes_during_the_change_ends_it_with_an_undo(
    limits: Limits, vnf: Vnf
) -> None:
    """Heat says that every stack is complete; the look at the servers finds it."""
    vnf.instantiate("group")
    before, coordinated, (old, new) = vnf.servers(), [], vnf.site.images

    def script(step: Call) -> None:
        assert step.member is not None
        coordinated.append(step.member.server_id)
        if len(coordinated) == 2:
            limits.rebuild(coordinated[0], old)

    with pytest.raises(UpdateFailedError, match=f"has image {old} instead of {new}") as caught:
        vnf.change(vnf.package("group", new), coordinate=script)
    assert "Everything is as before" in str(caught.value)
    assert vnf.servers() == dict.fromkeys(before, old)


def test_a_server_that_changes_during_the_undo_is_mended_at_its_end(
    limits: Limits, vnf: Vnf
) -> None:
    """After its own stack was put back, while the whole stack is."""
    vnf.instantiate("group")
    before, (old, new), whole = vnf.servers(), vnf.site.images, reference(vnf.live_stack())
    dying: Any = DiesAfterAnUpdate(vnf.heat, whole)
    with pytest.raises(Died):
        change(vnf.request(vnf.package("group", new)), dying, vnf.options)

    class Rebuilding(AtUpdates):
        def update(self, stack: str, body: Any, **more: Any) -> None:
            if stack == whole:
                limits.rebuild(next(iter(before)), new)
            super().update(stack, body, **more)

    watched = Rebuilding(vnf.heat)
    instance = replace(vnf.instance(clock=in_an_hour()), service=watched)  # type: ignore[arg-type]
    assert instance.recover(back=True) is not None
    assert vnf.stack in watched.updated
    assert vnf.servers() == dict.fromkeys(before, old)


# --- what others do meanwhile ---------------------------------------------------------------------


def test_a_stack_that_is_scaled_meanwhile_keeps_its_size_and_the_old_package(vnf: Vnf) -> None:
    vnf.instantiate("group")
    before = set(vnf.servers())
    scaled = threading.Event()

    def script(step: Call) -> None:
        if not step.back and not scaled.is_set():
            scaled.set()
            stack = reference(vnf.live_stack())
            vnf.heat.update(stack, {"parameters": {"size": 3}}, existing=True)

    with pytest.raises(UpdateFailedError, match="changed by another client") as caught:
        vnf.change(vnf.package("group", vnf.site.images[1]), coordinate=script)
    assert "(parameters size)" in str(caught.value)
    until(lambda: vnf.live_stack()["stack_status"] == "UPDATE_COMPLETE")
    after = vnf.servers()
    assert before < set(after)
    assert len(after) == 3
    assert set(after.values()) == {vnf.site.images[0]}
    assert vnf.live_stack()["parameters"]["size"] == "3"


def test_a_stack_that_is_scaled_in_meanwhile_loses_no_more_than_that(vnf: Vnf) -> None:
    vnf.instantiate("group", size=3)
    scaled = threading.Event()

    def script(step: Call) -> None:
        if not step.back and not scaled.is_set():
            scaled.set()
            stack = reference(vnf.live_stack())
            vnf.heat.update(stack, {"parameters": {"size": 2}}, existing=True)
            until(lambda: vnf.live_stack()["stack_status"] == "UPDATE_COMPLETE")

    with pytest.raises(UpdateFailedError, match="Everything is as before"):
        vnf.change(vnf.package("group", vnf.site.images[1]), coordinate=script)
    after = vnf.servers()
    assert len(after) == 2
    assert set(after.values()) == {vnf.site.images[0]}


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("shape", ["group", "group of servers"])
def test_an_undo_keeps_the_size_that_a_stack_got_after_its_last_step(
    vnf: Vnf, shape: str, size: int
) -> None:
    """A VNFC that came later gets what the others get back."""
    vnf.instantiate(shape)
    whole = reference(vnf.live_stack())
    coordinated: list[str] = []

    def script(step: Call, /) -> None:
        assert step.member is not None
        coordinated.append(step.member.server_id)

    request = vnf.request(vnf.package(shape, vnf.site.images[1]))
    dying: Any = DiesAfterAnUpdate(vnf.heat, whole)
    with pytest.raises(Died):
        change(request, dying, vnf.options, coordinate=script)
    until(lambda: vnf.live_stack()["stack_status"] == "UPDATE_COMPLETE")
    vnf.heat.update(whole, {"parameters": {"size": size}}, existing=True)
    until(lambda: vnf.live_stack()["stack_status"] == "UPDATE_COMPLETE")
    assert list(vnf.servers().values()) == [vnf.site.images[1]] * size
    left = set(coordinated) & set(vnf.servers())
    coordinated.clear()
    instance = vnf.instance(clock=in_an_hour(), coordinate=script)
    assert instance.recover(back=True) is not None
    assert set(coordinated) == left, "no script runs for a VNFC that is gone"
    assert list(vnf.servers().values()) == [vnf.site.images[0]] * size
    assert vnf.live_stack()["parameters"]["size"] == str(size)


@pytest.mark.parametrize("upgrade_type", [BLUE_GREEN, ROLLING])
@pytest.mark.parametrize("shape", ["server", "group"])
def test_the_operators_tags_and_time_limit_stay(vnf: Vnf, shape: str, upgrade_type: str) -> None:
    vnf.instantiate(shape)
    own = {"tags": "team-a,blue", "timeout_mins": 7}
    vnf.heat.update(reference(vnf.live_stack()), own, existing=True)
    until(lambda: vnf.live_stack()["stack_status"] == "UPDATE_COMPLETE")
    vnf.change(vnf.package(shape, vnf.site.images[1]), upgrade_type)
    stack = vnf.live_stack()
    assert stack["tags"][:2] == ["team-a", "blue"]
    assert len(stack["tags"]) == 3
    assert stack["timeout_mins"] == 7


def test_every_create_and_update_has_a_time_limit(vnf: Vnf) -> None:
    vnf.instantiate("group")
    vnf.change(vnf.package("group", vnf.site.images[1]))
    whole, *nested = vnf.live_stack(), *nested_stacks(vnf)
    assert whole["timeout_mins"] is not None
    assert [stack["timeout_mins"] is not None for stack in nested] == [True] * 3


def nested_stacks(vnf: Vnf) -> list[dict[str, object]]:
    resources = vnf.heat.resources(reference(vnf.live_stack()), live.DEPTH)
    links = [link for resource in resources for link in resource["links"]]
    names = [link["href"].partition("/stacks/")[2] for link in links if link["rel"] == "nested"]
    return [stack for name in names if (stack := vnf.heat.stack(name)) is not None]
