# SPDX-License-Identifier: Apache-2.0
"""Who has a key believes a stack's journal only if a holder of the key has written it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from container_update import CancelToken, UpdateInterruptedError
from tests.functional.stacks.change import Call, change
from tests.functional.stacks.conftest import OPTIONS, Front
from tests.functional.stacks.vnf import Vnf
from tests.internals.stacks import Heat, StackInstance, UnsignedError, connect


@contextmanager
def host(front: Front, key: str) -> Iterator[Heat]:
    """Connect a host with a key; '': as the command does without one."""
    with connect(auth=front.auth(), options=replace(OPTIONS, journal_key=key)) as heat:
        if not key:
            heat.journal_key = ""
        yield heat


def leave_unfinished(vnf: Vnf, heat: Heat) -> None:
    """Stop a change after its first step."""
    cancel, new = CancelToken(), vnf.package("server", vnf.site.images[1])

    def stop(_: Call, /) -> None:
        cancel.request("by the test", keep_journal=True)

    with pytest.raises(UpdateInterruptedError):
        change(vnf.request(new), heat, OPTIONS, coordinate=stop, cancel=cancel)


def rolled_back(vnf: Vnf, heat: Heat) -> None:
    assert StackInstance(heat, vnf.instance_id, OPTIONS).recover(back=True) is not None


@pytest.mark.parametrize(
    ("written", "read", "is_believed"),
    [("one", "one", True), ("one", "", True), ("one", "other", False), ("", "one", False)],
)
def test_a_host_with_a_key_refuses_a_journal_that_is_not_signed_with_it(
    written: str, read: str, is_believed: bool, vnf: Vnf, front: Front
) -> None:
    vnf.instantiate("server")
    with host(front, written) as heat:
        leave_unfinished(vnf, heat)
    before = vnf.stacks()
    with host(front, read) as heat:
        if is_believed:
            rolled_back(vnf, heat)
            assert vnf.stacks() == [vnf.stack]
            return
        with pytest.raises(UnsignedError, match=r"^stack container-update-.*: expected a journal"):
            rolled_back(vnf, heat)
    assert vnf.stacks() == before


def test_the_record_of_another_instance_is_not_believed(vnf: Vnf, front: Front) -> None:
    vnf.instantiate("server")
    with host(front, "one") as heat:
        leave_unfinished(vnf, heat)
        (name,) = (stack for stack in vnf.stacks() if stack != vnf.stack)
        body = {"template": heat.template(name), "files": heat.files(name)}
        heat.create({"stack_name": "container-update-another", "tags": "renewed=never", **body})
        with pytest.raises(UnsignedError):
            StackInstance(heat, "another", OPTIONS).recover(back=True)
