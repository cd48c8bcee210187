"""The journal: what goes in comes out, whatever its size, and nothing of it is shown."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from container_update.cluster import journal as journal_module
from container_update.cluster.journal import Journal, Record, decode, encode
from container_update.model.errors import ContainerUpdateError, UpdateInProgressError
from container_update.model.objects import Manifest, ObjectKey, Source
from container_update.model.operation import Phase, name_of
from container_update.model.plan import Action, Reason
from container_update.planning.steps import ConfigStep, RestartStep
from tests.unit.fakes import FakeCluster, config_map, pod

POD = ObjectKey("", "Pod", "ns", "p")
PLANTED = "pl4nted-v4lue"


def record(size: int = 0) -> Record:
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
    return Record(
        operation="op-1",
        host="host.1",
        started="2026-01-01T00:00:00+00:00",
        goal="t",
        steps=steps,
        pods_before={POD: frozenset({"u1", "u2"})},
        instance_id="i",
        def_files=("Files/a.yaml",),
    )


def test_what_goes_in_comes_out() -> None:
    assert decode(encode(record()), Phase.UNDO) == replace(record(), phase=Phase.UNDO)


@pytest.mark.parametrize("size", [0, 1_500_000], ids=["one Secret", "several Secrets"])
def test_it_is_kept_in_the_cluster_and_removed_without_a_trace(size: int) -> None:
    cluster = FakeCluster()
    journal = Journal(cluster, "ns", "i")
    journal.write(record(size))
    assert len(cluster.objects) == (1 if size == 0 else 3)
    for body in cluster.objects.values():
        assert sum(len(value) for value in body["data"].values()) < 1_048_576
    assert journal.read() == record(size)
    journal.remove(record(size))
    assert not cluster.objects
    assert journal.read() is None


def test_the_way_can_be_turned() -> None:
    journal = Journal(FakeCluster(), "ns", "i")
    journal.write(record())
    turned = journal.set_phase(record(), Phase.UNDO)
    assert turned.phase is Phase.UNDO
    assert journal.read() == turned


def test_a_second_journal_of_one_instance_is_refused() -> None:
    journal = Journal(FakeCluster(), "ns", "i")
    journal.write(record())
    with pytest.raises(
        UpdateInProgressError, match="another update of this VNF instance has begun"
    ):
        journal.write(replace(record(), operation="op-2"))
    journal.write(record())  # its own, at the second try


def test_journals_of_two_instances_do_not_meet() -> None:
    cluster = FakeCluster()
    Journal(cluster, "ns", "i").write(record())
    assert Journal(cluster, "ns", "j").read() is None


def test_a_damaged_journal_is_told_and_not_followed() -> None:
    cluster = FakeCluster()
    journal = Journal(cluster, "ns", "i")
    journal.write(record(1_500_000))
    del cluster.objects[ObjectKey("", "Secret", "ns", "container-update-i.1")]
    with pytest.raises(ContainerUpdateError, match="this part of the journal is missing"):
        journal.read()
    head = cluster.objects[ObjectKey("", "Secret", "ns", "container-update-i")]
    head["data"]["parts"] = "MQ=="
    with pytest.raises(ContainerUpdateError, match="is damaged"):
        journal.read()


def test_a_journal_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "_FORMAT", 99)
    data = encode(record())
    monkeypatch.undo()
    with pytest.raises(ContainerUpdateError, match="has format 99"):
        decode(data, Phase.UPDATE)


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


def test_a_target_does_not_depend_on_the_order_of_files() -> None:
    one, two = (
        Manifest(ObjectKey.of(body), body, Source("f", 1))
        for body in (config_map("a", {"k": "v"}), config_map("b", {"k": "v"}))
    )
    assert journal_module.goal_of([one, two]) == journal_module.goal_of([two, one])
    assert journal_module.goal_of([one]) != journal_module.goal_of([two])
