# SPDX-License-Identifier: Apache-2.0
"""The journal: what goes in comes out, whatever its size, and nothing of it is shown."""

from __future__ import annotations

import base64
import gzip
import hashlib
import itertools
import json
import queue
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from container_update.cluster import keeping
from container_update.cluster.journal import Journal
from container_update.cluster.lease import LeaseLock
from container_update.cluster.operation import Operation, Origin, digest_of
from container_update.cluster.retry import RetryingCluster
from container_update.model.cancellation import CancelToken
from container_update.model.cluster import WatchEvent
from container_update.model.errors import (
    ClusterError,
    ContainerUpdateError,
    LeaseLostError,
    PlanError,
    UpdateInProgressError,
)
from container_update.model.objects import Collection, Json, Manifest, ObjectKey, Source
from container_update.model.operation import Phase, name_of
from container_update.model.plan import Action, Reason
from container_update.model.scripts import ScriptReport
from container_update.planning.steps import ConfigStep, RestartStep
from tests.unit.fakes import FakeCluster, config_map, pod

POD = ObjectKey("", "Pod", "ns", "p")
PLANTED = "pl4nted-v4lue"


def record(size: int = 0) -> Operation:
    """A record with about *size* bytes that do not compress."""
    noise = random.Random(1).randbytes(size).hex()
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "ns"},
        "stringData": {"password": PLANTED, "noise": noise},
    }
    steps = (
        ConfigStep(ObjectKey.of(secret), Action.CREATE, None, secret, reasons=(Reason("is new"),)),
        RestartStep(POD, Action.RECREATE_POD, pod("p"), images={"a": "app:2"}, digest="d"),
    )
    return Operation(
        operation="op-1",
        host="host.1",
        started="2026-01-01T00:00:00+00:00",
        goal="t",
        origin=Origin("update", "ann", "host"),
        steps=steps,
        pods_before={POD: frozenset({"u1", "u2"})},
        instance_id="i",
        def_files=("Files/a.yaml",),
    )


SIZES = pytest.mark.parametrize("size", [0, 1_200_000], ids=["one Secret", "three Secrets"])


def key(number: int = 0) -> ObjectKey:
    return ObjectKey("", "Secret", "ns", "container-update-i" + (f".{number}" if number else ""))


def lease(cluster: FakeCluster, instance_id: str = "i") -> LeaseLock:
    """A lease that is held, by nobody who renews it."""
    retrying = RetryingCluster(cluster, 0.0)
    lock = LeaseLock(retrying, "ns", instance_id, "op-1", "host.1", 60, CancelToken())
    lock._acquire()
    return lock


def written(cluster: FakeCluster, size: int = 0) -> Journal:
    """A journal of a run that goes on."""
    journal = Journal(cluster, "ns", "i", "op-1")
    journal.write(record(size), lease(cluster))
    return journal


def claimed(cluster: FakeCluster, run: str = "op-2") -> Journal:
    """The same journal, as the run has it that goes on instead."""
    journal = Journal(cluster, "ns", "i", run)
    read = journal.read()
    assert read is not None
    journal.claim(read)
    return journal


def secrets(cluster: FakeCluster) -> list[ObjectKey]:
    return sorted(key for key in cluster.objects if key.kind == "Secret")


def test_it_keeps_the_way_of_the_run_and_what_it_has_passed() -> None:
    journal = written(FakeCluster())
    turned = journal.set_phase(record(), Phase.UNDO)
    assert turned.phase is Phase.UNDO
    report = ScriptReport("new", "VDU1", "Scripts/new.py", 0, 1.5, "done")
    passed = journal.note(journal.note(turned, 1, [report]), 2)
    assert (passed.ended_groups, passed.scripts) == (2, (report,))
    assert journal.read() == passed


def test_it_keeps_the_end_of_what_a_script_printed() -> None:
    journal = written(FakeCluster())
    printed = "x" * 10_000 + "the end"
    journal.note(record(), 1, [ScriptReport("new", "VDU1", "new.py", None, 1.5, printed)])
    read = journal.read()
    assert read is not None
    assert len(read.scripts[0].output) == 4096
    assert read.scripts[0].output.endswith("the end")


