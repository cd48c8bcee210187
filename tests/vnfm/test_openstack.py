# SPDX-License-Identifier: Apache-2.0
"""VNFs in Heat stacks: their life cycle in the v2 API, and its failures."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from container_update import ClusterError, Options
from container_update.emulator.heat import ResourceFault
from container_update.emulator.heat.faults import NO_HOST
from tests.internals.core import build, hot, packing
from tests.internals.service import Service, Settings, vims
from tests.internals.stacks import (
    Instantiate,
    StackInstance,
    described_by,
    live,
    operate,
    reference,
)
from tests.vnfm.client import Client, assert_finish_or_go_back
from tests.vnfm.clouds import (
    BLUE_GREEN,
    ROLLING,
    Cloud,
    CloudVnf,
    Sample,
    instantiated,
    registration,
    resource,
)
from tests.vnfm.conftest import unrecorded
from tests.vnfm.waiting import until

OPTIONS = Options(lease_seconds=3, timeout=20, undo_timeout=20, retry_seconds=2, drain_seconds=0)
SAMPLES = (BLUE_GREEN, ROLLING)
SCRIPT = "Scripts/configure_balancer.py"
QUOTA = "Quota exceeded for cores (HTTP 403)"
TERMINATION = {"terminationType": "FORCEFUL"}
Json = dict[str, Any]


@pytest.fixture
def options() -> Options:
    return OPTIONS


@pytest.fixture(params=SAMPLES)
def sample(request: pytest.FixtureRequest, cloud: Cloud, tmp_path: Path) -> Sample:
    return Sample(request.param, cloud, tmp_path, scripts=False)


@pytest.fixture
def vnf(sample: Sample, http: TestClient) -> CloudVnf:
    return instantiated(Client(http, "v2"), sample, sample.cloud.vims())


AUTHORITY = "-----BEGIN CERTIFICATE----- QUJD -----END CERTIFICATE-----"
PEM = "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n"


def register(client: Client, cloud: Cloud, credentials: Json | None = None, **more: Any) -> str:
    """Register the cloud as the default VIM, as the client does, and return its id."""
    vim = {**registration(cloud.stack.auth()), **more}
    vim["auth_cred"] |= credentials or {}
    registered: Json = client.call("POST", "/v1.0/vims", {"vim": vim}, 201)
    return str(registered["vim"]["id"])


def new_software(**trouble: Any) -> ResourceFault:
    """Return a fault of servers of the new package: Nova refuses them."""
    refused = {"reason": QUOTA, "error": "Forbidden", **trouble}
    return ResourceFault(where=lambda properties: properties.get("image") == "front-2.0", **refused)


def path_of(operation: Json) -> str:
    return str(operation["_links"]["self"]["href"])


# --- what goes well -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", SAMPLES)
def test_a_vnf_passes_its_whole_life_cycle_on_a_registered_vim(
    name: str, database: str, cloud: Cloud, tmp_path: Path
) -> None:
    settings = Settings(state_dir=str(tmp_path / "state"), auth="none", database_url=database)
    with TestClient(Service(settings, OPTIONS).app, base_url="http://127.0.0.1:9890") as http:
        client = Client(http, "v2")
        register(client, cloud)
        vnf = instantiated(client, Sample(name, cloud, tmp_path))
        before = vnf.check("1.0")["instantiatedVnfInfo"]
        changed = vnf.change()
        after = vnf.check("2.0")["instantiatedVnfInfo"]

        in_place = name == ROLLING
        assert (after["instance_id"] == before["instance_id"]) is in_place
        for listed, handle in (
            ("vnfcResourceInfo", "computeResource"),
            ("vnfVirtualLinkResourceInfo", "networkResource"),
        ):
            old, new = (
                {entry["id"]: entry[handle]["resourceId"] for entry in info[listed]}
                for info in (before, after)
            )
            assert old.keys() == new.keys(), "an entry goes on with another resource"
            assert len(old) == 2
            assert (old == new) is in_place
        affected = changed["resourceChanges"]["affectedVnfcs"]
        assert {each["changeType"] for each in affected} == {"MODIFIED"}
        assert {resource(each) for each in affected} == set(cloud.running(after["instance_id"]))
        assert {step["state"] for step in vnf.steps(path_of(changed))} == {"done"}

        client.do("POST", f"{vnf.path}/terminate", TERMINATION)
        client.call("DELETE", vnf.path, status=204)
        assert cloud.stacks() == {}


def test_a_rollback_reports_a_script_that_cannot_switch_the_traffic_back(
    cloud: Cloud, http: TestClient, tmp_path: Path
) -> None:
    vnf = instantiated(Client(http, "v2"), Sample(BLUE_GREEN, cloud, tmp_path), cloud.vims())
    cloud.balancer.status = 7
    failed = vnf.change("FAILED_TEMP")
    assert "Script Scripts/" in failed["error"]["detail"]
    vnf.recover(failed, "rollback", "ROLLED_BACK")
    steps = {step["object"]: step for step in vnf.steps(path_of(failed))}
    script = steps["Script Scripts/configure_balancer.py (old VNF, VDU1)"]
    assert script["state"] == "failed"
    assert "status 7" in script["message"]
    vnf.check("1.0")


def test_an_instance_stays_on_its_vim_when_another_becomes_the_default(
    cloud: Cloud, http: TestClient, tmp_path: Path
) -> None:
    client = Client(http, "v2")
    vim_id = register(client, cloud)
    vnf = instantiated(client, Sample(ROLLING, cloud, tmp_path, scripts=False))
    other = {"type": "kubernetes", "name": "other", "auth_url": "https://127.0.0.1:9"}
    client.call("POST", "/v1.0/vims", {"vim": {**other, "is_default": True}}, 201)
    assert vnf.shown()["vimConnectionInfo"] == {
        "default": {"vimId": vim_id, "vimType": "openstack"}
    }
    client.do("POST", f"{vnf.path}/terminate", TERMINATION)
    assert cloud.stacks() == {}


ACCESS: dict[str, tuple[Json, Json]] = {
    "certificates are checked": ({"cert_verify": "True"}, {"verify": True}),
    "they are not": ({"cert_verify": "False"}, {"verify": False}),
    "they are, with an authority of its own": ({"ssl_ca_cert": AUTHORITY}, {"authority": PEM}),
    "in a region": ({}, {"region": "south"}),
}


@pytest.mark.parametrize("case", ACCESS)
def test_a_registered_vim_is_accessed_with_its_settings(
    case: str, cloud: Cloud, http: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    credentials, expected = ACCESS[case]
    client, sample = Client(http, "v2"), Sample(ROLLING, cloud, tmp_path)
    register(client, cloud, credentials, extra={"region": "south"})
    connection: Json = {}

    def connect(auth: Json, options: Options, region: str | None, verify: bool | str) -> None:
        authority = Path(verify).read_text() if isinstance(verify, str) else ""
        connection.update(auth=auth, region=region, verify=verify, authority=authority)
        raise ClusterError("no further call is needed")

    monkeypatch.setattr("container_update.openstack.client.connect", connect)
    path = client.create(client.onboard(sample.zipped("before")))
    client.do("POST", f"{path}/instantiate", sample.instantiation(), "FAILED_TEMP")
    assert connection["auth"] == cloud.stack.auth()
    assert {name: connection[name] for name in expected} == expected


# --- what goes wrong ----------------------------------------------------------------------------


def test_a_failed_instantiation_reports_heats_reason_and_leaves_nothing(
    cloud: Cloud, http: TestClient, tmp_path: Path
) -> None:
    client, sample = Client(http, "v2"), Sample(ROLLING, cloud, tmp_path)
    vnf = CloudVnf(client, sample, client.create(client.onboard(sample.zipped("before"))))
    cloud.stack.faults.resources.append(ResourceFault(nth=2, times=1))
    request = sample.instantiation(cloud.vims())
    failed = client.do("POST", f"{vnf.path}/instantiate", request, "FAILED_TEMP")
    assert NO_HOST in failed["error"]["detail"]
    assert f"stack vnf-{vnf.id} is CREATE_FAILED" in failed["error"]["detail"]
    (step,) = vnf.steps(path_of(failed))
    assert (step["object"], step["state"]) == (f"Stack vnf-{vnf.id}", "failed")
    vnf.recover(failed, "rollback", "ROLLED_BACK")
    assert cloud.stacks() == {}
    assert vnf.shown()["instantiationState"] == "NOT_INSTANTIATED"

    cloud.stack.faults.resources = [ResourceFault(nth=2, times=1)]
    failed = client.do("POST", f"{vnf.path}/instantiate", request, "FAILED_TEMP")
    vnf.recover(failed, "retry", "COMPLETED")
    vnf.check("1.0")


def test_a_stack_that_is_still_being_created_is_deleted_before_a_retry(
    cloud: Cloud, tmp_path: Path
) -> None:
    package = tmp_path / ROLLING / "before"
    Sample(ROLLING, cloud, tmp_path).zipped("before")
    body = described_by(str(package), "simple", {"network": "private"}, Options())
    stuck = ResourceFault(stuck=True, times=1)
    cloud.stack.faults.resources = [stuck]
    killed = cloud.heat.create({"stack_name": "vnf-1", **body.as_request()})
    until(lambda: stuck.seen, "its first server is being created")
    operate(Instantiate("vnf-1", body, OPTIONS, "1"), StackInstance(cloud.heat, "1", OPTIONS))
    assert cloud.stacks() == {"vnf-1": "CREATE_COMPLETE"}
    assert reference(cloud.heat.stack("vnf-1") or {}) != killed


def test_the_name_of_a_deleted_stack_is_waited_for(
    cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heat 24 refuses it for a moment after it has said DELETE_COMPLETE."""
    package = tmp_path / ROLLING / "before"
    Sample(ROLLING, cloud, tmp_path).zipped("before")
    body = described_by(str(package), "simple", {"network": "private"}, Options())
    create, refusals = cloud.heat.create, [ClusterError("StackExists", status=409)] * 2

    def create_later(request: dict[str, Any], **how: Any) -> str:
        if refusals:
            raise refusals.pop()
        return create(request, **how)

    monkeypatch.setattr(cloud.heat, "create", create_later)
    operate(Instantiate("vnf-1", body, OPTIONS, "1"), StackInstance(cloud.heat, "1", OPTIONS))
    assert cloud.stacks() == {"vnf-1": "CREATE_COMPLETE"}


