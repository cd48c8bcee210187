# SPDX-License-Identifier: Apache-2.0
"""Heal and scale of VNFs in Heat stacks, over REST."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from container_update import Options
from container_update.emulator.heat import ResourceFault
from tests.internals.core import build
from tests.vnfm.client import Client
from tests.vnfm.clouds import ROLLING, SAMPLES, Cloud, CloudVnf, Sample, instantiated
from tests.vnfm.conftest import unrecorded

NFV = "  nfv:\n    type: json"
OPTIONS = Options(lease_seconds=3, timeout=20, undo_timeout=20, retry_seconds=2, drain_seconds=0)
Json = dict[str, Any]
ASPECT = "front_servers"
POLICIES = """
  policies:
  - aspects:
      type: tosca.policies.nfv.ScalingAspects
      properties:
        aspects:
          front_servers: {name: front, max_scale_level: 3, step_deltas: [delta_1]}
  - initial:
      type: tosca.policies.nfv.VduInitialDelta
      properties: {initial_delta: {number_of_instances: 1}}
      targets: [VDU1]
  - deltas:
      type: tosca.policies.nfv.VduScalingAspectDeltas
      properties: {aspect: front_servers, deltas: {delta_1: {number_of_instances: 1}}}
      targets: [VDU1]
  - levels:
      type: tosca.policies.nfv.InstantiationLevels
      properties:
        levels:
          small: {description: one, scale_info: {front_servers: {scale_level: 0}}}
          large: {description: three, scale_info: {front_servers: {scale_level: 2}}}
        default_level: large

policy_types:
  tosca.policies.nfv.ScalingAspects:
    derived_from: tosca.policies.Root
    properties: {aspects: {type: map}}
  tosca.policies.nfv.VduInitialDelta:
    derived_from: tosca.policies.Root
    properties: {initial_delta: {type: map}}
  tosca.policies.nfv.VduScalingAspectDeltas:
    derived_from: tosca.policies.Root
    properties: {aspect: {type: string}, deltas: {type: map}}
  tosca.policies.nfv.InstantiationLevels:
    derived_from: tosca.policies.Root
    properties: {levels: {type: map}, default_level: {type: string}}
"""


@pytest.fixture
def options() -> Options:
    return OPTIONS


@pytest.fixture
def sample(cloud: Cloud, tmp_path: Path) -> Sample:
    """The sample with a group of servers, with scaling policies in its VNFD."""
    sample = Sample(ROLLING, cloud, tmp_path, scripts=False)
    copy = tmp_path / ROLLING / "before"
    shutil.copytree(SAMPLES / ROLLING / "before", copy)
    vnfd = copy / "Definitions" / "df_simple.yaml"
    vnfd.write_text(vnfd.read_text() + POLICIES)
    build.write_metadata(copy)
    return sample


def rewritten(sample: Sample, path: str, *replaced: tuple[str, str]) -> None:
    """Replace parts of a file of the old package."""
    package = sample.folder / ROLLING / "before"
    file = package / path
    for old, new in replaced:
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))
    build.write_metadata(package)


@pytest.fixture
def vnf(sample: Sample, http: TestClient) -> CloudVnf:
    return instantiated(Client(http, "v2"), sample, sample.cloud.vims())


def servers(vnf: CloudVnf) -> dict[str, str]:
    """Return what the API calls each VNFC, by its server, the oldest first."""
    info = vnf.shown()["instantiatedVnfInfo"]
    of_resource = {vnfc["vnfcResourceInfoId"]: vnfc["id"] for vnfc in info["vnfcInfo"]}
    recorded = {
        entry["computeResource"]["resourceId"]: of_resource[entry["id"]]
        for entry in info["vnfcResourceInfo"]
    }
    assert sorted(recorded) == sorted(vnf.sample.cloud.running(info["instance_id"]))
    return recorded


def level(vnf: CloudVnf) -> int:
    (status,) = vnf.shown()["instantiatedVnfInfo"]["scaleStatus"]
    assert status["aspectId"] == ASPECT
    return int(status["scaleLevel"])


@pytest.mark.parametrize(("level", "number"), [(None, 3), ("small", 1), ("large", 3)])
def test_a_group_gets_its_size_from_the_level_as_by_tackers_user_data(
    level: str | None, number: int, sample: Sample, http: TestClient
) -> None:
    """11 of Tacker's 22 packages ask for it so."""
    size = ("{get_param: size}", "{get_param: [nfv, VDU, VDU1, desired_capacity]}")
    rewritten(
        sample, "BaseHOT/simple/top.yaml", size, ("  size:\n    type: number\n    default: 2", NFV)
    )
    client = Client(http, "v2")
    vnf = CloudVnf(client, sample, client.create(client.onboard(sample.zipped("before"))))
    asked = {"instantiationLevelId": level} if level else {}
    body = {**sample.instantiation(sample.cloud.vims()), **asked}
    client.do("POST", f"{vnf.path}/instantiate", body)
    assert len(servers(vnf)) == number
    way, after = ("SCALE_OUT", number + 1) if number < 3 else ("SCALE_IN", number - 1)
    client.do("POST", f"{vnf.path}/scale", {"type": way, "aspectId": ASPECT})
    assert len(servers(vnf)) == after