@pytest.mark.parametrize("claims", [False, True])
def test_what_others_put_into_a_signed_journal_is_never_signed(claims: bool) -> None:
    cluster = FakeCluster()
    cluster.journal_key = "a key of this host"
    journal = written(cluster)
    if claims:
        journal = Journal(cluster, "ns", "i", "op-2")
        assert journal.read() == record()
    head = cluster.objects[journal.key]
    forged = {"phase": b"undo", "groups": b"7", "sha256": b"forged"}
    data = {name: base64.b64encode(value).decode() for name, value in forged.items()}
    cluster.replace({**head, "data": {**head["data"], **data}})
    if claims:
        assert journal.claim(record()) == record()
    passed = journal.note(record(), 1)
    assert journal.read() == passed
    assert passed.ended_groups == 1


@pytest.mark.parametrize(
    "other",
    [{"metadata": {"namespace": "other"}}, {"metadata": {"name": "other"}}, {"type": "other"}],
    ids=["namespace", "name", "type"],
)
def test_a_signature_is_of_one_place(other: Json) -> None:
    """Who copies a signed Secret to another name, or under another type, has none."""
    place = {"namespace": "ns", "name": "journal"}
    signed = keeping.sign({"metadata": place, "type": "t", "data": {"x": "MQ=="}}, "key")
    metadata = {**place, **other.get("metadata", {})}
    assert keeping.is_trusted(signed, "key")
    assert not keeping.is_trusted({**signed, **other, "metadata": metadata}, "key")


def test_a_second_journal_of_one_instance_is_refused() -> None:
    cluster = FakeCluster()
    written(cluster)
    with pytest.raises(
        UpdateInProgressError, match="another update of this VNF instance has begun"
    ):
        Journal(cluster, "ns", "i", "op-2").write(
            replace(record(), operation="op-2"), LeaseLock(
                RetryingCluster(cluster, 0.0), "ns", "j", "op-2", "host.1", 60, CancelToken()
            ).__enter__(),
        )  # fmt: skip


def test_a_damaged_journal_is_told_and_not_followed() -> None:
    cluster = FakeCluster()
    journal = written(cluster, 1_200_000)
    del cluster.objects[key(1)]
    names = "container-update-i container-update-i.1 container-update-i.2"
    by_hand = f"then run kubectl delete secret {names} -n ns --cascade=orphan"
    with pytest.raises(ContainerUpdateError, match=f"part of the journal is missing: .*{by_hand}"):
        journal.read()
    cluster.put(
        {
            **cluster.objects[key(2)],
            "metadata": {**cluster.objects[key(2)]["metadata"], "name": key(1).name},
        }
    )
    with pytest.raises(ContainerUpdateError, match="is damaged"):
        journal.read()


# --- lost answers, refusals ---------------------------------------------------------------------


OURS, THEIRS = {"metadata": {"uid": "ours"}}, {"metadata": {"uid": "theirs"}}


@pytest.mark.parametrize(
    ("events", "first"),
    [
        ([WatchEvent("ADDED", OURS)], True),
        ([WatchEvent("BOOKMARK", {"metadata": {}}), WatchEvent("ADDED", OURS)], True),
        ([WatchEvent("ADDED", OURS), WatchEvent("MODIFIED", OURS)], True),
        ([WatchEvent("ADDED", THEIRS), WatchEvent("ADDED", OURS)], False),
        ([WatchEvent("DELETED", THEIRS), WatchEvent("ADDED", OURS)], False),
        ([WatchEvent("MODIFIED", OURS)], False),
        ([None], False),  # the watch ends
        ([ClusterError("too old", status=410)], False),
        ([ClusterError("may not watch", status=403)], False),
    ],
)
def test_a_journal_is_the_first_one_if_its_creation_is_the_first_event(
    events: list[WatchEvent | ClusterError | None], first: bool
) -> None:
    cluster = FakeCluster()
    reader = Journal(cluster, "ns", "i")
    assert reader.read() is None
    journal = Journal(cluster, "ns", "i", "op-1")
    collection = Collection("", "Secret", "ns", "metadata.name=container-update-i")
    waiting = cluster.watches.setdefault(collection, queue.Queue())

    is_first = journal.first_since(reader.read_at)

    def confirm() -> None:
        journal._written["metadata"]["uid"] = "ours"
        for event in events:
            waiting.put(event)
        assert is_first() is first
        raise UpdateInProgressError("not to become a journal")

    with pytest.raises(UpdateInProgressError):
        journal.write(record(), lease(cluster), confirm)
    assert cluster.watched_from == [(collection, "100")]


