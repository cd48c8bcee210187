"""The form in which an operation that has ended is kept, and what is not kept of it."""

from __future__ import annotations

import base64
import json
import random
from dataclasses import replace

import pytest

from container_update.cluster.history import revision as revisions
from container_update.cluster.history.revision import Origin, Result, Revision
from container_update.model.objects import Json, ObjectKey
from container_update.model.plan import Action
from container_update.model.requests import PackageIdentity
from container_update.planning.steps import ConfigStep

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
    assert revisions.decode(revisions.encode(kept)) == kept


def test_one_that_is_too_large_for_a_secret_is_kept_without_its_content() -> None:
    noise = random.Random(1).randbytes(1_200_000).hex()
    data = revisions.encode(revision(config("ConfigMap", "ns", noise, "new")))
    read = revisions.decode(data)
    assert (read.is_kept, read.steps, read.can_be_undone) == (False, (), False)
    assert sum(map(len, data.values())) < 1_000_000
    assert read.origin.packages == PACKAGES


@pytest.mark.parametrize(
    ("kind", "namespace", "private"),
    [("Secret", "ns", False), ("ConfigMap", "other", False), ("Secret", "other", True)],
)
def test_a_secret_of_another_namespace_is_not_kept_here(
    kind: str, namespace: str, private: bool
) -> None:
    steps = [config(kind, namespace, "old", "new")]
    assert revisions.is_private(steps, "ns") is private


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: {**data, "content": b"no gzip"}, "damaged"),
        (lambda data: {"summary": data["summary"]}, "damaged"),
        (lambda data: {"content": data["content"]}, "damaged"),
        (lambda data: {**data, "summary": later(data["summary"])}, "has format 99"),
    ],
)
def test_what_cannot_be_read_is_an_error_that_says_why(damage, words) -> None:
    data = revisions.encode(revision(config("ConfigMap", "ns", "old", "new")))
    with pytest.raises(ValueError, match=words):
        revisions.decode(damage(data))


def later(summary: bytes) -> bytes:
    return json.dumps({**json.loads(summary), "format": 99}).encode()


def test_only_a_finished_update_can_be_undone() -> None:
    done = revision(config("ConfigMap", "ns", "old", "new"))
    change = replace(done, origin=replace(done.origin, kind="Blue-Green"))
    assert done.can_be_undone
    assert not replace(done, result=Result.UNDONE).can_be_undone
    assert not change.can_be_undone
