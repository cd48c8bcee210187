# SPDX-License-Identifier: Apache-2.0
"""Two hosts at one VNF: one loses its hold, or its requests arrive late; their clocks differ."""

from __future__ import annotations

import base64
import gzip
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from container_update import (
    CancelToken,
    ClusterError,
    ContainerUpdateError,
    LeaseLostError,
    Options,
    PlanError,
    UpdateInProgressError,
)
from tests.functional.stacks.change import Call, change
from tests.functional.stacks.clocks import World
from tests.functional.stacks.vnf import Vnf, until
from tests.internals.core import Json, ProcessIdentity, new_identity
from tests.internals.stacks import (
    BLUE_GREEN,
    ROLLING,
    Heat,
    StackHolder,
    StackInstance,
    StackJournal,
    StackPlan,
    StackRecord,
    _StoredJournal,
    is_free,
    tags_of,
)

OPTIONS = Options(timeout=20, undo_timeout=20, retry_seconds=2, lease_seconds=30)
SKEWS = pytest.mark.parametrize(
    "skew", [timedelta(hours=-1), timedelta(seconds=-20), timedelta(seconds=20), timedelta(hours=1)]
)
INSTANCE = str(uuid.uuid4())


# --- the hold -----------------------------------------------------------------------------------


def record_of(journal: StackJournal) -> StackRecord:
    values = new_identity(journal.clock.now(), "goal", INSTANCE)
    plan = StackPlan("", INSTANCE, (), kind=ROLLING, stack="vnf/1")
    return StackRecord(**{**values, "operation": journal.operation}, plan=plan)


@dataclass
class Hosts:
    """Hosts with one VNF instance and one true time."""

    heat: Heat
    world: World = field(default_factory=World)

    def journal(self, operation: str, skew: timedelta = timedelta()) -> StackJournal:
        clock = self.world.clock(skew)
        return StackJournal(self.heat, INSTANCE, operation, OPTIONS.lease_seconds, clock)

    def begun(self, skew: timedelta = timedelta()) -> StackJournal:
        journal = self.journal("first", skew)
        journal.begin(record_of(journal))
        return journal

    def stacks(self) -> list[str]:
        names = [stack["stack_name"] for stack in self.heat.stacks()]
        return [name for name in names if INSTANCE in name]


@pytest.fixture
def hosts(heat: Heat) -> Iterator[Hosts]:
    """Hosts at one cloud, where nothing is left of earlier ones."""
    made = Hosts(heat)
    yield made
    for name in made.stacks():
        heat.delete(name)
    until(lambda: made.stacks() == [])


@SKEWS
def test_a_host_that_sends_heartbeats_is_never_taken_over_whatever_its_clock_says(
    hosts: Hosts, skew: timedelta
) -> None:
    first = hosts.begun(skew)
    hosts.world.meanwhile.append(first.renew)
    for _ in range(3):
        with pytest.raises(UpdateInProgressError, match="holds this VNF instance"):
            hosts.journal("second").take_over()
        hosts.world.wait(OPTIONS.lease_seconds / 2)
    first.confirm()
    first.remove()
    assert hosts.stacks() == []


@SKEWS
def test_a_host_that_is_silent_for_the_lease_is_taken_over_whatever_its_clock_says(
    hosts: Hosts, skew: timedelta
) -> None:
    first = hosts.begun(skew)
    began = hosts.world.passed
    second = hosts.journal("second")
    for _ in range(2):  # a heartbeat that seems fresh is not watched
        with suppress(UpdateInProgressError):
            second.take_over()
            break
        hosts.world.wait(OPTIONS.lease_seconds + 20)
    assert hosts.world.passed - began >= OPTIONS.lease_seconds
    second.confirm()
    with pytest.raises(LeaseLostError):
        first.confirm()


def test_a_heartbeat_that_is_fresh_is_refused_at_once(hosts: Hosts) -> None:
    hosts.begun()
    with pytest.raises(UpdateInProgressError, match=r"last heartbeat \d s ago"):
        hosts.journal("second").take_over()
    assert hosts.world.passed == 0


def test_the_name_of_a_journal_that_was_just_deleted_is_waited_for(hosts: Hosts) -> None:
    refused: list[str] = []

    def create(body: Json, **how: Any) -> str:
        if not refused:
            refused.append(body["stack_name"])
            raise ClusterError("The Stack already exists", status=409)
        return hosts.heat.create(body, **how)

    journal = hosts.journal("first")
    journal.service = Replaced(hosts.heat, create=create)  # type: ignore[assignment]
    journal.begin(record_of(journal))
    assert hosts.stacks() == refused


