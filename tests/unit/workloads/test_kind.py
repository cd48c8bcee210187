# SPDX-License-Identifier: Apache-2.0
"""What a kind does that says nothing but its name."""

from __future__ import annotations

from typing import Any

import pytest

from container_update.model.plan import Action
from container_update.workloads.kind import WorkloadKind
from container_update.workloads.readiness import Baseline, RolloutState


class CloneSet(WorkloadKind):
    """A kind of another project (OpenKruise)."""

    group, kind = "apps.kruise.io", "CloneSet"


@pytest.mark.parametrize(
    ("spec", "action"),
    [
        ({}, Action.ROLL),
        ({"updateStrategy": {"type": "RollingUpdate"}}, Action.ROLL),
        ({"updateStrategy": {"type": "OnDelete"}}, Action.EVICT),
    ],
)
def test_its_controller_replaces_the_pods_unless_it_waits_for_deletions(
    spec: dict[str, Any], action: Action
) -> None:
    assert CloneSet().action({"spec": spec}, (), ()) is action


def test_it_is_done_when_all_of_its_pods_are_new_and_ready() -> None:
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1)
    live = {
        "metadata": {"generation": 2},
        "spec": {"replicas": 1},
        "status": {"observedGeneration": 2, **counts},
    }
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    old = {"metadata": {"uid": "old"}, "status": ready}
    baseline = Baseline.of([old])
    assert CloneSet().readiness(live, [old], baseline).state is RolloutState.PROGRESSING
    new = {"metadata": {"uid": "new"}, "status": ready}
    assert CloneSet().readiness(live, [new], baseline).state is RolloutState.DONE
