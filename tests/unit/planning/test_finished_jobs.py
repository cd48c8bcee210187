# SPDX-License-Identifier: Apache-2.0
"""When a Job that is gone counts as run: a table of recorded and new manifests."""

from __future__ import annotations

from typing import Any

import pytest

from container_update.model.objects import Json, Manifest, ObjectKey, Source
from container_update.planning.finished_jobs import gone_jobs, has_run


def manifest(
    kind: str = "Job",
    cpu: str = "1",
    labels: Json | None = None,
    pods: Json | None = None,
    **spec: Any,
) -> Manifest:
    container = {"name": "main", "image": "a:1", "resources": {"limits": {"cpu": cpu}}}
    body = {
        "apiVersion": "batch/v1",
        "kind": kind,
        "metadata": {"name": "j", "labels": labels or {}},
        "spec": {
            "template": {"metadata": {"labels": pods or {}}, "spec": {"containers": [container]}},
            **spec,
        },
    }
    return Manifest(ObjectKey("batch", kind, "n", "j"), body, Source("j.yaml", 1))


TTL = {"ttlSecondsAfterFinished": 0}


@pytest.mark.parametrize(
    ("recorded", "new", "ran"),
    [
        (manifest(**TTL), manifest(**TTL), True),
        (None, manifest(**TTL), False),
        (manifest(), manifest(**TTL), False),
        (manifest(**TTL), manifest(), True),
        (manifest(**TTL), manifest(labels={"release": "2"}, backoffLimit=1, **TTL), True),
        (manifest(**TTL), manifest(cpu="1000m", **TTL), True),
        (manifest(**TTL), manifest(pods={"helm.sh/chart": "2"}, **TTL), True),
        (manifest(**TTL), manifest(cpu="2", **TTL), False),
        (manifest(**TTL), manifest(completions=2, **TTL), False),
        (manifest(completions=2, **TTL), manifest(**TTL), False),
        (manifest(suspend=True, **TTL), manifest(**TTL), False),
        (manifest("CronJob", **TTL), manifest("CronJob", **TTL), False),
    ],
)
def test_a_job_that_is_gone_has_run_where_its_work_is_the_same(
    recorded: Manifest | None, new: Manifest, ran: bool
) -> None:
    assert has_run(new, recorded) is ran


def test_only_what_is_gone_and_removes_itself_is_looked_up_in_the_record() -> None:
    one = manifest(**TTL)
    assert gone_jobs([one], {}) == {one.key}
    assert gone_jobs([one], {one.key}) == frozenset()
    assert gone_jobs([manifest()], {}) == frozenset()
