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

from container_update.cluster.history import History
from container_update.cluster.journal import Journal
from container_update.model.errors import (
    ContainerUpdateError,
    PlanError,
    UpdateInProgressError,
)
from container_update.model.objects import Json, ObjectKey
from container_update.model.packing import MAX_BYTES, pack, unpack
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
HEAD: Json = {
    "format": 5,
    "operation": "op-1",
    "host": "host.1",
    "started": "2026-01-01T00:00:00+00:00",
    "goal": "goal",
    "instance_id": "i",
    "origin": {"kind": "update", "user": "u", "host": "h", "packages": []},
    "parts": {},
    "digests": {},
    "end": None,
}
END: Json = {
    "number": 1,
    "ended": "2026-01-01T00:00:05+00:00",
    "seconds": 5.0,
    "result": "done",
    "changes": 1,
    "cause": "",
    "isKept": True,
}
CONTENT: Json = {
    "steps": [STEP],
    "objects": [],
    "defFiles": [],
    "context": {},
    "podsBefore": [],
    "report": [],
}
PROGRESS = {"phase": b"update", "groups": b"0", "scripts": b"[]", "run": b"r"}


def secret(name: str, kind: str, head: bytes, content: bytes, **more: bytes) -> Json:
    """Return the head of an operation as others may write it."""
    data = {"operation": head, "content": content, **more}
    values = {each: base64.b64encode(value).decode() for each, value in data.items()}
    metadata = {"name": name, "namespace": "ns", "uid": "u", "resourceVersion": "1"}
    body: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
    return {**body, "type": f"container-update/{kind}", "data": values}


def as_json(values: object) -> bytes:
    return json.dumps(values).encode()


def compressed(**changes: Any) -> bytes:
    return gzip.compress(as_json({**CONTENT, **changes}))


def journal_of(content: bytes, head: bytes = as_json(HEAD), **more: bytes) -> Journal:
    """Return the journal of a cluster in which somebody wrote this one."""
    cluster = FakeCluster()
    cluster.put(secret(KEY.name, "journal", head, content, **{**PROGRESS, **more}))
    return Journal(cluster, "ns", "i", "run")


def revision(
    content: bytes = compressed(), number: int = 2, end: Any = None, **changes: Any
) -> Json:
    """Return the Secret of a revision."""
    ended = {**END, **(end or {})} if isinstance(end, dict | None) else end
    head = as_json({**HEAD, "end": ended, **changes})
    return secret(f"{KEY.name}.v{number}", "revision", head, content)


def test_what_the_others_are_made_of_is_right() -> None:
    journal, (revised,) = journal_of(compressed()).read(), history_of(FIRST).read()
    assert journal is not None
    for operation in (journal, revised):
        assert [str(step.key) for step in operation.steps] == ["ConfigMap ns/cm"]


def with_key(**changes: Any) -> bytes:
    return compressed(steps=[{**STEP, "key": {**STEP["key"], **changes}}])


CONTENTS: dict[str, bytes] = {
    "no gzip": b"x",
    "nothing": b"",
    "gzip that is cut off": compressed()[:40],
    "gzip with an error": compressed()[:40] + b"xx" + compressed()[42:],
    "no JSON": gzip.compress(b"{"),
    "no UTF-8": gzip.compress(b"\xff"),
    "depth": gzip.compress(b"[" * 100_000),
    "a list": gzip.compress(b"[]"),
    **{f"without {name}": compressed(**{name: None}) for name in CONTENT},
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
    "an object that is none": compressed(objects=[{}]),
}
"""What an operation does, damaged: of a journal and of a revision."""


def head(**changes: Any) -> bytes:
    return as_json({**HEAD, **changes})


HEADS: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"{",
    "depth": b"[" * 100_000,
    "a list": b"[]",
    **{
        f"without {name}": as_json({each: v for each, v in HEAD.items() if each != name})
        for name in HEAD
    },
    "a number as host": head(host=5),
    "a host that controls a terminal": head(host="\x1b]0;x\x07"),
    "no time": head(started="yesterday"),
    "a time without a zone": head(started="2026-01-01T00:00:00"),
    "a list as id": head(instance_id=[]),
    "a list as operation": head(operation=[]),
    "an origin that is none": head(origin=[1]),
    "an origin with more": head(origin={"kind": "x", "more": 1}),
    "a number as user": head(origin={**HEAD["origin"], "user": 5}),
    "packages that are none": head(origin={**HEAD["origin"], "packages": [{}]}),
    "an end that is none": head(end=[1]),
    "more parts than there may be": head(parts={"content": 101}),
    "millions of parts": head(parts={"content": 3_000_000}),
    "no part": head(parts={"content": 0}),
    "fewer than none": head(parts={"content": -9, "instance": 109}),
    "half a part": head(parts={"content": 0.5}),
    "true": head(parts={"content": True}),
    "a text": head(parts={"content": "1"}),
    "another part": head(parts={"other": 1}),
    "a namespace that leads elsewhere": head(parts={"content/../x": 1}),
    "a record elsewhere": head(parts={"instance/other": 1}),
    "many namespaces": head(parts={f"content/n{n}": 1 for n in range(101)}),
    "a list of parts": head(parts=[1]),
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_a_journal_with_another_content_is_damaged(content: bytes) -> None:
    journal = journal_of(content)
    with pytest.raises(ContainerUpdateError, match=f"^{KEY}: the journal is damaged: correct the"):
        journal.read()