@SIZES
def test_a_record_that_is_not_confirmed_leaves_nothing(size: int) -> None:
    cluster = FakeCluster()

    def confirm() -> None:
        raise UpdateInProgressError("another one was faster")

    journal = Journal(cluster, "ns", "i", "op-1")
    with pytest.raises(UpdateInProgressError, match="faster"):
        journal.write(record(size), lease(cluster), confirm)
    assert secrets(cluster) == []


def test_a_record_that_another_run_wrote_before_it_was_a_journal_is_lost() -> None:
    cluster = FakeCluster()

    def confirm() -> None:
        head = cluster.get(key())
        assert head is not None
        cluster.put({**head, "data": {**head["data"], "run": base64.b64encode(b"op-2").decode()}})

    with pytest.raises(LeaseLostError, match="another run's"):
        Journal(cluster, "ns", "i", "op-1").write(record(), lease(cluster), confirm)


@pytest.mark.parametrize("status", [403, 500])
def test_an_account_that_may_not_list_secrets_reads_the_journal_by_its_name(status: int) -> None:
    cluster = FakeCluster()
    written(cluster)

    def refuse(verb: str, _: ObjectKey) -> None:
        if verb == "list":
            raise ClusterError("refused", status=status)

    cluster.hooks.append(refuse)
    reader = Journal(cluster, "ns", "i")
    if status == 403:
        assert reader.read() == record()
    else:
        with pytest.raises(ClusterError, match="refused"):
            reader.read()
    assert reader.read_at == ""


def test_a_conflict_with_what_somebody_else_does_to_the_object_is_none() -> None:
    """A label by an operator, or a 409 without a cause."""
    cluster = FakeCluster()
    journal = written(cluster)
    labelled = cluster.objects[key()]
    labelled["metadata"]["labels"]["team"] = "core"
    cluster.put(labelled)
    assert journal.set_phase(record(), Phase.UNDO).phase is Phase.UNDO
    assert journal.read() == replace(record(), phase=Phase.UNDO)
    assert cluster.objects[key()]["metadata"]["labels"]["team"] == "core"
    cluster.put(cluster.objects[key()])
    journal.remove()
    assert not secrets(cluster)


# --- what a run that died leaves ----------------------------------------------------------------


class DiedError(Exception):
    """The process ended here."""


def die_before(cluster: FakeCluster, nth: int) -> Iterator[int]:
    """Have the run end before its nth write from now on; return what counts the writes."""
    writes = itertools.count(1)

    def die(verb: str, called: ObjectKey) -> None:
        if verb in ("create", "replace", "delete") and next(writes) == nth:
            raise DiedError

    cluster.hooks.append(die)
    return writes


def dies(cluster: FakeCluster, nth: int, size: int = 1_200_000) -> None:
    """Have a run end before its nth write of the journal."""
    held = lease(cluster)
    die_before(cluster, nth)
    with pytest.raises(DiedError):
        Journal(cluster, "ns", "i", "op-1").write(record(size), held)
    cluster.hooks.clear()
    cluster.objects.pop(held.key)


@pytest.mark.parametrize(
    ("nth", "names"),
    [
        (2, [key()]),
        (3, [key(), key(1)]),
        (4, [key(), key(1), key(2)]),
    ],
    ids=["after the head", "after part 1", "after part 2"],
)
def test_what_was_never_complete_is_no_journal_and_is_found_and_removed(
    nth: int, names: list[ObjectKey]
) -> None:
    cluster = FakeCluster()
    dies(cluster, nth)
    journal = Journal(cluster, "ns", "i")
    assert journal.read() is None
    assert list(journal.leftovers()) == names == secrets(cluster)
    journal.clear()
    assert not secrets(cluster)
    assert journal.leftovers() == ()


