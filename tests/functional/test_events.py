# SPDX-License-Identifier: Apache-2.0
"""What an update does for each event of a watch, as counts: its work grows with what changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.functional.cnf import IMAGES, Cnf
from tests.functional.manifests import ENV, config_map, workload
from tests.internals.core import Collection, Deployment, Json, StepState

OTHERS = 4
MORE = 4
"""Judgements of a workload beside those that follow an event: the first one, and where a write is
observed or a pause ends."""
EVENTS = 60
"""Events of a Deployment of two pods that restarts, its ReplicaSets and their pods: a real server
sends about 36."""


class Watched:
    """A cluster that counts the events of its watches by the Deployment that they concern."""

    def __init__(self, cluster: Any, names: Sequence[str]) -> None:
        self._cluster, self._names = cluster, names
        self.events: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def watch(self, collection: Collection, version: str, seconds: float) -> Iterator[Any]:
        for event in self._cluster.watch(collection, version, seconds):
            name = event.object["metadata"].get("name", "")
            self.events.update(each for each in self._names if f"{name}-".startswith(f"{each}-"))
            yield event


@pytest.mark.parametrize("changed", [2, 6])
def test_a_workload_is_judged_only_when_it_or_what_it_controls_has_changed(
    cnf: Cnf, monkeypatch: pytest.MonkeyPatch, changed: int
) -> None:
    judged: Counter[str] = Counter()
    visited: Counter[str] = Counter()
    readiness = Deployment.readiness

    def count(self: Deployment, live: Json, pods: Sequence[Json], baseline: Any) -> Any:
        judged[live["metadata"]["name"]] += 1
        visited[live["metadata"]["name"]] += len(pods)
        return readiness(self, live, pods, baseline)

    names = [f"d{number}" for number in range(changed)]
    files = {"cm": config_map(setting="old")}
    files |= {name: workload("Deployment", name, container=ENV) for name in names}
    files |= {f"o{n}": workload("Deployment", f"o{n}") for n in range(OTHERS)}
    cnf.instantiate(**files)
    watched: Any = Watched(cnf.cluster, names)
    cnf.cluster = watched
    new = {name: workload("Deployment", name, container=ENV, image=IMAGES[1]) for name in names}
    monkeypatch.setattr(Deployment, "readiness", count)
    outcome = cnf.update({**files, **new})
    assert {result.state for result in outcome.results} == {StepState.DONE}
    assert judged.keys() == set(names), "no workload is judged that does not change"
    own = 2 * len(cnf.pods("Deployment", names[0]))
    for name in names:
        assert watched.events[name] <= EVENTS, watched.events
        assert judged[name] <= watched.events[name] + MORE, (judged, watched.events)
        assert visited[name] <= judged[name] * own, "only the pods of the workload are looked at"