WRONG_PARAMETERS = {
    "one is missing": ({}, "network have no default and no value"),
    "one is not the template's": ({"network": "n", "netwrok": "n"}, "netwrok: expected parameters"),
}


@pytest.mark.parametrize("case", WRONG_PARAMETERS)
def test_the_error_names_parameters_that_do_not_fit_the_template(
    case: str, cloud: Cloud, http: TestClient, tmp_path: Path
) -> None:
    client, sample = Client(http, "v2"), Sample(ROLLING, cloud, tmp_path)
    path = client.create(client.onboard(sample.zipped("before")))
    params, message = WRONG_PARAMETERS[case]
    request = {**sample.instantiation(cloud.vims()), "additionalParams": params}
    refused = client.call("POST", f"{path}/instantiate", request, 422)
    assert message in refused["detail"]
    assert cloud.stacks() == {}


# --- networks that another system manages ---------------------------------------------------------

NETWORKS = """
  inside:
    type: OS::Neutron::Net
  inside_subnet:
    type: OS::Neutron::Subnet
    properties:
      network: {get_resource: inside}
      cidr: 192.168.7.0/24
"""


def with_networks(sample: Sample) -> None:
    """Give both packages a network inside and one of a connection point outside."""
    for side in ("before", "after"):
        sample.zipped(side)
        package = sample.folder / ROLLING / side
        top = package / "BaseHOT" / "simple" / "top.yaml"
        text = top.read_text() + NETWORKS
        text = text.replace("  network:\n    type: string\n", "  nfv:\n    type: json\n")
        text = text.replace("{get_param: network}", "{get_param: [nfv, CP, CP1, network]}")
        top.write_text(text.replace("{get_resource: apart}", "{get_resource: inside}"))
        build.write_metadata(package)


