# SPDX-License-Identifier: Apache-2.0
"""What an undo takes for its own where a webhook changes images and dry runs are denied."""

from __future__ import annotations

import copy

import pytest

from container_update.cluster.informer import Informer
from container_update.cluster.waiting import Waiter
from container_update.engine.writer import ObjectWriter
from container_update.model.cluster import DryRun, DryRunVerb
from container_update.model.errors import AdmissionError
from container_update.model.objects import Json, ObjectKey
from container_update.model.plan import Action
from container_update.planning.steps import RestartStep
from container_update.workloads.pod_template import images
from tests.unit.fakes import Everything, FakeCluster

WEB = ObjectKey("apps", "Deployment", "ns", "web")


class DenyingCluster(FakeCluster):
    """Denies every dry run."""

    def dry_run(self, verb: DryRunVerb, body: Json) -> DryRun:
        raise AdmissionError("denied", status=403)


def with_image(image: str) -> Json:
    template = {"spec": {"containers": [{"name": "main", "image": image}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": WEB.name, "namespace": WEB.namespace, "uid": "u"},
        "spec": {"template": template},
    }


def test_an_interrupted_write_is_undone_only_where_denials_are_noted() -> None:
    before, live = with_image("mirror/app:1"), with_image("mirror/app:2")
    step = RestartStep(WEB, Action.ROLL, before, images={"main": "app:2"})
    cluster = DenyingCluster(copy.deepcopy(live))
    waiter = Waiter(Informer(cluster, Everything()), 1.0)
    writer = ObjectWriter(cluster, waiter, notes_denials=True)
    known = writer.with_stored_images(step, live, back=True)
    assert known.has_traces(live)
    assert images(known.without_change(live)) == {"main": "mirror/app:1"}
    with pytest.raises(AdmissionError):  # forwards it might be another client's image
        writer.with_stored_images(step, live)
    with pytest.raises(AdmissionError):
        ObjectWriter(cluster, waiter).with_stored_images(step, live, back=True)
