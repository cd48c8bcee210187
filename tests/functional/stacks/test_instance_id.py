# SPDX-License-Identifier: Apache-2.0
"""The id of the instance that a stack is, where nobody gives one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from container_update import PlanError
from tests.functional.change_vnfpkg.dying import Died, Dying
from tests.functional.stacks.change import change
from tests.functional.stacks.clocks import in_an_hour
from tests.functional.stacks.test_failures import WRITES
from tests.functional.stacks.vnf import Vnf
from tests.internals.stacks import BLUE_GREEN, ROLLING, Heat, StackInstance, instance_id_of


def leave_unfinished(vnf: Vnf, upgrade_type: str, writes: int = 2) -> None:
    """Begin a change of a VNF without an instance id, and die after some writes."""
    new = vnf.package("group", vnf.site.images[1])
    request = replace(vnf.request(new, upgrade_type), instance_id=None)
    dying = Dying(vnf.heat, writes, WRITES)
    with pytest.raises(Died):
        change(request, dying, vnf.options)  # type: ignore[arg-type]


@pytest.fixture
def other(heat: Heat, vnf: Vnf, tmp_path: Path) -> Vnf:
    """A second VNF in the same project."""
    folder = tmp_path / "other"
    folder.mkdir()
    return Vnf(heat, folder, vnf.site, vnf.options)


def test_a_change_of_one_stack_leaves_the_unfinished_change_of_another_alone(
    vnf: Vnf, other: Vnf
) -> None:
    vnf.instantiate("group")
    other.instantiate("group")
    leave_unfinished(vnf, ROLLING)
    new = other.package("group", vnf.site.images[1])
    change(replace(other.request(new), instance_id=None), vnf.heat, vnf.options)
    assert set(other.servers().values()) == {vnf.site.images[1]}
    assert sorted(vnf.servers().values()) == sorted(vnf.site.images)
    own_id = instance_id_of(vnf.heat, vnf.stack)
    assert own_id == vnf.live_stack()["id"]
    instance = StackInstance(vnf.heat, own_id, vnf.options, clock=in_an_hour(), stack=vnf.stack)
    assert instance.recover(back=True) is not None
    assert set(vnf.servers().values()) == {vnf.site.images[0]}
    vnf.heat.delete(other.live_stack()["stack_name"])


def test_the_journal_of_another_stack_is_refused(vnf: Vnf, other: Vnf) -> None:
    vnf.instantiate("group")
    other.instantiate("group")
    leave_unfinished(vnf, ROLLING)
    shared = instance_id_of(vnf.heat, vnf.stack)
    new = other.package("group", vnf.site.images[1])
    with pytest.raises(PlanError, match=f"belongs to an unfinished change of stack {vnf.stack}"):
        change(replace(other.request(new), instance_id=shared), vnf.heat, vnf.options)
    instance = StackInstance(vnf.heat, shared, vnf.options, stack=other.stack, clock=in_an_hour())
    with pytest.raises(PlanError, match=f"not of stack {other.stack}"):
        instance.recover(back=True)
    assert set(other.servers().values()) == {vnf.site.images[0]}
    replace(instance, stack=vnf.stack).recover(back=True)
    vnf.heat.delete(other.live_stack()["stack_name"])


def test_an_unfinished_blue_green_change_is_found_by_the_old_and_the_new_stack(vnf: Vnf) -> None:
    vnf.instantiate("group")
    old = vnf.live_stack()
    leave_unfinished(vnf, BLUE_GREEN)
    (new,) = [name for name in vnf.stacks() if name.startswith(f"{vnf.stack}.")]
    for name in (vnf.stack, new, old["id"]):
        assert instance_id_of(vnf.heat, name) == old["id"]
    instance = StackInstance(vnf.heat, old["id"], vnf.options, stack=new, clock=in_an_hour())
    assert instance.recover(back=True) is not None
    assert vnf.stacks() == [vnf.stack]


def test_a_stack_that_does_not_exist_has_no_instance_id(vnf: Vnf) -> None:
    with pytest.raises(PlanError, match="there is no stack vnf-nowhere"):
        instance_id_of(vnf.heat, "vnf-nowhere")