def link(network: str, **more: Any) -> Json:
    return {"id": f"link-{network}", "resourceId": network, **more}


def test_networks_of_the_requests_take_effect_and_are_recorded(
    cloud: Cloud, http: TestClient, tmp_path: Path
) -> None:
    client, sample = Client(http, "v2"), Sample(ROLLING, cloud, tmp_path, scripts=False)
    with_networks(sample)
    old, _ = (client.onboard(sample.zipped(side)) for side in ("before", "after"))
    vnf = CloudVnf(client, sample, client.create(old))
    points = [{"cpdId": "CP1", "cpConfig": {}}]
    body = sample.instantiation(cloud.vims()) | {
        "additionalParams": {},
        "extVirtualLinks": [link("net-a", extCps=points)],
        "extManagedVirtualLinks": [link("net-in", vnfVirtualLinkDescId="inside")],
    }
    client.do("POST", f"{vnf.path}/instantiate", body)

    def used() -> set[tuple[str, str]]:
        """Return the two networks that the stacks of the servers got."""
        top = reference(cloud.heat.stack(f"vnf-{vnf.id}") or {})
        found = set()
        for entry in cloud.heat.resources(top, live.DEPTH):
            assert not entry["resource_type"].startswith(("OS::Neutron::Net", "OS::Neutron::Sub"))
            if entry["resource_type"] == hot.SERVER:
                stack = entry["links"][1]["href"].partition("/stacks/")[2]
                values = live.body_of(cloud.heat, stack).parameters
                found.add((values["network"], values["apart"]))
        return found

    assert used() == {("net-a", "net-in")}
    change = sample.change() | {"extVirtualLinks": [link("net-b", extCps=points)]}
    client.do("POST", f"{vnf.path}/change_vnfpkg", change)
    assert used() == {("net-b", "net-in")}, "the managed network stays where no request says more"
    info = vnf.shown()["instantiatedVnfInfo"]
    assert [e["id"] for e in info["extVirtualLinkInfo"]] == ["link-net-a", "link-net-b"]
    (managed,) = info["extManagedVirtualLinkInfo"]
    assert managed["vnfVirtualLinkDescId"] == "inside"
    assert managed["networkResource"] == {"resourceId": "net-in"}


