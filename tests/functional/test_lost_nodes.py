# SPDX-License-Identifier: Apache-2.0
"""A node that is lost while an update is undone: its pods are not waited for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kubernetes import client, config

from container_update import UndoStarted, UpdateFailedError, update
from tests.functional.cnf import BAD_IMAGE, IMAGES, Cnf
from tests.functional.manifests import workload
from tests.internals.core import Collection, Event


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_an_undo_does_not_wait_for_a_pod_whose_node_is_lost_meanwhile(
    cnf: Cnf, admin_kubeconfig: str, kind: str
) -> None:
    # an ordered StatefulSet gets no pod before the ones with lower ordinals are Ready
    spec = "podManagementPolicy: Parallel" if kind == "StatefulSet" else ""
    cnf.instantiate(w=workload(kind, replicas=2, spec=spec))
    pods = Collection("", "Pod", cnf.namespace)
    lost = next(
        pod["metadata"]["name"]
        for pod in cnf.admin.list(pods).items
        if kind == "Deployment" or pod["metadata"]["name"] == "w-0"
    )

    def lose(event: Event) -> None:
        """Write what the node controller writes of the pods of a node that does not answer."""
        if isinstance(event, UndoStarted):
            settings = client.Configuration()
            config.load_kube_config(admin_kubeconfig, client_configuration=settings)
            not_ready = {"type": "Ready", "status": "False", "reason": None}
            with client.ApiClient(settings) as api:
                client.CoreV1Api(api).patch_namespaced_pod_status(
                    lost, cnf.namespace, {"status": {"conditions": [not_ready]}}
                )

    request = cnf.request({"w": workload(kind, replicas=2, spec=spec, image=BAD_IMAGE)})
    options = replace(cnf.options, grace_period=0.5, timeout=25, undo_timeout=120)
    with pytest.raises(UpdateFailedError) as failed:
        update(request, cnf.cluster, options, progress=lose)
    assert type(failed.value) is UpdateFailedError
    live = cnf.get(kind, "w")
    images = [c["image"] for c in live["spec"]["template"]["spec"]["containers"]]
    assert images == [IMAGES[0]]
    assert live["status"]["readyReplicas"] == 1
