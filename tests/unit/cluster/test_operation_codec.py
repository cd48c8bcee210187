# SPDX-License-Identifier: Apache-2.0
"""The form in which an operation is kept while it runs and after it has ended."""

from __future__ import annotations

import base64
import random
from dataclasses import replace
from datetime import datetime, timezone
from itertools import chain
from typing import Any

import pytest

from container_update.cluster import keeping
from container_update.cluster import operation_codec as codec
from container_update.cluster.history import HistoryWriter
from container_update.cluster.instance_record import InstanceRecord
from container_update.cluster.operation import Operation, Origin, Revision
from container_update.cluster.retry import RetryingCluster
from container_update.model.errors import ClusterError
from container_update.model.objects import Json, Manifest, ObjectKey, Source
from container_update.model.operation import Phase
from container_update.model.pauses import HoldStep
from container_update.model.plan import Action, Plan, Step
from container_update.model.requests import PackageIdentity
from container_update.model.scripts import ScriptReport
from container_update.planning.steps import ConfigStep, ManifestStep
from tests.unit.fakes import FakeCluster

PACKAGES = tuple(PackageIdentity(f"{v}.zip", "upf", v, v * 32) for v in ("12", "13"))


def config(kind: str, namespace: str, old: str, new: str) -> ConfigStep:
    key = ObjectKey("", kind, namespace, "config")
    before, after = (body(kind, namespace, text) for text in (old, new))
    return ConfigStep(key, Action.REPLACE, before, after)


def body(kind: str, namespace: str, text: str) -> Json:
    value = b64(text) if kind == "Secret" else text
    metadata = {"name": "config", "namespace": namespace, "uid": "u"}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": {"key": value}}


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def running(*steps: Step, **more: Any) -> Operation:
    return Operation(
        operation="op",
        host="host.1",
        started="2026-11-23T10:00:00+00:00",
        goal="goal",
        instance_id="i",
        origin=Origin("Canary", "ann", "host", PACKAGES, scripts={"new": "Scripts/new.py"}),
        steps=steps,
        **more,
    )


def revision(*steps: Step, cause: str | None = None, **more: Any) -> Revision:
    """A revision as it is read."""
    ended = datetime(2026, 11, 23, 10, 0, 5, tzinfo=timezone.utc)
    return replace(
        Revision.of(running(*steps, **more), ended, "uid", cause), number=3, phase=Phase.END
    )


def written(operation: Operation) -> tuple[Json, dict[str, bytes]]:
    """Return the head of an operation that is kept, and what is in parts."""
    encoded = codec.encode(operation, "ns")
    key = ObjectKey("", "Secret", "ns", "container-update-i")
    head = keeping.secret(key, "type", encoded.head, "i", {})
    parts = {name: b"".join(chunks) for name, chunks in encoded.parts.items()}
    assert all(codec.is_part(name, whole, head) for name, whole in parts.items())
    assert not any(codec.is_part(name, b"other", head) for name in parts)
    return head, parts


def places(head: Json) -> list[tuple[str, str]]:
    keys = codec.part_keys(head).values()
    return [(key.namespace, key.name.removeprefix("container-update-i")) for key in chain(*keys)]


def noise(size: int) -> str:
    """Return a text that does not get smaller."""
    return random.Random(1).randbytes(size).hex()


CHANGE = config("ConfigMap", "ns", "old", "new")
LARGE = config("ConfigMap", "ns", noise(1_200_000), "new")
POD = ObjectKey("", "Pod", "ns", "p")
REPORT = ScriptReport("new", "VDU1", "Scripts/new.py", 0, 1.5, "done")


@pytest.mark.parametrize(
    "operation",
    [
        running(CHANGE),
        running(
            CHANGE,
            HoldStep.of("canary of 10 %"),
            pods_before={POD: frozenset({"u1", "u2"})},
            def_files=("a.yaml",),
            context={"facts": {}},
            objects=(CHANGE.key,),
            instance=b"record",
            phase=Phase.UNDO,
            ended_groups=2,
            scripts=(REPORT,),
        ),
        running(LARGE, instance=b"i" * 800_000),
        revision(CHANGE),
        revision(CHANGE, objects=(CHANGE.key,), def_files=("a.yaml",), instance=b"record"),
        revision(LARGE, instance=b"i" * 800_000),
        replace(revision(CHANGE, cause="pod failed"), report=("web: exit 1",)),
        replace(revision(instance=b"record"), is_kept=False),
    ],
    ids=["runs", "runs with all", "large", "ended", "with all", "large", "undone", "not kept"],
)
def test_it_is_read_as_it_was_written(operation: Operation) -> None:
    head, parts = written(operation)
    assert codec.decode(head, parts) == operation
    assert sum(map(len, keeping.data_of(head).values())) < 1_000_000