def test_a_managed_network_that_the_template_does_not_have_is_refused(
    cloud: Cloud, http: TestClient, tmp_path: Path
) -> None:
    client, sample = Client(http, "v2"), Sample(ROLLING, cloud, tmp_path, scripts=False)
    path = client.create(client.onboard(sample.zipped("before")))
    links = [link("net-in", vnfVirtualLinkDescId="inside")]
    body = {**sample.instantiation(cloud.vims()), "extManagedVirtualLinks": links}
    refused = client.call("POST", f"{path}/instantiate", body, 422)
    assert "expected a network of the top template (it has none), found inside" in refused["detail"]


def test_a_change_that_fails_is_rolled_back(vnf: CloudVnf) -> None:
    cloud = vnf.sample.cloud
    before = vnf.shown()
    cloud.stack.faults.resources.append(new_software(nth=2))
    failed = vnf.change("FAILED_TEMP")
    assert QUOTA in failed["error"]["detail"]
    assert_finish_or_go_back(failed)
    assert "failed" in {step["state"] for step in vnf.steps(path_of(failed))}
    assert vnf.journal in cloud.stacks()
    vnf.recover(failed, "rollback", "ROLLED_BACK")
    after = vnf.check("1.0")
    infos = [record["instantiatedVnfInfo"] for record in (before, after)]
    for listed in ("vnfcResourceInfo", "vnfcInfo", "vnfVirtualLinkResourceInfo"):
        old, new = ([entry["id"] for entry in info[listed]] for info in infos)
        assert old == new
    assert infos[0]["instance_id"] == infos[1]["instance_id"]

    cloud.stack.faults.resources.clear()
    vnf.change()
    vnf.check("2.0")


