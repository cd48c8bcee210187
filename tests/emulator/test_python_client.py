# SPDX-License-Identifier: Apache-2.0
"""The kubernetes Python client against the embedded cluster, through its typed calls."""

from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client, config, watch

from container_update.emulator.kubernetes import EmbeddedCluster
from tests.emulator.client import eventually

CONTAINER = {"name": "a", "image": "app:1"}
TEMPLATE = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {"containers": [CONTAINER], "terminationGracePeriodSeconds": 1},
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "x"},
    "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "x"}}, "template": TEMPLATE},
}


@pytest.fixture
def connection(cluster: EmbeddedCluster, tmp_path: Any) -> Iterator[client.ApiClient]:
    """The client, configured from the cluster's kubeconfig."""
    path = cluster.write_kubeconfig(tmp_path / "config")
    with config.new_client_from_config(str(path)) as api_client:
        yield api_client


def test_objects_are_created_read_changed_and_deleted(connection: client.ApiClient) -> None:
    core = client.CoreV1Api(connection)
    body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="c"), data={"k": "v"})
    created = core.create_namespaced_config_map("rec", body)
    assert created.data == {"k": "v"}
    created.data = {"k": "w"}
    assert core.replace_namespaced_config_map("c", "rec", created).data == {"k": "w"}
    created.data = {"k": "x"}
    with pytest.raises(client.ApiException) as caught:
        core.replace_namespaced_config_map("c", "rec", created)
    assert caught.value.status == 409
    patched = core.patch_namespaced_config_map("c", "rec", {"data": {"more": "y"}})
    assert patched.data == {"k": "w", "more": "y"}
    answer = core.delete_namespaced_config_map("c", "rec")
    # the client's version 37 gives the answer as a dict, those before it as a V1Status
    assert (answer["status"] if isinstance(answer, dict) else answer.status) == "Success"
    with pytest.raises(client.ApiException) as caught:
        core.read_namespaced_config_map("c", "rec")
    assert caught.value.status == 404


def test_a_deployment_is_rolled_out_and_scaled(connection: client.ApiClient) -> None:
    apps, core = client.AppsV1Api(connection), client.CoreV1Api(connection)
    apps.create_namespaced_deployment("rec", DEPLOYMENT)
    eventually(
        lambda: apps.read_namespaced_deployment("x", "rec").status.ready_replicas,
        lambda ready: ready == 2,
        "both replicas are ready",
    )
    pods = core.list_namespaced_pod("rec", label_selector="app=x").items
    assert [pod.status.phase for pod in pods] == ["Running"] * 2
    first, second = (pod.metadata.name for pod in pods)
    assert core.delete_namespaced_pod(first, "rec").metadata.name == first
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name=second))
    core.create_namespaced_pod_eviction(second, "rec", eviction)
    apps.patch_namespaced_deployment_scale("x", "rec", {"spec": {"replicas": 1}})
    assert apps.read_namespaced_deployment_scale("x", "rec").spec.replicas == 1


def test_a_watch_tells_typed_events(connection: client.ApiClient) -> None:
    core = client.CoreV1Api(connection)
    core.create_namespaced_secret("rec", {"metadata": {"name": "s"}, "stringData": {"a": "b"}})
    stream = watch.Watch().stream(core.list_namespaced_secret, "rec", timeout_seconds=10)
    event = next(iter(stream))
    assert (event["type"], event["object"].metadata.name) == ("ADDED", "s")
    assert event["object"].data == {"a": "Yg=="}


def test_the_server_tells_its_version_and_groups(connection: client.ApiClient) -> None:
    assert client.VersionApi(connection).get_code().git_version == "v1.36.2"
    names = {group.name for group in client.ApisApi(connection).get_api_versions().groups}
    assert {"apps", "batch", "policy", "coordination.k8s.io"} <= names
    resources = client.AppsV1Api(connection).get_api_resources().resources
    assert "deployments/scale" in {resource.name for resource in resources}