def taken_over(hosts: Hosts) -> tuple[StackJournal, StackJournal]:
    """Return the journal as the host sees it that lost it, and as the one that has it."""
    first, second = hosts.begun(), hosts.journal("second")
    hosts.world.wait(OPTIONS.lease_seconds)
    second.take_over()
    return first, second


def begun_to_take_over(hosts: Hosts) -> tuple[StackJournal, StackJournal]:
    """Return the same where the other host is killed after its first write."""

    def dies(*_: object, **__: object) -> None:
        raise KilledError

    first, second = hosts.begun(), hosts.journal("second")
    hosts.world.wait(OPTIONS.lease_seconds)
    second.service = Replaced(hosts.heat, update=dies)  # type: ignore[assignment]
    with pytest.raises(KilledError):
        second.take_over()
    return first, second


def taken_over_and_ended(hosts: Hosts) -> tuple[StackJournal, StackJournal]:
    """Return the same where the other host has ended the change."""
    first, second = taken_over(hosts)
    second.remove()
    return first, second


def looks(journal: StackJournal) -> None:
    """Confirm the hold while no heartbeat is due."""
    journal.lease_seconds *= 1000
    journal.confirm()


LOSER: dict[str, Callable[[StackJournal], object]] = {
    "removes": StackJournal.remove,
    "writes": lambda journal: journal.write(record_of(journal)),
    "confirms": StackJournal.confirm,
    "looks": looks,
}


@pytest.mark.parametrize("what", LOSER)
@pytest.mark.parametrize("lose", [begun_to_take_over, taken_over, taken_over_and_ended])
def test_a_host_that_lost_the_journal_says_so_and_takes_nothing_from_the_other(
    hosts: Hosts, what: str, lose: Callable[[Hosts], tuple[StackJournal, StackJournal]]
) -> None:
    first, second = lose(hosts)
    before = second.read()
    with pytest.raises(LeaseLostError, match=r"^This run stopped where it was: .*journal"):
        LOSER[what](first)
    third = hosts.journal("third")
    if (what, lose) != ("removes", begun_to_take_over):  # that one had ended its change
        assert (third.read() is None) is (before is None)
    hosts.world.wait(OPTIONS.lease_seconds)
    third.take_over()
    if third.read() is not None:
        third.remove()
    third.sweep()
    assert hosts.stacks() == []


def test_a_host_that_lost_the_journal_does_not_let_go_for_the_other(hosts: Hosts) -> None:
    first, second = taken_over(hosts)
    first.release()
    holder = second.holder()
    assert holder is not None
    assert holder.operation == "second"


def test_no_new_change_begins_beside_one_that_was_taken_over(hosts: Hosts) -> None:
    _, second = taken_over(hosts)
    other = hosts.journal("other")
    with pytest.raises(UpdateInProgressError, match="another change of this VNF instance"):
        other.begin(record_of(other))
    assert len(hosts.stacks()) == 1
    second.remove()
    other.begin(record_of(other))
    other.remove()
    assert hosts.stacks() == []


def test_a_takeover_that_finds_the_change_ended_leaves_nothing(hosts: Hosts) -> None:
    """The first host deletes its journal while the other creates its own."""
    first, second = hosts.begun(), hosts.journal("second")
    create = hosts.heat.create

    def ends_first(body: Any, **kwargs: Any) -> str:
        first.remove()
        return create(body, **kwargs)

    hosts.world.wait(OPTIONS.lease_seconds)
    second.service = Replaced(hosts.heat, create=ends_first)  # type: ignore[assignment]
    second.take_over()
    assert second.read() is None
    assert hosts.stacks() == []


class KilledError(BaseException):
    """Stands for SIGKILL: no handler of the process runs."""


class Replaced:
    """Heat with some methods replaced."""

    def __init__(self, heat: Heat, **methods: Any) -> None:
        self._heat = heat
        self.__dict__.update(methods)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._heat, name)


def test_what_a_lost_takeover_left_is_no_change_and_goes_with_the_next_one(hosts: Hosts) -> None:
    body = {"template": {"heat_template_version": "2015-04-30", "resources": {}}, "tags": "a=b"}
    hosts.heat.create({"stack_name": f"container-update-{INSTANCE}.0123456789ab", **body})
    journal = hosts.journal("next")
    assert journal.read() is None
    journal.begin(record_of(journal))
    journal.remove()
    assert hosts.stacks() == []


