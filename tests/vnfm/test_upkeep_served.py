# SPDX-License-Identifier: Apache-2.0
"""Heal and scale with the ``openstack`` client, and when the service is killed meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from container_update.emulator.kubernetes import EmbeddedCluster
from tests.tacker import test_user_guides as guides
from tests.tacker.conftest import Kubectl
from tests.tacker.operator import Operator
from tests.vnfm import scalable
from tests.vnfm.client import Client
from tests.vnfm.scalable import recorded
from tests.vnfm.served import served
from tests.vnfm.test_load import client_of
from tests.vnfm.waiting import until

Json = dict[str, Any]


@pytest.mark.parametrize("api", ["v1", "v2"])
def test_the_client_heals_and_scales(
    api: str, cluster: EmbeddedCluster, kubectl: Kubectl, tmp_path: Path
) -> None:
    with served(tmp_path) as service:
        operator = Operator(service, api)
        vnfd_id = operator.onboard(scalable.package(tmp_path))
        instance_id = operator.create(vnfd_id)
        request = scalable.instantiation(operator.vim_connection(cluster))
        assert operator.instantiate(instance_id, request)["operationState"] == "COMPLETED"

        before = set(kubectl.pods())
        accepted = operator.openstack("vnflcm", "heal", instance_id, "--cause", "it is broken")
        assert "has been accepted" in accepted
        assert operator.settled(instance_id, "HEAL")["operationState"] == "COMPLETED"
        assert {name for name in before if name.startswith("front")}.isdisjoint(kubectl.pods())

        info = operator.show(instance_id)["instantiatedVnfInfo"]
        front = next(name for name in kubectl.pods() if name.startswith("front"))
        vnfcs = info["vnfcResourceInfo" if api == "v1" else "vnfcInfo"]
        vnfc_id = next(vnfc["id"] for vnfc in vnfcs if vnfc["vduId"] == "VDU1")
        operator.openstack("vnflcm", "heal", instance_id, "--vnfc-instance", vnfc_id)
        until(lambda: front not in kubectl.pods(), "the pod is replaced")
        assert operator.settled(instance_id, "HEAL")["operationState"] == "COMPLETED"

        for kind, steps, number in (("SCALE_OUT", "2", 3), ("SCALE_IN", "1", 2)):
            accepted = operator.openstack(
                "vnflcm", "scale", instance_id, "--type", kind,
                "--aspect-id", scalable.ASPECT, "--number-of-steps", steps,
            )  # fmt: skip
            assert "has been accepted" in accepted
            assert operator.settled(instance_id, "SCALE")["operationState"] == "COMPLETED"
            assert len(recorded(operator.show(instance_id))["VDU2"]) == number
        guides.terminate_and_delete(operator, instance_id)
        assert kubectl.pods() == {}


OPERATIONS: dict[str, tuple[str, Json]] = {
    "a heal of a VNFC": ("heal", {"vnfcInstanceId": ["VDU1"]}),
    "a heal of the VNF": ("heal", {}),
    "a scaling": ("scale", {"type": "SCALE_OUT", "aspectId": scalable.ASPECT}),
}


@pytest.mark.parametrize("way", ["retry", "rollback"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_of_a_killed_service_is_finished_or_rolled_back(
    name: str, way: str, cluster: EmbeddedCluster, kubectl: Kubectl, tmp_path: Path
) -> None:
    task, body = OPERATIONS[name]
    with served(tmp_path) as service:
        client = client_of(service, "v2")
        path = client.create(client.onboard(scalable.package(tmp_path)))
        client.do("POST", f"{path}/instantiate", scalable.instantiation(client.vims(cluster)))
        before = {name: pod["metadata"]["uid"] for name, pod in kubectl.pods().items()}
        cluster.behaviour.bad_images = ["*"]
        cluster.behaviour.backoff_seconds = 0.1
        operation = client.begin("POST", f"{path}/{task}", _with_ids(body, client, path))
        until(lambda: set(kubectl.pods()) - set(before), "a new pod is there")
        service.kill()
        cluster.behaviour.bad_images = []
        service.start()

        client = client_of(service, "v2")
        settled = client.settled(operation)
        assert settled["operationState"] == "FAILED_TEMP"
        assert "ended before the operation did" in json.dumps(settled["error"])
        state = {"retry": "COMPLETED", "rollback": "ROLLED_BACK"}[way]
        client.do("POST", f"{operation}/{way}", state=state)

        shown, pods = client.call("GET", path), kubectl.pods()
        listed = sorted(name for names in recorded(shown).values() for name in names)
        assert listed == sorted(pods)
        scaled = task == "scale" and way == "retry"
        assert len(pods) == (3 if scaled else 2)
        (status,) = shown["instantiatedVnfInfo"]["scaleStatus"]
        assert status["scaleLevel"] == (1 if scaled else 0)
        client.do("POST", f"{path}/terminate", {"terminationType": "FORCEFUL"})
        assert kubectl.pods() == {}


def _with_ids(body: Json, client: Client, path: str) -> Json:
    """Return a request with the ids of VNFCs in place of their VDUs."""
    if "vnfcInstanceId" not in body:
        return body
    info = client.call("GET", path)["instantiatedVnfInfo"]
    vnfcs = [vnfc["id"] for vnfc in info["vnfcInfo"] if vnfc["vduId"] in body["vnfcInstanceId"]]
    return {**body, "vnfcInstanceId": vnfcs}
