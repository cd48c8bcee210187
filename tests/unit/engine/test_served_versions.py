# SPDX-License-Identifier: Apache-2.0
"""How long a definition or a quota that was written is waited for: a server takes over late what it
says."""

from __future__ import annotations

import time
from typing import NoReturn

import pytest

from container_update.cluster.informer import Informer
from container_update.cluster.waiting import NotReadyError, Waiter
from container_update.engine.context import ExecutionContext
from container_update.engine.executors.manifest import ManifestExecutor
from container_update.engine.rollout import RolloutWaiter
from container_update.engine.writer import ObjectWriter
from container_update.model.errors import ClusterError
from container_update.model.objects import Json, ObjectKey
from container_update.model.plan import Action
from container_update.planning.steps import ManifestStep
from container_update.planning.steps.manifest import with_recorded_digest
from tests.unit.fakes import Everything, FakeCluster


class LateCluster(FakeCluster):
    """Serves other versions from one question to the next."""

    answers: list[set[str]]

    def look_up_versions(self, group: str, kind: str) -> frozenset[str]:
        answer = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        return frozenset(f"{group}/{version}" for version in answer)


def definition(**served: bool) -> Json:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"kind": "Thing"},
            "versions": [{"name": name, "served": value} for name, value in served.items()],
        },
    }


def replace(cluster: FakeCluster, now: Json, then: Json, seconds: float = 60.0) -> None:
    """Carry out the step that changes a definition."""
    live, then = cluster.put(now), with_recorded_digest(then, "digest")
    waiter = Waiter(Informer(cluster, Everything()), 1.0)
    context = ExecutionContext(ObjectWriter(cluster, waiter), RolloutWaiter(waiter))
    step = ManifestStep(ObjectKey.of(then), Action.REPLACE, live, then)
    ManifestExecutor(context).apply(step, time.monotonic() + seconds)


@pytest.mark.parametrize(
    ("then", "answers"),
    [
        (definition(v1=True, v2=True), [{"v1"}, {"v1"}, {"v1", "v2"}]),
        (definition(v1=False, v2=True), [{"v1"}, {"v1", "v2"}, {"v2"}]),
    ],
)
def test_a_changed_definition_is_waited_for_until_its_versions_are_served(
    then: Json, answers: list[set[str]]
) -> None:
    cluster = LateCluster()
    cluster.answers = answers
    replace(cluster, definition(v1=True), then)
    assert len(cluster.answers) == 1


def test_a_version_that_is_never_served_is_an_error() -> None:
    cluster = LateCluster()
    cluster.answers = [{"v1"}]
    with pytest.raises(NotReadyError, match="not served in time"):
        replace(cluster, definition(v1=True), definition(v1=True, v2=True), 0.2)


class LateQuotas(FakeCluster):
    """Judges by the new limits of a quota at the third look at it only."""

    looks = 0

    def get(self, key: ObjectKey) -> Json | None:
        live = super().get(key)
        self.looks += 1
        if live is not None and self.looks > self.late:
            live["status"] = {"hard": live["spec"]["hard"]}
        return live

    late = 3


def quota(number: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "n"},
        "spec": {"hard": {"services": number}},
        "status": {"hard": {"services": "0"}},
    }


def test_a_quota_is_waited_for_until_the_server_judges_by_it() -> None:
    cluster = LateQuotas()
    replace(cluster, quota("0"), quota("5"))
    assert cluster.looks == cluster.late + 1


def test_a_quota_that_no_controller_takes_up_is_not_waited_for_long() -> None:
    cluster = LateQuotas()
    cluster.late = 1_000_000
    replace(cluster, quota("0"), quota("5"), 0.3)
    assert cluster.looks > 1


def create_thing(cluster: FakeCluster) -> Json:
    waiter = Waiter(Informer(cluster, Everything()), 1.0)
    thing = {
        "apiVersion": "example.org/v1",
        "kind": "Thing",
        "metadata": {"name": "one", "namespace": "n"},
    }
    writer = ObjectWriter(cluster, waiter)
    return writer.create_new(thing, lambda _: False, time.monotonic() + 60.0)


@pytest.mark.parametrize("refusals", [1, 2])
def test_an_object_whose_kind_is_served_just_after_its_refusal_is_created_again(
    refusals: int,
) -> None:
    cluster = LateCluster()
    cluster.answers = [{"v1"}]
    left = [refusals]

    def refuse(verb: str, _: ObjectKey) -> None:
        if verb == "create" and left[0]:
            left[0] -= 1
            raise ClusterError("the cluster does not serve the kind Thing", status=404)

    cluster.hooks.append(refuse)
    if refusals == 1:
        assert create_thing(cluster)["metadata"]["name"] == "one"
    else:  # its namespace is not there
        with pytest.raises(ClusterError, match="does not serve"):
            create_thing(cluster)


class UnconvertedCluster(FakeCluster):
    """Cannot read objects of the kind yet: what converts them comes later in the plan."""

    def look_up_versions(self, group: str, kind: str) -> frozenset[str]:
        return frozenset({f"{group}/v1"})

    def list(self, *_: object) -> NoReturn:
        raise ClusterError("conversion webhook failed: service not found", status=500)


def test_objects_that_a_webhook_of_the_package_converts_are_not_waited_for() -> None:
    then = definition(v1=True)
    then["spec"]["conversion"] = {"strategy": "Webhook"}
    replace(UnconvertedCluster(), definition(v1=True, v2=True), then, seconds=0)
    with pytest.raises(ClusterError, match="conversion webhook failed"):
        replace(UnconvertedCluster(), definition(v1=True, v2=True), definition(v1=True), seconds=0)
