# SPDX-License-Identifier: Apache-2.0
"""Journals and revisions that another client wrote are errors that name them, and cost nothing."""

from __future__ import annotations

import base64
import gzip
import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from container_update.cluster.history import revision as revisions
from container_update.cluster.history.store import History
from container_update.cluster.journal import Journal
from container_update.cluster.keeping import digest
from container_update.model.errors import ContainerUpdateError, PlanError
from container_update.model.objects import Json, ObjectKey
from container_update.model.packing import MAX_BYTES
from tests import packed
from tests.unit.fakes import FakeCluster

KEY = ObjectKey("", "Secret", "ns", "container-update-i")
STEP: Json = {
    "type": "config",
    "key": {"group": "", "kind": "ConfigMap", "namespace": "ns", "name": "cm"},
    "action": "CREATE",
    "reasons": [],
    "images": {},
    "before": None,
    "content": {"metadata": {"name": "cm"}},
    "removed": [],
}
RECORD: Json = {
    "format": 4,
    "operation": "op-1",
    "host": "host.1",
    "started": "2026-01-01T00:00:00+00:00",
    "target": "goal",
    "instanceId": "i",
    "defFiles": [],
    "steps": [STEP],
    "context": {},
    "podsBefore": [],
    "origin": None,
    "objects": [],
}


def secret(name: str, kind: str, data: dict[str, bytes]) -> Json:
    content = {each: base64.b64encode(value).decode() for each, value in data.items()}
    metadata = {"name": name, "namespace": "ns", "uid": "u", "resourceVersion": "1"}
    body: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
    return {**body, "type": f"container-update/{kind}", "data": content}


def journal_of(part: bytes, **head: Any) -> Journal:
    """Return the journal of a cluster in which somebody wrote this one."""
    values = {"parts": json.dumps({"ns": 1}), "phase": "update", "operation": "op-1", "run": "r"}
    data = {name: str(value).encode() for name, value in {**values, **head}.items()}
    cluster = FakeCluster()
    sha256 = digest({"ns": part}).encode()
    cluster.put(secret(KEY.name, "journal", {"sha256": sha256, **data, "part": part}))
    return Journal(cluster, "ns", "i", "run")


def compressed(**changes: Any) -> bytes:
    return gzip.compress(json.dumps({**RECORD, **changes}).encode())


def test_the_journal_that_the_others_are_made_of_is_a_right_one() -> None:
    record = journal_of(compressed()).read()
    assert record is not None
    assert [str(step.key) for step in record.steps] == ["ConfigMap ns/cm"]


def with_key(**changes: Any) -> bytes:
    return compressed(steps=[{**STEP, "key": {**STEP["key"], **changes}}])


PARTS: dict[str, bytes] = {
    "no gzip": b"x",
    "nothing": b"",
    "gzip that is cut off": compressed()[:40],
    "gzip with an error": compressed()[:40] + b"xx" + compressed()[42:],
    "no JSON": gzip.compress(b"{"),
    "no UTF-8": gzip.compress(b"\xff"),
    "depth": gzip.compress(b"[" * 100_000),
    "a list": gzip.compress(b"[]"),
    **{f"without {name}": compressed(**{name: None}) for name in RECORD if name not in
       ("origin", "instanceId")},
    "a number as host": compressed(host=5),
    "a host that controls a terminal": compressed(host="\x1b]0;x\x07"),
    "no time": compressed(started="yesterday"),
    "a time without a zone": compressed(started="2026-01-01T00:00:00"),
    "a list as id": compressed(instanceId=[]),
    "numbers as files": compressed(defFiles=[5]),
    "a text as steps": compressed(steps="x"),
    "a step that is none": compressed(steps=[5]),
    "a step of another type": compressed(steps=[{**STEP, "type": "other"}]),
    "a step that is elsewhere": compressed(steps=[{"elsewhere": "other"}]),
    "a step with more": compressed(steps=[{**STEP, "more": 1}]),
    "a name that leads elsewhere": with_key(name="../secrets/x"),
    "a namespace that leads elsewhere": with_key(namespace=".."),
    "a query as name": with_key(name="x?y"),
    "a name that controls a terminal": with_key(name="\x1b[2J"),
    "a number as name": with_key(name=5),
    "a key with more": with_key(more=1),
    "pods of nothing": compressed(podsBefore=[5]),
    "an origin that is none": compressed(origin=[1]),
    "an origin with more": compressed(origin={"kind": "x", "more": 1}),
    "an object that is none": compressed(objects=[{}]),
}  # fmt: skip


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_a_journal_with_another_content_is_damaged(part: bytes) -> None:
    journal = journal_of(part)
    with pytest.raises(ContainerUpdateError, match=f"^{KEY}: the journal is damaged: correct the"):
        journal.read()