def test_a_failed_change_can_be_retried(vnf: CloudVnf) -> None:
    vnf.sample.cloud.stack.faults.resources.append(new_software(nth=2, times=1))
    vnf.recover(vnf.change("FAILED_TEMP"), "retry", "COMPLETED")
    vnf.check("2.0")


def test_the_stacks_of_an_abandoned_change_are_deleted_with_the_vnf(
    cloud: Cloud, http: TestClient, tmp_path: Path
) -> None:
    sample = Sample(BLUE_GREEN, cloud, tmp_path, scripts=False)
    vnf = instantiated(Client(http, "v2"), sample, cloud.vims())
    cloud.stack.faults.resources = [new_software(nth=2)]
    vnf.recover(vnf.change("FAILED_TEMP"), "fail", "FAILED")
    assert len(cloud.stacks()) == 3
    vnf.client.do("POST", f"{vnf.path}/terminate", TERMINATION)
    assert cloud.stacks() == {}


def test_a_change_that_was_done_and_not_recorded_can_only_be_retried(
    vnf: CloudVnf, monkeypatch: pytest.MonkeyPatch
) -> None:
    with unrecorded(monkeypatch):
        failed = vnf.change("FAILED_TEMP")
    refused = vnf.recover(failed, "rollback", "FAILED_TEMP")
    message = "It can only be finished: POST /vnflcm/v2/vnf_lcm_op_occs/"
    assert message in refused["error"]["detail"]
    vnf.recover(failed, "retry", "COMPLETED")
    vnf.check("2.0")


REFUSED: list[tuple[Json, str]] = [
    ({"vdu_params": None}, "vdu_params: expected the VDUs to change"),
    ({"vdu_params": [{"vdu_id": "VDU9"}]}, "vdu_id: expected a VDU of the new package (it has VDU"),
    ({"vdu_params": [{"vdu_id": "VDU1", "old_vnfc_param": {"cp_name": "CP1"}}]}, "param.username:"),
    ({"lcm-operation-cordinate-new-vnf": "x.py"}, "mean lcm-operation-coordinate-new-vnf?"),
    ({"lcm-operation-coordinate-new-vnf": "Scripts/none.py"}, "Scripts/none.py"),
]


def test_a_wrong_change_is_refused_before_it_is_accepted(vnf: CloudVnf) -> None:
    cases = [*REFUSED]
    if vnf.sample.name == BLUE_GREEN:
        unknown_balancer = {"lcm-operation-coordinate-new-vnf": SCRIPT, "external_lb_param": ...}
        cases.append((unknown_balancer, "external_lb_param: expected"))
    for params, words in cases:
        request = vnf.sample.change()
        given = {**request["additionalParams"], **params}
        request["additionalParams"] = {k: v for k, v in given.items() if v is not ...}
        refused = vnf.client.call("POST", f"{vnf.path}/change_vnfpkg", request, 422)
        assert words in refused["detail"]
    vnf.check("1.0")


def test_a_change_that_failed_before_it_began_is_rolled_back(
    cloud: Cloud, http: TestClient, tmp_path: Path
) -> None:
    vnf = instantiated(Client(http, "v2"), Sample(ROLLING, cloud, tmp_path), cloud.vims())
    stack_id = vnf.check("1.0")["instantiatedVnfInfo"]["instance_id"]
    (name,) = cloud.stacks()
    cloud.stack.call(lambda heat: setattr(heat.find(stack_id), "status", "FAILED"))
    failed = vnf.change("FAILED_TEMP")
    assert f"stack {name}" in failed["error"]["detail"]
    cloud.stack.call(lambda heat: setattr(heat.find(stack_id), "status", "COMPLETE"))
    vnf.recover(failed, "rollback", "ROLLED_BACK")
    vnf.check("1.0")


def test_a_failed_termination_can_be_retried(
    cloud: Cloud, http: TestClient, tmp_path: Path
) -> None:
    sample = Sample(ROLLING, cloud, tmp_path, scripts=False)
    vnf = instantiated(Client(http, "v2"), sample, cloud.vims())
    cloud.stack.faults.resources.append(
        ResourceFault("the volume is in use", action="DELETE", times=1)
    )
    failed = vnf.client.do("POST", f"{vnf.path}/terminate", TERMINATION, "FAILED_TEMP")
    assert "DELETE_FAILED, Heat says: " in failed["error"]["detail"]
    assert "the volume is in use" in failed["error"]["detail"]
    vnf.recover(failed, "retry", "COMPLETED")
    assert cloud.stacks() == {}


