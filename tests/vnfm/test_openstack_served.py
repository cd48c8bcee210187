# SPDX-License-Identifier: Apache-2.0
"""VNFs in Heat stacks with the service as a process: killed, and used by ``openstack``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from container_update.emulator.heat import ResourceFault
from tests.tacker import test_user_guides as guides
from tests.tacker.operator import Operator
from tests.vnfm.client import Client, assert_finish_or_go_back
from tests.vnfm.clouds import (
    BLUE_GREEN,
    ROLLING,
    Cloud,
    CloudVnf,
    Sample,
    clouded,
    instantiated,
)
from tests.vnfm.served import Served, served
from tests.vnfm.test_load import client_of
from tests.vnfm.waiting import until

ENDS = {"retry": ("COMPLETED", "2.0"), "rollback": ("ROLLED_BACK", "1.0")}


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with clouded() as running:
        yield running


# --- killed in the middle -----------------------------------------------------------------------


@pytest.mark.parametrize("action", ENDS)
@pytest.mark.parametrize("name", [BLUE_GREEN, ROLLING])
def test_a_change_whose_service_was_killed_can_be_retried_or_rolled_back(
    name: str, action: str, cloud: Cloud, tmp_path: Path
) -> None:
    state, version = ENDS[action]
    with served(tmp_path) as service:
        sample = Sample(name, cloud, tmp_path, scripts=name == ROLLING)
        vnf = instantiated(client_of(service, "v2"), sample, cloud.vims())
        operation = killed_in_the_middle(vnf, service, "front-2.0", vnf.begin_change)
        failed = vnf.client.settled(operation)
        assert failed["operationState"] == "FAILED_TEMP"
        assert_finish_or_go_back(failed)
        vnf.recover(failed, action, state)
        vnf.check(version)


def killed_in_the_middle(
    vnf: CloudVnf, service: Served, image: str, begin: Callable[[], str]
) -> str:
    """Kill the service while the second VNFC gets an image, and start it again.

    :return: the path of the operation.
    """
    stack = vnf.sample.cloud.stack
    second = ResourceFault(where=lambda had: had.get("image") == image, nth=2, stuck=True)
    stack.faults.resources.append(second)
    operation = begin()
    until(lambda: second.seen >= 2, "the second server is being created")
    service.kill()
    stack.faults.resources.clear()

    def is_idle() -> bool:
        stack.release()
        return vnf.sample.cloud.is_at_rest()

    until(is_idle, "Heat is idle")
    service.start()
    return operation


# --- by the client ------------------------------------------------------------------------------


def test_the_openstack_client_does_what_the_samples_readme_says(
    cloud: Cloud, tmp_path: Path
) -> None:
    sample = Sample(BLUE_GREEN, cloud, tmp_path)
    with served(tmp_path) as service:
        operator = Operator(service, "v2")
        file = tmp_path / "vim_config.yaml"
        file.write_text(yaml.safe_dump(cloud.legacy()))
        output = operator.openstack_v1(
            "vim", "register", "--config-file", str(file), "--is-default", "mycloud"
        )
        old, new = (guides.upload(operator, sample.zipped(side)) for side in guides.SIDES)
        instance_id = guides.create(operator, old)
        guides.instantiate(operator, instance_id, sample.instantiation(), tmp_path)
        vnf = CloudVnf(Client(client_of(service, "v2").http, "v2"), sample,
                       f"/vnflcm/v2/vnf_instances/{instance_id}")  # fmt: skip
        vnf.check("1.0")

        request = tmp_path / "request.json"
        request.write_text(json.dumps(sample.change()))
        operator.openstack("vnflcm", "change-vnfpkg", instance_id, str(request))
        occurrence = operator.settled(instance_id, "CHANGE_VNFPKG")
        assert occurrence["operationState"] == "COMPLETED", occurrence
        assert vnf.check("2.0")["vnfdId"] == new
        output += operator.openstack("vnflcm", "show", instance_id)
        output += operator.openstack("vnflcm", "op", "show", occurrence["id"])
        refuse_secrets(output, service, vnf)

        guides.terminate_and_delete(operator, instance_id)
        assert cloud.stacks() == {}
        assert set(operator.typed) == guides.documented(BLUE_GREEN)


def refuse_secrets(output: str, service: Served, vnf: CloudVnf) -> None:
    """Check that no response, log or file of the service, and nothing in Heat, holds a password."""
    client = vnf.client
    paths = ["/v1.0/vims", "/vnflcm/v2/vnf_lcm_op_occs", vnf.path, "/metrics"]
    texts = {path: client.send("GET", path).text for path in paths}
    texts |= {"the client's output": output, "the log": service.log()}
    files = [path for path in (service.folder / "state").rglob("*") if path.is_file()]
    assert any(path.name == "vnfm.sqlite" for path in files)
    texts |= {str(path): path.read_bytes().decode("latin-1") for path in files}
    heat = vnf.sample.cloud.heat
    texts |= {
        f"stack {stack['stack_name']}": json.dumps([stack, heat.files(stack["stack_name"])])
        for stack in heat.stacks()
    }
    shown = [
        source for source, text in texts.items() for s in vnf.sample.cloud.secrets if s in text
    ]
    assert shown == []