GROUP = """\
    type: OS::Heat::AutoScalingGroup
    properties:
      min_size: 1
      max_size: 4
      desired_capacity: {get_param: size}
      resource:
        type: front.yaml
        properties:
          image: {get_param: image}
          flavor: {get_param: flavor}
          network: {get_param: network}
          apart: {get_resource: apart}
"""
ALONE = """\
    type: front.yaml
    properties:
      image: {get_param: image}
      flavor: {get_param: flavor}
      network: {get_param: network}
      apart: {get_resource: apart}
"""


@pytest.fixture
def alone(sample: Sample, http: TestClient) -> CloudVnf:
    """The VNF with a server that is in no scaling group, although the VNFD scales it."""
    rewritten(sample, "BaseHOT/simple/top.yaml", (GROUP, ALONE))
    rewritten(
        sample, "Definitions/df_simple.yaml", ("default_level: large", "default_level: small")
    )
    return instantiated(Client(http, "v2"), sample, sample.cloud.vims())


def test_a_vdu_in_no_scaling_group_is_not_scaled_and_the_request_is_refused(
    alone: CloudVnf,
) -> None:
    body = {"type": "SCALE_OUT", "aspectId": ASPECT}
    refused = alone.client.call("POST", f"{alone.path}/scale", body, 422)
    assert "VDU1: expected its server in a resource of type OS::Heat::AutoSc" in refused["detail"]
    alone.client.do("POST", f"{alone.path}/heal", {})  # no operation is left that keeps it out


def test_a_level_that_the_templates_cannot_have_is_refused(
    alone: CloudVnf,
) -> None:
    client, sample = alone.client, alone.sample
    path = client.create(alone.shown()["vnfdId"])
    body = {**sample.instantiation(sample.cloud.vims()), "instantiationLevelId": "large"}
    refused = client.call("POST", f"{path}/instantiate", body, 422)
    assert "instantiationLevelId: expected at most 1 instance of VDU1" in refused["detail"]


def test_a_heal_of_a_vnfc_replaces_its_server_and_no_other(vnf: CloudVnf) -> None:
    first, *others = before = servers(vnf)
    operation = vnf.client.do("POST", f"{vnf.path}/heal", {"vnfcInstanceId": [before[first]]})
    after = servers(vnf)
    assert first not in after
    assert set(others) < set(after)
    assert len(after) == 3
    (affected,) = operation["resourceChanges"]["affectedVnfcs"]
    assert affected["changeType"] == "MODIFIED"
    assert affected["computeResource"]["resourceId"] in after


