# SPDX-License-Identifier: Apache-2.0
"""The form in which an operation that has ended is kept, and what is not kept of it."""

from __future__ import annotations

import base64
import json
import random
from dataclasses import replace

import pytest

from container_update.cluster.history import revision as revisions
from container_update.cluster.history.revision import InstanceRecord, Origin, Result, Revision
from container_update.cluster.history.store import HistoryWriter
from container_update.cluster.retry import RetryingCluster
from container_update.model.errors import ClusterError
from container_update.model.objects import Json, Manifest, ObjectKey, Source
from container_update.model.packing import DAMAGED
from container_update.model.plan import Action, Plan
from container_update.model.requests import PackageIdentity
from container_update.planning.steps import ConfigStep
from tests.unit.fakes import FakeCluster

PACKAGES = tuple(PackageIdentity(f"{v}.zip", "upf", v, v * 32) for v in ("12", "13"))


def config(kind: str, namespace: str, old: str, new: str) -> ConfigStep:
    key = ObjectKey("", kind, namespace, "config")
    before, after = (body(kind, namespace, text) for text in (old, new))
    return ConfigStep(key, Action.REPLACE, before, after)


def body(kind: str, namespace: str, text: str) -> Json:
    value = base64.b64encode(text.encode()).decode() if kind == "Secret" else text
    metadata = {"name": "config", "namespace": namespace, "uid": "u"}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": {"key": value}}


def revision(*steps: ConfigStep) -> Revision:
    origin = Origin("update", "ann", "host", PACKAGES)
    times = ("2026-11-23T10:00:00+00:00", "2026-11-23T10:00:05+00:00")
    objects = tuple(step.key for step in steps)
    return Revision(
        3, "op", origin, *times, 5.0, Result.DONE, len(steps), steps=steps, objects=objects
    )


def test_it_is_read_as_it_was_written() -> None:
    kept = revision(config("ConfigMap", "ns", "old", "new"))
    assert revisions.decode(revisions.encode(kept, "ns").head) == kept


def test_of_what_is_not_kept_the_summary_remains() -> None:
    told = replace(revision(config("ConfigMap", "ns", "old", "new")), is_kept=False)
    encoded = revisions.encode(told, "ns")
    assert not encoded.has_way_back
    assert revisions.decode(encoded.head) == replace(told, steps=(), objects=())


def test_what_is_too_large_for_a_secret_is_kept_in_parts() -> None:
    noise = random.Random(1).randbytes(1_200_000).hex()
    kept = replace(revision(config("ConfigMap", "ns", noise, "new")), instance=b"i" * 800_000)
    encoded = revisions.encode(kept, "ns")
    whole = {name: b"".join(parts) for name, parts in encoded.parts.items()}
    assert encoded.has_way_back
    assert revisions.part_numbers(encoded.head) == {"content": 2, "instance": 2}
    assert max(len(part) for parts in encoded.parts.values() for part in parts) < 1_000_000
    assert sum(map(len, encoded.head.values())) < 1_000_000
    assert revisions.decode({**encoded.head, **whole}) == kept
    assert revisions.is_part("content", whole["content"], encoded.head)
    assert not revisions.is_part("content", whole["instance"], encoded.head)


def test_without_its_parts_it_has_no_way_back() -> None:
    noise = random.Random(1).randbytes(1_200_000).hex()
    encoded = revisions.encode(revision(config("ConfigMap", "ns", noise, "new")), "ns")
    read = revisions.decode(encoded.head)
    assert (read.is_kept, read.steps, read.can_be_undone) == (False, (), False)
    assert read.origin.packages == PACKAGES


def test_what_is_too_large_for_all_parts_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revisions, "MAX_PARTS", 2)
    noise = random.Random(1).randbytes(1_200_000).hex()
    kept = replace(revision(config("ConfigMap", "ns", noise, "new")), instance=b"i" * 800_000)
    encoded = revisions.encode(kept, "ns")
    assert not encoded.has_way_back
    assert revisions.decode(encoded.head).is_kept is False
    assert encoded.head["instance"] == kept.instance


