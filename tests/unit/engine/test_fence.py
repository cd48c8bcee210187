# SPDX-License-Identifier: Apache-2.0
"""The fence: every object gets a new version, and nothing of it stays."""

from __future__ import annotations

import copy

import pytest

from container_update.engine import fence
from container_update.engine.fence import TAKEN_OVER, Fence
from container_update.model.errors import ClusterError
from container_update.model.objects import Json, ObjectKey
from tests.unit.fakes import FakeCluster, config_map

KEYS = [ObjectKey("", "ConfigMap", "ns", name, "v1") for name in ("bare", "labelled", "owned")]
JOURNAL = {"apiVersion": "v1", "kind": "Secret", "name": "journal", "uid": "ours"}
OTHER = {"apiVersion": "v1", "kind": "Secret", "name": "other", "uid": "theirs"}


def cluster() -> FakeCluster:
    made = FakeCluster(*(config_map(key.name, {"k": "v"}) for key in KEYS))
    made.objects[KEYS[1]]["metadata"]["labels"] = {"app": "a"}
    made.objects[KEYS[2]]["metadata"]["ownerReferences"] = [OTHER]
    return made


def content(fake: FakeCluster) -> list[Json]:
    """The objects without their versions."""
    bodies = copy.deepcopy([fake.objects[key] for key in KEYS])
    for body in bodies:
        del body["metadata"]["resourceVersion"]
    return bodies


def versions(fake: FakeCluster) -> list[str]:
    return [fake.objects[key]["metadata"]["resourceVersion"] for key in KEYS]


def test_only_the_journal_is_removed_from_the_owners_and_only_where_it_is_one() -> None:
    fake = cluster()
    before, old = content(fake), versions(fake)
    fake.objects[KEYS[0]]["metadata"]["ownerReferences"] = [JOURNAL]
    fake.objects[KEYS[2]]["metadata"]["ownerReferences"] = [OTHER, JOURNAL]
    Fence(fake, workers=2).lower(KEYS, JOURNAL, KEYS)
    assert content(fake) == before
    assert versions(fake)[1] == old[1], "what is as it has to be is not written"


def test_an_object_is_read_only_where_it_has_changed_since_it_was_seen() -> None:
    fake = cluster()
    for key in KEYS:
        fake.objects[key]["metadata"]["ownerReferences"] = [JOURNAL]
    seen = {key: copy.deepcopy(fake.objects[key]) for key in KEYS[:2]}
    fake.objects[KEYS[1]]["metadata"]["resourceVersion"] += "0"
    Fence(fake, workers=1).lower(KEYS, JOURNAL, KEYS, seen)
    assert [call for call in fake.calls if call.startswith("get ")] == [
        f"get {key}" for key in KEYS[1:]
    ]
    assert all("ownerReferences" not in body["metadata"] for body in content(fake))


def test_an_object_that_was_seen_without_the_label_is_read() -> None:
    fake = cluster()
    seen = {KEYS[0]: copy.deepcopy(fake.objects[KEYS[0]])}
    Fence(fake, workers=1).raise_(KEYS[:1], "run-1")
    Fence(fake, workers=1).lower(KEYS[:1], JOURNAL, KEYS, seen)
    assert TAKEN_OVER not in (fake.objects[KEYS[0]]["metadata"].get("labels") or {})


def test_what_a_late_request_created_during_an_undo_goes_with_the_journal() -> None:
    fake = cluster()
    fake.objects[KEYS[0]]["metadata"]["ownerReferences"] = [JOURNAL]
    Fence(fake, workers=2).lower(KEYS, JOURNAL, [])
    assert fake.objects[KEYS[0]]["metadata"]["ownerReferences"] == [JOURNAL]


@pytest.mark.parametrize(
    ("status", "times", "is_raised"),
    [(409, 9, False), (404, 9, False), (409, 10, True), (500, 1, True)],
)
def test_a_write_that_meets_another_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, status: int, times: int, is_raised: bool
) -> None:
    monkeypatch.setattr(fence, "_FIRST_PAUSE", 0)
    fake, left = cluster(), [times]

    def refuse(verb: str, key: ObjectKey) -> None:
        if verb == "replace" and left[0]:
            left[0] -= 1
            raise ClusterError("not now", status=status)

    fake.hooks.append(refuse)
    if is_raised:
        with pytest.raises(ClusterError, match="not now"):
            Fence(fake, workers=1).raise_(KEYS[:1], "run-1")
        return
    Fence(fake, workers=1).raise_(KEYS[:1], "run-1")
    assert fake.objects[KEYS[0]]["metadata"]["labels"] == {TAKEN_OVER: "run-1"}


def test_an_object_that_may_not_be_written_is_named_and_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fake = cluster()

    def refuse(verb: str, key: ObjectKey) -> None:
        if (verb, key) == ("replace", KEYS[0]):
            raise ClusterError("you may not", status=403)

    fake.hooks.append(refuse)
    Fence(fake, workers=1).raise_(KEYS, "run-1")
    assert "late requests for ConfigMap ns/bare are not kept out: you may not" in caplog.text
    assert [TAKEN_OVER in (b["metadata"].get("labels") or {}) for b in content(fake)] == [
        False, True, True,
    ]  # fmt: skip
    assert fake.calls.count(f"replace {KEYS[0]}") == 1