@pytest.mark.parametrize("everything", [False, True])
def test_a_heal_of_the_whole_vnf_replaces_all_servers(everything: bool, vnf: CloudVnf) -> None:
    before, stack = servers(vnf), vnf.shown()["instantiatedVnfInfo"]["instance_id"]
    vnf.client.do("POST", f"{vnf.path}/heal", {"additionalParams": {"all": everything}})
    after = servers(vnf)
    assert not set(before) & set(after)
    assert len(after) == len(before)
    assert (vnf.shown()["instantiatedVnfInfo"]["instance_id"] == stack) is not everything


@pytest.mark.parametrize("everything", [False, True])
def test_a_heal_that_fails_is_finished_by_a_retry_and_cannot_be_rolled_back(
    everything: bool, vnf: CloudVnf
) -> None:
    before, cloud = servers(vnf), vnf.sample.cloud
    cloud.stack.faults.resources.append(
        ResourceFault(where=lambda properties: "image" in properties, times=1)
    )
    body = {"additionalParams": {"all": everything}}
    operation = vnf.client.do("POST", f"{vnf.path}/heal", body, "FAILED_TEMP")
    assert "rollback" not in operation["_links"]
    assert "rollback" not in operation["error"]["detail"]
    vnf.client.call("POST", f"{operation['_links']['self']['href']}/rollback", status=409)
    vnf.recover(operation, "retry", "COMPLETED")
    assert len(servers(vnf)) == 3
    assert not set(before) & set(servers(vnf))


def test_a_heal_of_everything_that_was_done_and_not_recorded_is_retried(
    vnf: CloudVnf, monkeypatch: pytest.MonkeyPatch
) -> None:
    with unrecorded(monkeypatch):
        body = {"additionalParams": {"all": True}}
        operation = vnf.client.do("POST", f"{vnf.path}/heal", body, "FAILED_TEMP")
    vnf.recover(operation, "retry", "COMPLETED")
    assert len(servers(vnf)) == 3


def test_an_aspect_is_scaled_out_and_in_again_and_the_newest_go_first(vnf: CloudVnf) -> None:
    oldest, *_ = before = servers(vnf)
    for kind, steps, scale_level, number in (("OUT", 1, 3, 4), ("IN", 1, 2, 3), ("IN", 2, 0, 1)):
        body = {"type": f"SCALE_{kind}", "aspectId": ASPECT, "numberOfSteps": steps}
        operation = vnf.client.do("POST", f"{vnf.path}/scale", body)
        assert len(servers(vnf)) == number
        assert level(vnf) == scale_level
        kinds = {each["changeType"] for each in operation["resourceChanges"]["affectedVnfcs"]}
        assert kinds == {"ADDED" if kind == "OUT" else "REMOVED"}
        assert set(servers(vnf)) & set(before) == set(list(before)[:number])
    assert set(servers(vnf)) == {oldest}


@pytest.mark.parametrize("way", ["retry", "rollback"])
def test_a_scaling_that_fails_is_finished_or_rolled_back(way: str, vnf: CloudVnf) -> None:
    before = servers(vnf)
    vnf.sample.cloud.stack.faults.resources.append(
        ResourceFault(where=lambda properties: "image" in properties, times=1)
    )
    body = {"type": "SCALE_OUT", "aspectId": ASPECT}
    operation = vnf.client.do("POST", f"{vnf.path}/scale", body, "FAILED_TEMP")
    assert level(vnf) == 2
    vnf.recover(operation, way, {"retry": "COMPLETED", "rollback": "ROLLED_BACK"}[way])
    assert len(servers(vnf)) == {"retry": 4, "rollback": 3}[way]
    assert level(vnf) == {"retry": 3, "rollback": 2}[way]
    assert set(before) <= set(servers(vnf))


def test_a_level_that_the_vnfd_does_not_have_is_refused(vnf: CloudVnf) -> None:
    body = {"type": "SCALE_OUT", "aspectId": ASPECT, "numberOfSteps": 2}
    refused = vnf.client.call("POST", f"{vnf.path}/scale", body, 422)
    assert re.search("level from 0 to 3 after the operation, found 4", refused["detail"])