def garbage(cluster: FakeCluster) -> list[ObjectKey]:
    """Return what the garbage collector deletes: what belongs to something that is gone."""
    uids = {body["metadata"]["uid"] for body in cluster.objects.values()}
    return [
        key
        for key, body in cluster.objects.items()
        for owner in body["metadata"].get("ownerReferences") or ()
        if owner["uid"] not in uids
    ]


@pytest.mark.parametrize(
    ("status", "times", "is_cleared"), [(409, 4, True), (409, 5, False), (403, 1, False)]
)
def test_the_removal_of_a_leftover_is_tried_again_where_it_was_written_meanwhile(
    status: int, times: int, is_cleared: bool
) -> None:
    cluster = FakeCluster()
    dies(cluster, 2)
    left = iter(range(times))

    def refuse(verb: str, called: ObjectKey) -> None:
        if verb == "delete" and next(left, None) is not None:
            raise ClusterError("not now", status=status)

    cluster.hooks.append(refuse)
    if not is_cleared:
        with pytest.raises(ClusterError, match="not now"):
            Journal(cluster, "ns", "i").clear()
        assert next(left, None) is None
        return
    Journal(cluster, "ns", "i").clear()
    assert not secrets(cluster)


def test_a_write_that_is_refused_is_no_loss_of_the_journal() -> None:
    cluster = FakeCluster()
    journal = written(cluster)
    refusal = ClusterError("you may not", status=403)
    cluster.hooks.append(lambda verb, _: raise_(refusal) if verb == "replace" else None)
    with pytest.raises(ClusterError, match="you may not"):
        journal.set_phase(record(), Phase.UNDO)
    assert len([call for call in cluster.calls if call == f"replace {key()}"]) == 2, "not again"


def raise_(error: Exception) -> None:
    raise error


def test_a_complete_journal_is_not_taken_for_a_leftover() -> None:
    cluster = FakeCluster()
    journal = written(cluster, 1_200_000)
    assert journal.leftovers() == ()
    journal.clear()
    assert journal.read() == record(1_200_000)


def test_a_part_elsewhere_without_a_head_is_replaced_by_the_next_journal() -> None:
    """Its head was deleted by hand: nothing else names it."""
    cluster = FakeCluster()
    held = lease(cluster)
    Journal(cluster, "ns", "i", "op-1").write(record_of_two_namespaces(), held)
    del cluster.objects[key()]
    again = Journal(cluster, "ns", "i", "op-2")
    again.write(record_of_two_namespaces(100), held)
    assert again.read() == record_of_two_namespaces(100)


def refuse_deletion(cluster: FakeCluster, number: int) -> None:
    def refuse(verb: str, called: ObjectKey) -> None:
        if (verb, called) == ("delete", key(number)):
            raise ClusterError("you may not", status=403)

    cluster.hooks.append(refuse)


@pytest.mark.parametrize("number", [0, 1, 2], ids=["the head", "part 1", "part 2"])
def test_a_removal_that_was_refused_is_told_and_can_be_made_up_for(number: int) -> None:
    cluster = FakeCluster()
    journal = written(cluster, 1_200_000)
    refuse_deletion(cluster, number)
    with pytest.raises(ClusterError, match="you may not"):
        journal.remove()
    assert cluster.calls.count(f"delete {key(number)}") == 1, "asking again does not help"
    cluster.hooks.clear()
    assert journal.owner["name"] == key().name
    journal.remove()
    assert not secrets(cluster)


def labelled(cluster: FakeCluster) -> None:
    head = cluster.objects[key()]
    cluster.put({**head, "metadata": {**head["metadata"], "labels": {"theirs": "x"}}})


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(labelled, id="was labelled"),
        pytest.param(lambda cluster: cluster.objects.pop(key()), id="was deleted"),
    ],
)
def test_it_is_removed_although_its_head_changes_just_then(
    change: Callable[[FakeCluster], object],
) -> None:
    cluster = FakeCluster()
    journal = written(cluster, 1_200_000)

    def conflict(verb: str, called: ObjectKey) -> None:
        if (verb, called) == ("delete", key()):
            cluster.hooks.clear()
            change(cluster)
            raise ClusterError("the version does not match", status=409)

    cluster.hooks.append(conflict)
    journal.remove()
    assert [each for each in secrets(cluster) if each not in garbage(cluster)] == []


