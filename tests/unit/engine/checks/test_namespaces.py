# SPDX-License-Identifier: Apache-2.0
"""That nothing is under way is said only of a namespace that may exist."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from container_update.engine.recover import resume, rollback, status
from container_update.model.cluster import Cluster
from container_update.model.errors import ClusterError, PlanError
from container_update.model.objects import Json, ObjectKey
from container_update.model.options import Options
from tests.unit.fakes import FakeCluster

HERE: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "cnf"}}
OPTIONS = Options(retry_seconds=0.1)

Ask = Callable[[Cluster], object]

COMMANDS: dict[str, Ask] = {
    "status": lambda cluster: status(cluster, OPTIONS, namespace="cnf").record,
    "resume": lambda cluster: resume(cluster, OPTIONS, namespace="cnf"),
    "rollback": lambda cluster: rollback(cluster, OPTIONS, namespace="cnf"),
}


def refusing(status: int) -> FakeCluster:
    """A cluster that answers no read of a namespace."""
    cluster = FakeCluster()

    def refuse(_: str, key: ObjectKey) -> None:
        if key.kind == "Namespace":
            raise ClusterError("no", status=status)

    cluster.hooks.append(refuse)
    return cluster


@pytest.mark.parametrize("ask", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize(
    "cluster", [lambda: FakeCluster(HERE), lambda: refusing(403)], ids=["exists", "unreadable"]
)
def test_nothing_is_under_way(ask: Ask, cluster: Callable[[], FakeCluster]) -> None:
    assert ask(cluster()) is None


@pytest.mark.parametrize("ask", COMMANDS.values(), ids=COMMANDS)
def test_a_namespace_that_does_not_exist_is_an_error(ask: Ask) -> None:
    with pytest.raises(PlanError, match="namespace cnf does not exist"):
        ask(FakeCluster())


@pytest.mark.parametrize("ask", COMMANDS.values(), ids=COMMANDS)
def test_a_namespace_that_cannot_be_read_otherwise_is_an_error(ask: Ask) -> None:
    with pytest.raises(ClusterError):
        ask(refusing(400))
