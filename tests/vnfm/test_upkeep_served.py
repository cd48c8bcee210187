# SPDX-License-Identifier: Apache-2.0
"""Heal and scale with the ``openstack`` client."""

from __future__ import annotations

from pathlib import Path

import pytest

from container_update.emulator.kubernetes import EmbeddedCluster
from tests.tacker import test_user_guides as guides
from tests.tacker.conftest import Kubectl
from tests.tacker.operator import Operator
from tests.vnfm import scalable
from tests.vnfm.scalable import recorded
from tests.vnfm.served import served
from tests.vnfm.waiting import until


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