def test_a_journal_of_another_version_is_for_that_version() -> None:
    with pytest.raises(UpdateInProgressError, match="has format 99, expected 5: another version"):
        journal_of(compressed(), head(format=99)).read()


@pytest.mark.parametrize(
    "more", [{"phase": b"sideways"}, {"groups": b"x"}, {"scripts": b"[1]"}, {"scripts": b"{}"}]
)
def test_a_journal_that_is_at_no_place_of_its_operation_is_damaged(more: dict[str, bytes]) -> None:
    journal = journal_of(compressed(), **more)
    for read in (journal.read, lambda: journal.phase_of("op-1")):
        with pytest.raises(ContainerUpdateError, match=f"^{KEY}: the journal is damaged"):
            read()


def test_a_revision_in_the_place_of_a_journal_is_damage() -> None:
    with pytest.raises(ContainerUpdateError, match=f"^{KEY}: the journal is damaged"):
        journal_of(compressed(), head(end=END)).read()


@pytest.mark.parametrize("data", HEADS.values(), ids=HEADS)
@pytest.mark.parametrize("ask", [Journal.read, Journal.clear, Journal.leftovers])
def test_a_journal_with_another_head_costs_few_requests(
    data: bytes, ask: Callable[[Journal], object]
) -> None:
    journal = journal_of(compressed(), data)
    if ask is Journal.read:
        with pytest.raises(ContainerUpdateError, match=f"^{KEY}: the journal is damaged"):
            ask(journal)
    else:
        assert not ask(journal)
    assert isinstance(journal.cluster, FakeCluster)
    assert journal.cluster.requests <= 2
    assert KEY in journal.cluster.objects, "a human looks at it first"


@pytest.mark.parametrize(
    "read",
    [
        lambda content: journal_of(content).read(),
        lambda content: history_of(revision(content)).read(whole=True),
    ],
    ids=["journal", "revision"],
)
@pytest.mark.parametrize(
    "content",
    [
        packed.without_end(b"[", b" " * MAX_BYTES, 10),
        gzip.compress(b'[",",' + b"[]," * 20_000_000 + b"[]]"),
        gzip.compress(rb'{"\\": [' + rb'"\"",' * 2_000_001 + b"[]]}"),
    ],
    ids=["bytes", "values", "texts"],
)
def test_a_few_bytes_do_not_take_all_memory(
    read: Callable[[bytes], object], content: bytes
) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ContainerUpdateError, match="damaged"):
            read(content)
        assert tracemalloc.get_traced_memory()[1] < 4 * MAX_BYTES
    finally:
        tracemalloc.stop()


def test_values_are_not_counted_in_texts() -> None:
    value = {"a\\": ['x,"[{,' * 1_000_000, [1, {"b": ","}]]}
    assert unpack(pack(value)) == value


def history_of(*bodies: Json) -> History:
    cluster = FakeCluster()
    for body in bodies:
        cluster.put(body)
    return History(cluster, "ns", "i")


def ended(head: bytes) -> bytes:
    """Return the head as one of an operation that has ended."""
    return head.replace(b'"end": null', b'"end": ' + as_json(END))


REVISIONS: dict[str, Json] = {
    **{name: revision(content) for name, content in CONTENTS.items()},
    **{
        f"with a head of {name}": secret(f"{KEY.name}.v2", "revision", ended(data), compressed())
        for name, data in HEADS.items()
    },
    **{f"without {name}": revision(end={name: None}) for name in END if name != "isKept"},
    "a number that controls a terminal": revision(end={"number": "1\x1b"}),
    "no time": revision(end={"ended": "then"}),
    "a list as cause": revision(end={"cause": ["x"]}),
    "another format": revision(format=99),
    "one that has not ended": secret(f"{KEY.name}.v2", "revision", as_json(HEAD), compressed()),
}
FIRST = revision(number=1)


@pytest.mark.parametrize("body", REVISIONS.values(), ids=REVISIONS)
def test_a_revision_with_another_content_is_left_out(
    body: Json, caplog: pytest.LogCaptureFixture
) -> None:
    (read,) = history_of(FIRST, body).read()
    assert read.number == 1
    assert "Secret ns/container-update-i.v2 " in caplog.text


@pytest.mark.parametrize("body", REVISIONS.values(), ids=REVISIONS)
def test_an_older_revision_does_not_stand_for_one_that_cannot_be_read(body: Json) -> None:
    assert history_of(FIRST).instance() is None, "this one keeps nothing of it"
    history = history_of(FIRST, body)
    for read in (history.instance, lambda: history.read(whole=True)):
        with pytest.raises(PlanError, match=r"^Secret ns/container-update-i\.v2 .*kubectl delete"):
            read()


def test_a_record_of_the_instance_that_cannot_be_read_names_its_secret() -> None:
    data = {**FIRST["data"], "instance": base64.b64encode(b"x").decode()}
    with pytest.raises(PlanError, match=r"^Secret ns/container-update-i\.v1 .*is damaged"):
        history_of({**FIRST, "data": data}).instance()


@pytest.mark.parametrize("name", ["j.v2", "i.a.v2", "ij.v2", "i.v2.v3", "i.v2x", "i.v"])
def test_a_revision_of_another_instance_is_none_of_this_one(name: str) -> None:
    theirs = revision(end={"number": 2})
    theirs["metadata"] = {**theirs["metadata"], "name": f"container-update-{name}"}
    assert [each.number for each in history_of(FIRST, theirs).read()] == [1]