def test_its_head_is_removed_first_so_that_no_half_journal_is_ever_read() -> None:
    cluster = FakeCluster()
    journal = written(cluster, 1_200_000)

    def die(verb: str, called: ObjectKey) -> None:
        if verb == "delete" and called != key():
            raise DiedError

    cluster.hooks.append(die)
    with pytest.raises(DiedError):
        journal.remove()
    cluster.hooks.clear()
    assert journal.read() is None
    assert set(secrets(cluster)) == set(garbage(cluster)) == {key(1), key(2)}


# --- Secrets of other namespaces ----------------------------------------------------------------


def record_of_two_namespaces(size: int = 0) -> Operation:
    """A record with a Secret of another namespace, and a ConfigMap named as that is."""
    (here, *more) = record(size).steps
    assert isinstance(here, ConfigStep)
    content = {**here.content, "metadata": {"name": "s", "namespace": "other"}}
    there = replace(here, key=ObjectKey("", "Secret", "other", "s"), content=content)
    named_alike = config_map("other", {})
    beside = ConfigStep(ObjectKey.of(named_alike), Action.CREATE, None, named_alike)
    return replace(record(), steps=(there, beside, *more))


def other(number: int) -> ObjectKey:
    return ObjectKey("", "Secret", "other", f"container-update-i.of.ns.{number}")


@SIZES
def test_what_it_holds_of_another_namespaces_secrets_stays_there(size: int) -> None:
    cluster = FakeCluster()
    journal = Journal(cluster, "ns", "i", "op-1")
    journal.write(record_of_two_namespaces(size), lease(cluster))
    head = cluster.objects[key()]
    assert PLANTED.encode() not in gzip.decompress(base64.b64decode(head["data"]["content"]))
    there = [other(number) for number in range(1, 2 if size == 0 else 3)]
    assert secrets(cluster) == sorted([key(), *there])
    content = b"".join(base64.b64decode(cluster.objects[k]["data"]["part"]) for k in there)
    assert PLANTED.encode() in gzip.decompress(content)
    assert garbage(cluster) == []
    assert journal.read() == record_of_two_namespaces(size)
    journal.remove()
    assert not secrets(cluster)


@pytest.mark.parametrize("nth", range(1, 7))
def test_wherever_its_run_dies_nothing_stays_in_another_namespace(nth: int) -> None:
    """Head, part there, head complete; head ended, part there removed, head removed."""
    cluster = FakeCluster()
    held = lease(cluster)
    writes = die_before(cluster, nth)
    journal = Journal(cluster, "ns", "i", "op-1")
    with suppress(DiedError):
        journal.write(record_of_two_namespaces(), held)
        journal.remove()
    assert next(writes) > nth
    cluster.hooks.clear()
    again = Journal(cluster, "ns", "i", "op-2")
    if (read := again.read()) is not None:
        assert read == record_of_two_namespaces()
        again.claim(read)
        again.remove()
    again.write(record(), held)
    assert secrets(cluster) == [key()]


# --- another run has it -------------------------------------------------------------------------