def test_what_is_too_large_for_a_secret_is_in_parts_that_are_counted() -> None:
    head, parts = written(running(LARGE, instance=b"i" * 800_000))
    assert set(parts) == {"content", "instance"}
    assert places(head) == [("ns", f".{number}") for number in range(1, 5)]


def test_of_what_is_not_kept_the_head_remains() -> None:
    for kept in (
        codec.decode(*written(replace(revision(CHANGE), is_kept=False))),
        codec.decode(written(revision(LARGE))[0], {}),  # its parts were deleted
    ):
        assert isinstance(kept, Revision)
        assert (kept.is_kept, kept.steps, kept.can_be_undone) == (False, (), False)
        assert (kept.changes, kept.origin.packages) == (1, PACKAGES)


def test_a_running_operation_without_its_parts_is_damaged() -> None:
    with pytest.raises(ValueError, match="is damaged"):
        codec.decode(written(running(LARGE))[0], {})


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}
ITS_CREATION = ManifestStep(ObjectKey.of(NAMESPACE), Action.CREATE, None, content=NAMESPACE)


@pytest.mark.parametrize(
    ("kind", "namespace", "first", "running_in", "ended_in"),
    [
        ("Secret", "ns", CHANGE, [], []),
        ("ConfigMap", "other", CHANGE, [], [("other", ".of.ns.1")]),
        ("Secret", "other", CHANGE, [("other", ".of.ns.1")], [("other", ".of.ns.1")]),
        ("Secret", "other", ITS_CREATION, [], [("other", ".of.ns.1")]),
    ],
)
def test_what_an_object_of_another_namespace_held_is_kept_there_once_that_is_there(
    kind: str, namespace: str, first: Step, running_in: list[Any], ended_in: list[Any]
) -> None:
    """While the operation runs only Secrets: it needs the right to write Secrets there."""
    there = config(kind, namespace, "old", "new")
    for operation, where in (
        (running(first, there), running_in),
        (revision(first, there), ended_in),
    ):
        head, parts = written(operation)
        assert places(head) == where
        read = codec.decode(head, parts)
        assert read == operation
        assert read.namespaces == {place for place, _ in where}


def test_a_revision_has_of_a_secret_what_was_there_before() -> None:
    step = config("Secret", "ns", "old", "new")
    kept = codec.reduce_revision(revision(step, HoldStep.of("canary of 10 %"), scripts=(REPORT,)))
    assert [each.before for each in kept.object_steps] == [step.before]
    assert b64("new") not in str(kept)
    assert (kept.steps, kept.scripts) == (kept.object_steps, ())


@pytest.mark.parametrize(
    ("kind", "cause", "can_be_undone"),
    [
        ("update", None, True),
        ("Blue-Green", None, True),
        ("update", "pod failed", False),
        ("install", None, False),
    ],
)
def test_what_was_finished_can_be_undone_but_an_installation(
    kind: str, cause: str | None, can_be_undone: bool
) -> None:
    done = revision(CHANGE, cause=cause)
    assert replace(done, origin=replace(done.origin, kind=kind)).can_be_undone is can_be_undone


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
    assert history.keep(revision(CHANGE), 5) is None
    assert sum(call.startswith("create ") for call in cluster.calls) == tries


def test_an_instance_runs_from_its_manifests_whatever_their_objects_are_called() -> None:
    key, content = ObjectKey("", "ConfigMap", "ns", "other"), body("ConfigMap", "ns", "text")
    plan = Plan("ns", "i", (), manifests=(Manifest(key, content, Source("a.yaml", 1)),))
    record = InstanceRecord.of(plan)
    assert [each.key.name for each in record.manifests] == ["config"]