def test_a_wrong_password_is_reported_and_not_shown(
    cloud: Cloud, http: TestClient, tmp_path: Path
) -> None:
    client, sample = Client(http, "v2"), Sample(ROLLING, cloud, tmp_path)
    path = client.create(client.onboard(sample.zipped("before")))
    wrong = cloud.vims()
    wrong["vim1"]["accessInfo"]["password"] = "this-is-not-it"
    request = sample.instantiation(wrong)
    failed = client.do("POST", f"{path}/instantiate", request, "FAILED_TEMP")
    assert "Keystone refused a token" in failed["error"]["detail"]
    assert "this-is-not-it" not in json.dumps(failed)


def test_a_hidden_parameter_is_passed_to_heat_and_shown_nowhere(
    cloud: Cloud, http: TestClient, tmp_path: Path
) -> None:
    client, sample = Client(http, "v2"), Sample(ROLLING, cloud, tmp_path)
    sample.zipped("before")
    package = tmp_path / ROLLING / "before"
    top = package / "BaseHOT" / "simple" / "top.yaml"
    hidden = "parameters:\n  greeting: {type: string, hidden: true}\n"
    top.write_text(top.read_text().replace("parameters:\n", hidden, 1))
    build.write_metadata(package)
    path = client.create(client.onboard(sample.zipped("before")))
    request = sample.instantiation(cloud.vims())
    request["additionalParams"]["greeting"] = "open-sesame-11"
    operation = client.do("POST", f"{path}/instantiate", request)
    assert operation["operationParams"]["additionalParams"] == {
        "network": "private",
        "greeting": "***",
    }
    assert "open-sesame-11" not in client.send("GET", path).text
    stacks = cloud.stack.call(lambda heat: [(s.name, s.parameters) for s in heat.stacks])
    (greeting,) = [values["greeting"] for name, values in stacks if name.startswith("vnf-")]
    assert greeting == "open-sesame-11"
    journals = cloud.stack.call(
        lambda heat: [
            text
            for stack in heat.stacks
            if not stack.name.startswith("vnf-")
            for text in stack.files.values()
            if text != "ended"
        ]
    )
    assert all("greeting" not in str(unpacked(text)["bodies"]) for text in journals)


def unpacked(text: str) -> Json:
    """Return what a journal holds."""
    content: Json = packing.unpack(base64.b64decode(text.partition(".")[0]))
    return content


# --- what is refused ----------------------------------------------------------------------------


def test_the_v1_api_refuses_vnfs_on_openstack(
    cloud: Cloud, http: TestClient, tmp_path: Path
) -> None:
    client, sample = Client(http, "v1"), Sample(ROLLING, cloud, tmp_path)
    vim_id = register(client, cloud)
    path = client.create(client.onboard(sample.zipped("before")))
    vim = {"id": "vim", "vimId": vim_id, "vimType": "openstack"}
    request = {**sample.instantiation(), "vimConnectionInfo": [vim]}
    refused = client.call("POST", f"{path}/instantiate", request, 422)
    assert "v2 API" in refused["detail"]


def test_the_error_about_a_missing_extra_says_what_to_install(
    cloud: Cloud, http: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vims, "find_spec", lambda _: None)
    client, sample = Client(http, "v2"), Sample(ROLLING, cloud, tmp_path)
    path = client.create(client.onboard(sample.zipped("before")))
    request = sample.instantiation(cloud.vims())
    refused = client.call("POST", f"{path}/instantiate", request, 422)
    assert "pip install 'container-update[openstack]'" in refused["detail"]
    vim = {"type": "openstack", "name": "cloud", "auth_url": cloud.stack.url}
    refused = client.call("POST", "/v1.0/vims", {"vim": vim}, 422)
    assert "pip install 'container-update[openstack]'" in refused["detail"]