WRITES: dict[str, Callable[[Journal], object]] = {
    "phase": lambda journal: journal.set_phase(record(), Phase.UNDO),
    "ended groups": lambda journal: journal.note(record(), 1),
    "removal": lambda journal: journal.remove(),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_nothing_is_written_to_a_journal_that_another_run_has_claimed(
    write: Callable[[Journal], object],
) -> None:
    cluster = FakeCluster()
    first = written(cluster)
    second = claimed(cluster)
    before = cluster.objects[key()]
    with pytest.raises(LeaseLostError, match=r"its journal, is another run's by now"):
        write(first)
    assert cluster.objects[key()] == before
    second.remove()


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_nothing_is_written_to_a_later_journal_of_the_same_name(
    write: Callable[[Journal], object],
) -> None:
    cluster = FakeCluster()
    first = written(cluster)
    claimed(cluster).remove()
    cluster.objects.pop(ObjectKey("coordination.k8s.io", "Lease", "ns", "container-update-i"))
    written(cluster)
    before = cluster.objects[key()]
    with pytest.raises(LeaseLostError):
        write(first)
    assert cluster.objects[key()] == before


def test_a_late_write_of_the_run_before_does_not_stop_the_run_that_claims_it() -> None:
    cluster = FakeCluster()
    first, second = written(cluster), Journal(cluster, "ns", "i", "op-2")
    read = second.read()
    assert read is not None
    first.set_phase(record(), Phase.UNDO)
    assert second.claim(read) == replace(record(), phase=Phase.UNDO)
    with pytest.raises(LeaseLostError):
        first.remove()
    second.remove()


@pytest.mark.parametrize(("late_writes", "is_claimed"), [(4, True), (5, False)])
def test_a_claim_is_given_up_when_late_writes_do_not_end(
    late_writes: int, is_claimed: bool
) -> None:
    cluster = FakeCluster()
    first, second = written(cluster), Journal(cluster, "ns", "i", "op-2")
    read, numbers = second.read(), iter(range(late_writes))
    assert read is not None

    def write_before(verb: str, called: ObjectKey) -> None:
        if (verb, called) == ("replace", key()) and (number := next(numbers, None)) is not None:
            cluster.hooks.clear()
            first.note(read, number + 1)
            cluster.hooks.append(write_before)

    cluster.hooks.append(write_before)
    if is_claimed:
        assert second.claim(read) == replace(read, ended_groups=4)
        return
    with pytest.raises(ClusterError, match="has been modified"):
        second.claim(read)


def test_a_journal_that_a_late_removal_ends_before_it_is_claimed_is_not_there() -> None:
    cluster = FakeCluster()
    first, second = written(cluster), Journal(cluster, "ns", "i", "op-2")
    read = second.read()
    assert read is not None
    first.remove()
    assert second.claim(read) is None


def test_a_head_that_arrives_after_its_lease_is_gone_is_garbage() -> None:
    cluster = FakeCluster()
    dies(cluster, 2, size=0)
    assert garbage(cluster) == [key()]


def test_its_summary_names_objects_and_shows_no_content() -> None:
    text = record().summary()
    assert "Secret ns/s: create" in text
    assert "Pod ns/p: recreate pod" in text
    assert PLANTED not in text


@pytest.mark.parametrize(
    ("instance_id", "name"),
    [
        (None, "container-update"),
        ("5d1b2a6c-0f0e", "container-update-5d1b2a6c-0f0e"),
    ],
)
def test_an_instance_id_that_is_a_name_is_used_as_it_is(instance_id: str, name: str) -> None:
    assert name_of(instance_id) == name


def test_other_instance_ids_become_names_that_do_not_meet() -> None:
    names = {name_of("My VNF"), name_of("my_vnf"), name_of("my-vnf"), name_of("x" * 300)}
    assert len(names) == 4
    assert all(len(name) <= 253 and name == name.lower() for name in names)


def test_a_goal_does_not_depend_on_the_order_of_files_nor_on_the_version() -> None:
    """A run that was interrupted under an earlier version is finished: its goal is this one."""
    one, two = (
        Manifest(ObjectKey.of(body), body, Source("f", 1))
        for body in (config_map("a", {"k": "v"}), config_map("b", {"k": "v"}))
    )
    assert digest_of([one, two]) == digest_of([two, one])
    assert digest_of([one]) != digest_of([two])
    text = json.dumps([[str(each.key), each.body] for each in (one, two)], sort_keys=True)
    assert digest_of([one, two]) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("place", "bound", "told"),
    [
        ("container_update.model.packing.MAX_BYTES", 100, "at most 100 bytes of what is needed"),
        ("container_update.cluster.keeping.MAX_PARTS", 1, "a journal of at most 1 parts, found 2"),
    ],
)
def test_one_that_nobody_would_read_is_not_written(
    place: str, bound: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = FakeCluster()
    monkeypatch.setattr(place, bound)
    with pytest.raises(PlanError, match=told):
        written(cluster, 1_200_000)
    assert not any(key.kind == "Secret" for key in cluster.objects)