HEADS = {
    "millions of parts": {"parts": '{"ns": 3000000}'},
    "more parts than there may be": {"parts": '{"ns": 101}'},
    "no part": {"parts": '{"ns": 0}'},
    "fewer than none": {"parts": '{"ns": -1}'},
    "half a part": {"parts": '{"ns": 0.5}'},
    "true": {"parts": '{"ns": true}'},
    "a text": {"parts": '{"ns": "1"}'},
    "parts elsewhere alone": {"parts": '{"other": 1}'},
    "a namespace that leads elsewhere": {"parts": '{"ns": 1, "../x": 1}'},
    "many namespaces": {"parts": json.dumps({"ns": 1} | {f"n{n}": 1 for n in range(100)})},
    "a list": {"parts": "[1]"},
    "depth": {"parts": "[" * 100_000},
    "another phase": {"phase": "sideways"},
    "another digest": {"sha256": "x"},
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
@pytest.mark.parametrize("ask", [Journal.read, Journal.clear, Journal.leftovers])
def test_a_journal_with_another_head_costs_few_requests(
    head: dict[str, str], ask: Callable[[Journal], object]
) -> None:
    journal = journal_of(compressed(), **head)
    if ask is Journal.read:
        with pytest.raises(ContainerUpdateError, match=f"^{KEY}: the journal is damaged"):
            ask(journal)
    else:
        assert not ask(journal)
    assert isinstance(journal.cluster, FakeCluster)
    assert journal.cluster.requests <= 2


def test_of_what_somebody_left_of_a_journal_no_more_is_read_than_there_may_be() -> None:
    journal = Journal(cluster := FakeCluster(), "ns", "i", "run")
    for number in range(1, 300):
        cluster.put(secret(f"{KEY.name}.{number}", "journal", {}))
    assert len(journal.leftovers()) < 100


@pytest.mark.parametrize(
    "read",
    [
        lambda part: journal_of(part).read(),
        lambda part: revisions.decode(revision(content=part)),
    ],
    ids=["journal", "revision"],
)
def test_a_few_bytes_do_not_take_all_memory(read: Callable[[bytes], object]) -> None:
    part = packed.without_end(b"[", b" " * MAX_BYTES, 10)
    tracemalloc.start()
    try:
        with pytest.raises((ContainerUpdateError, ValueError), match="damaged"):
            read(part)
        assert tracemalloc.get_traced_memory()[1] < 4 * MAX_BYTES
    finally:
        tracemalloc.stop()


SUMMARY: Json = {
    "format": 1,
    "number": 1,
    "operation": "op-1",
    "origin": {"kind": "update", "user": "u", "host": "h", "packages": []},
    "started": "2026-01-01T00:00:00+00:00",
    "ended": "2026-01-01T00:00:05+00:00",
    "seconds": 5.0,
    "result": "done",
    "changes": 1,
    "cause": "",
    "isKept": True,
}
CONTENT: Json = {"steps": [STEP], "objects": [], "defFiles": []}


def revision(content: bytes | None = None, **changes: Any) -> dict[str, bytes]:
    made = gzip.compress(json.dumps(CONTENT).encode()) if content is None else content
    return {"summary": json.dumps({**SUMMARY, **changes}).encode(), "content": made}


def content_with(**changes: Any) -> dict[str, bytes]:
    return revision(gzip.compress(json.dumps({**CONTENT, **changes}).encode()))


REVISIONS: dict[str, dict[str, bytes]] = {
    **{f"without {name}": revision(**{name: None}) for name in SUMMARY if name != "isKept"},
    "no JSON": {"summary": b"{"},
    "depth": {"summary": b"[" * 100_000},
    "a list": {"summary": b"[]"},
    "no gzip": revision(b"x"),
    "gzip with an error": revision(gzip.compress(b"{}")[:12] + b"xxxx"),
    "a deep content": revision(gzip.compress(b"[" * 100_000)),
    "a content that is a list": revision(gzip.compress(b"[]")),
    "a number that controls a terminal": revision(number="1\x1b"),
    "no time": revision(ended="then"),
    "a list as operation": revision(operation=[]),
    "a list as cause": revision(cause=["x"]),
    "a number as user": revision(origin={**SUMMARY["origin"], "user": 5}),
    "packages that are none": revision(origin={**SUMMARY["origin"], "packages": [{}]}),
    "steps that are none": content_with(steps=[[]]),
    "a name that leads elsewhere": content_with(objects=[{**STEP["key"], "name": "a/b"}]),
    "numbers as files": content_with(defFiles=[1]),
}


@pytest.mark.parametrize("data", REVISIONS.values(), ids=REVISIONS)
def test_a_revision_with_another_content_is_left_out(
    data: dict[str, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    cluster = FakeCluster()
    cluster.put(secret("container-update-i.v1", "revision", revision()))
    cluster.put(secret("container-update-i.v2", "revision", data))
    (read,) = History(cluster, "ns", "i").read()
    assert read.number == 1
    assert "Secret ns/container-update-i.v2 " in caplog.text


@pytest.mark.parametrize("data", REVISIONS.values(), ids=REVISIONS)
def test_an_older_revision_does_not_stand_for_one_that_cannot_be_read(
    data: dict[str, bytes],
) -> None:
    cluster = FakeCluster()
    cluster.put(secret("container-update-i.v1", "revision", revision()))
    history = History(cluster, "ns", "i")
    assert history.instance() is None, "this one keeps nothing of it"
    cluster.put(secret("container-update-i.v2", "revision", data))
    for read in (history.instance, lambda: history.read(whole=True)):
        with pytest.raises(PlanError, match=r"^Secret ns/container-update-i\.v2 .*kubectl delete"):
            read()


def test_a_record_of_the_instance_that_cannot_be_read_names_its_secret() -> None:
    cluster = FakeCluster()
    data = {**revision(), "instance": b"x"}
    cluster.put(secret("container-update-i.v1", "revision", data))
    with pytest.raises(PlanError, match=r"^Secret ns/container-update-i\.v1 .*is damaged"):
        History(cluster, "ns", "i").instance()