# --- the holder's process -----------------------------------------------------------------------


def dead_process() -> ProcessIdentity:
    program = (
        "from container_update.model.process_identity import ProcessIdentity as P;"
        "print(P.current())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    identity = ProcessIdentity.parse(done.stdout)
    if identity is None:
        pytest.skip("this system has no /proc")
    return identity


@pytest.mark.parametrize("elsewhere", [False, True], ids=["of this host", "of another"])
def test_a_dead_process_of_this_host_loses_its_hold_at_once(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    dead = dead_process()
    if elsewhere:
        dead = ProcessIdentity("another boot", dead.pid_namespace, dead.pid, dead.started)
    with monkeypatch.context() as patch:
        patch.setattr(ProcessIdentity, "current", lambda: dead)
        hosts.begun()
    second = hosts.journal("second")
    if elsewhere:
        with pytest.raises(UpdateInProgressError):
            second.take_over()
        return
    status = StackInstance(hosts.heat, INSTANCE, OPTIONS).status()
    assert status.expired
    second.take_over()
    assert hosts.world.passed == 0
    second.confirm()


def test_the_holder_is_read_from_tags_that_heat_accepts() -> None:
    longest = ProcessIdentity("b" * 36, "pid:[4026531836]", 4194304, "9" * 12)
    now = World().clock().now()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ProcessIdentity, "current", lambda: longest)
        tags = tags_of("0" * 36, now, 60.0).split(",")
    assert max(map(len, tags)) <= 80
    assert StackHolder.of({"tags": tags}) == StackHolder("0" * 36, now, 60.0, longest)


@pytest.mark.parametrize(
    "record",
    [b"", b"x", gzip.compress(b"[]"), gzip.compress(b"{}")],
    ids=["nothing", "no gzip", "a list", "nothing of a record"],
)
def test_a_journal_that_somebody_has_written_is_damaged(
    hosts: Hosts, record: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = hosts.begun()
    journal.service.journal_key = ""  # a host with a key would ask for a signature first
    monkeypatch.setattr(
        journal, "_find", lambda: _StoredJournal([], base64.b64encode(record).decode())
    )
    with pytest.raises(ContainerUpdateError, match=r"^stack .*: the journal is damaged"):
        journal.read()


@pytest.mark.parametrize("seconds", ["3601", "1e9", "inf", "nan", "x"])
def test_a_holder_that_wants_to_be_waited_for_without_an_end_is_refused(seconds: str) -> None:
    tags = [f"seconds={seconds}", "holder=x", "renewed=2020-01-01T00:00:00Z"]
    stack = {"stack_name": "s", "tags": tags}
    with pytest.raises(PlanError, match="stack s, tag seconds: expected a lease of at most 3600"):
        is_free(lambda: stack, World().clock(), CancelToken())


# --- a change ------------------------------------------------------------------------------------


def test_heartbeats_are_sent_while_a_script_runs(vnf: Vnf) -> None:
    vnf.instantiate("server")
    vnf.options = replace(vnf.options, lease_seconds=3)

    def script(_: Call, /) -> None:
        journal = vnf.instance().journal("")
        before = journal.holder()
        until(lambda: journal.holder() != before, seconds=20)

    vnf.change(vnf.package("server", vnf.site.images[1]), coordinate=script)
    assert set(vnf.servers().values()) == {vnf.site.images[1]}


@pytest.mark.parametrize("upgrade_type", [BLUE_GREEN, ROLLING])
def test_a_plan_that_another_change_overtook_is_refused(vnf: Vnf, upgrade_type: str) -> None:
    vnf.instantiate("server")
    sites = zip(vnf.site.images, reversed(vnf.site.flavors), strict=True)
    second, first = (
        vnf.request(vnf.package("server", image, flavor), upgrade_type) for image, flavor in sites
    )
    ended: list[list[str]] = []

    def overtaken(body: Any, **how: Any) -> str:
        if not ended:
            change(second, vnf.heat, vnf.options)
            ended.append(vnf.stacks())
        return vnf.heat.create(body, **how)

    with pytest.raises(UpdateInProgressError, match=r"^stack \S+ changed while the change was "):
        change(first, Replaced(vnf.heat, create=overtaken), vnf.options)  # type: ignore[arg-type]
    assert vnf.stacks() == ended[0]
    assert set(vnf.servers().values()) == {vnf.site.images[0]}
