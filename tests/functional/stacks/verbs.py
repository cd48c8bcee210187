# SPDX-License-Identifier: Apache-2.0
"""Every verb on Heat and what it keeps of the promises, as data.

All work on the same VNF, a group of two servers, and lead it from one of its states to another one.
``doc/source/developers/promises.rst`` is made of the table in here too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from container_update import Outcome
from tests.functional.stacks.vnf import OLD_VNFD, Vnf
from tests.internals.core import StackChange, operate
from tests.internals.stacks import (
    BLUE_GREEN,
    ROLLING,
    Heat,
    Instantiate,
    StackGoal,
    StackHeal,
    StackInstance,
    StackScale,
    Terminate,
    described_by,
)

SIZE = 2

Act = Callable[..., Outcome]
"""Does it: with a VNF, its servers before, a client of Heat, and ``cancel`` and ``progress``."""


@dataclass(frozen=True)
class State:
    """What a VNF is: how many servers of which of the site's images; none: it is not there."""

    servers: int
    image: int = 0
    are_other_servers: bool = False

    def differences(self, vnf: Vnf, before: set[str]) -> list[str]:
        """Return what is not so, and what is left over."""
        left = [name for name in vnf.stacks() if not name.startswith("vnf-")]
        found = [name for name in vnf.stacks() if name.startswith("vnf-")]
        if not self.servers or not found:
            return [*left, *found] if not self.servers else ["there is no stack"]
        if len(found) > 1:
            return found
        servers, status = vnf.servers(), str(vnf.live_stack()["stack_status"])
        wrong = [*left, *([status] if not status.endswith("_COMPLETE") else [])]
        if set(servers.values()) != {vnf.site.images[self.image]} or len(servers) != self.servers:
            wrong.append(f"expected {self}, found {servers}")
        if self.are_other_servers and set(servers) & before:
            wrong.append(f"servers that were there before: {servers}")
        return wrong


OLD, NEW, NOTHING = State(SIZE), State(SIZE, image=1), State(0)


def _change(upgrade_type: str, vnf: Vnf, _: set[str], heat: Heat, **how: Any) -> Outcome:
    params = {"upgrade_type": upgrade_type, "vdu_params": [{"vdu_id": "VDU1"}]}
    new = vnf.package("group", vnf.site.images[1])
    request = vnf.change_request(new, params)
    return StackChange(request, heat, vnf.stack, vnf.options).run(**how)


def _goal(goal: Callable[[Vnf, set[str]], StackGoal]) -> Act:
    def act(vnf: Vnf, before: set[str], heat: Heat, **how: Any) -> Outcome:
        return operate(goal(vnf, before), StackInstance(heat, vnf.instance_id, vnf.options, **how))

    return act


def _instantiate(vnf: Vnf, _: set[str]) -> StackGoal:
    old = vnf.package("group", vnf.site.images[0], vnfd_id=OLD_VNFD)
    given = {"network": vnf.site.network, "size": SIZE}
    body = described_by(old, "simple", given, vnf.options)
    return Instantiate(vnf.stack, body, vnf.options, "1")


VDUS = {"VDU1": "VDU1"}


@dataclass(frozen=True)
class StackVerb:
    """A verb, and where it leads the VNF."""

    name: str
    act: Act
    old: State = OLD
    new: State = NEW
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Promise to the reason why it is not kept, or makes no sense."""

    @property
    def instantiates(self) -> bool:
        """There is nothing before."""
        return self.old == NOTHING

    @property
    def replaces_servers(self) -> bool:
        """It has new servers, so that a quota stops it: a rolling change rebuilds those there."""
        return "rolling" not in self.name

    def keeps(self, promise: str) -> bool:
        """Return whether it keeps a promise."""
        return promise not in self.reasons


_ALL = {
    "late writes": "Heat has no conditional requests. What arrives before a run's last look at the "
    "stacks is undone, and ``tests/functional/stacks/test_late_requests.py`` proves it; what "
    "arrives after it stays: :doc:`heat`.",
    "rights": "Keystone's roles decide, and no request asks for them beforehand. What is refused "
    "in the middle is undone.",
    "saved plan": "Heat has no dry run that says what an update does to a server, and a plan of "
    "stacks is not saved; ``--plan`` shows that of a change.",
    "plan": "``tests/functional/stacks/test_changes.py`` proves it of a change, which alone has a "
    "plan.",
    "history": "There is no history in a project: the package before is in the records of the "
    "VNFM, and a change to it is the way back.",
    "progress": "Plan, steps and results are reported; ``watch`` follows a cluster only, "
    "``status --stack`` says how far it is.",
}
_SERVICE = {
    **_ALL,
    "JSON": "There is no command for it: the service has it (:doc:`/vnfm`).",
    "records": "The service reads them from the live stack afterwards (``tests/vnfm``).",
}
_NO_WAY_BACK = "What was deleted nothing brings back: it is finished by ``resume``."

VERBS = (
    StackVerb("Heat: change, rolling", partial(_change, ROLLING), reasons=_ALL),
    StackVerb("Heat: change, Blue-Green", partial(_change, BLUE_GREEN), reasons=_ALL),
    StackVerb(
        "Heat: instantiate",
        _goal(_instantiate),
        old=NOTHING,
        new=OLD,
        reasons={
            **_SERVICE,
            "writes of others": "Its stack is exclusive while it is being made; one of that "
            "name is replaced.",
        },
    ),
    StackVerb(
        "Heat: heal",
        _goal(lambda vnf, before: StackHeal(vnf.stack, VDUS, vnf.options, "1", before, False)),
        new=replace(OLD, are_other_servers=True),
        reasons={**_SERVICE, "undo": _NO_WAY_BACK},
    ),
    StackVerb(
        "Heat: scale",
        _goal(lambda vnf, _: StackScale(vnf.stack, VDUS, vnf.options, "1", {"VDU1": SIZE + 1})),
        new=State(SIZE + 1),
        reasons=_SERVICE,
    ),
    StackVerb(
        "Heat: terminate",
        _goal(lambda vnf, _: Terminate(vnf.stack)),
        new=NOTHING,
        reasons={
            **_SERVICE,
            "undo": _NO_WAY_BACK,
            "writes of others": "It changes nothing: the VNF's stacks are deleted as they are.",
            "fails early": "It starts no servers.",
        },
    ),
)