@pytest.mark.parametrize(
    ("kind", "namespace", "places"),
    [("Secret", "ns", []), ("ConfigMap", "other", ["other"]), ("Secret", "other", ["other"])],
)
def test_what_an_object_of_another_namespace_held_is_kept_there(
    kind: str, namespace: str, places: list[str]
) -> None:
    kept = revision(config("ConfigMap", "ns", "a", "b"), config(kind, namespace, "old", "new"))
    encoded = revisions.encode(kept, "ns")
    whole = {name: b"".join(parts) for name, parts in encoded.parts.items()}
    assert list(map(revisions.place_of, encoded.parts)) == places
    assert revisions.decode(encoded.head).is_kept is (not places)
    read = revisions.decode({**encoded.head, **whole})
    assert [step.before for step in read.steps] == [step.before for step in kept.steps]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: {**data, "content": b"no gzip"}, "damaged"),
        (lambda data: {"summary": data["summary"]}, "damaged"),
        (lambda data: {"content": data["content"]}, "damaged"),
        (lambda data: {**data, "summary": with_(data["summary"], format=99)}, "has format 99"),
    ],
)
def test_what_cannot_be_read_is_an_error_that_says_why(damage, words) -> None:
    data = revisions.encode(revision(config("ConfigMap", "ns", "old", "new")), "ns").head
    with pytest.raises(ValueError, match=words):
        revisions.decode(damage(data))


def with_(summary: bytes, **values: object) -> bytes:
    return json.dumps({**json.loads(summary), **values}).encode()


@pytest.mark.parametrize(
    "parts",
    [
        {"other": 1},
        {"content/../x": 1},
        {"instance/other": 1},
        {"content": 1_000},
        {"content": -9, "instance": 109},
        {"content": 0},
        {"content": "x"},
        3,
    ],
)
def test_parts_that_somebody_else_has_named_are_not_read(parts: object) -> None:
    data = revisions.encode(revision(config("ConfigMap", "ns", "old", "new")), "ns").head
    damaged = {**data, "summary": with_(data["summary"], parts=parts)}
    with pytest.raises(DAMAGED):
        revisions.part_numbers(damaged)


@pytest.mark.parametrize(
    ("kind", "result", "can_be_undone"),
    [
        ("update", Result.DONE, True),
        ("Blue-Green", Result.DONE, True),
        ("update", Result.UNDONE, False),
        ("install", Result.DONE, False),
    ],
)
def test_what_was_finished_can_be_undone_but_an_installation(
    kind: str, result: Result, can_be_undone: bool
) -> None:
    done = revision(config("ConfigMap", "ns", "old", "new"))
    one = replace(done, origin=replace(done.origin, kind=kind), result=result)
    assert one.can_be_undone is can_be_undone


def test_an_origin_keeps_what_was_said_of_scripts() -> None:
    done = revision(config("ConfigMap", "ns", "old", "new"))
    told = {"lcm-operation-coordinate-new-vnf": "Scripts/new.py"}
    origin = replace(done.origin, scripts=told)
    data = revisions.encode(replace(done, origin=origin), "ns").head
    assert revisions.decode(data).origin.scripts == told


@pytest.mark.parametrize(("status", "tries"), [(403, 1), (409, 3)])
def test_a_revision_gets_another_number_only_where_its_own_is_taken(
    status: int, tries: int
) -> None:
    cluster = FakeCluster()

    def refuse(verb: str, key: ObjectKey) -> None:
        if verb == "create":
            raise ClusterError("refused", status=status)

    cluster.hooks.append(refuse)
    history = HistoryWriter(RetryingCluster(cluster, 1.0), "ns", "i")
    assert history.keep(revision(config("ConfigMap", "ns", "old", "new")), 5) is None
    assert sum(call.startswith("create ") for call in cluster.calls) == tries


def test_an_instance_runs_from_its_manifests_whatever_their_objects_are_called() -> None:
    key, content = ObjectKey("", "ConfigMap", "ns", "other"), body("ConfigMap", "ns", "text")
    plan = Plan("ns", "i", (), manifests=(Manifest(key, content, Source("a.yaml", 1)),))
    record = InstanceRecord.of(plan, {})
    assert [each.key.name for each in record.manifests] == ["config"]
