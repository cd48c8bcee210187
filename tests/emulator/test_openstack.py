# SPDX-License-Identifier: Apache-2.0
"""The emulated Keystone and Heat, used by OpenStack's own clients."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from container_update.emulator.heat import EmbeddedOpenStack, ResourceFault

heatclient = pytest.importorskip("heatclient.client")
exc = pytest.importorskip("heatclient.exc")
identity = pytest.importorskip("keystoneauth1.identity.v3")
session = pytest.importorskip("keystoneauth1.session")

NESTED = yaml.safe_dump(
    {
        "heat_template_version": "2015-04-30",
        "parameters": {"image": {"type": "string"}},
        "resources": {
            "CP1": {"type": "OS::Neutron::Port", "properties": {"network": "net0"}},
            "VDU1": {
                "type": "OS::Nova::Server",
                "properties": {
                    "image": {"get_param": "image"},
                    "networks": [{"port": {"get_resource": "CP1"}}],
                },
            },
        },
        "outputs": {"ip": {"value": {"get_attr": ["CP1", "fixed_ips", 0, "ip_address"]}}},
    }
)
TOP: dict[str, Any] = {
    "heat_template_version": "2015-04-30",
    "parameters": {"image": {"type": "string"}, "size": {"type": "number", "default": 2}},
    "resources": {
        "group": {
            "type": "OS::Heat::AutoScalingGroup",
            "properties": {
                "min_size": 1,
                "max_size": 5,
                "desired_capacity": {"get_param": "size"},
                "resource": {"type": "n.yaml", "properties": {"image": {"get_param": "image"}}},
            },
        }
    },
    "outputs": {"size": {"value": {"get_attr": ["group", "current_size"]}}},
}


@pytest.fixture
def cloud() -> Iterator[EmbeddedOpenStack]:
    with EmbeddedOpenStack() as running:
        running.faults.seconds = 0.001
        yield running


@pytest.fixture
def heat(cloud: EmbeddedOpenStack) -> Any:
    auth = cloud.auth()
    password = identity.Password(**{**auth, "auth_url": f"{auth['auth_url']}/v3"})
    return heatclient.Client("1", session=session.Session(password))


def settled(heat: Any, stack: str = "vnf") -> Any:
    """Wait until nothing changes the stack and return it."""
    deadline = time.monotonic() + 20
    while (stack_object := heat.stacks.get(stack)).stack_status.endswith("IN_PROGRESS"):
        assert time.monotonic() < deadline, stack_object.stack_status
        time.sleep(0.005)
    return stack_object


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition of the cloud."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def create(heat: Any, template: dict[str, Any] = TOP, **parameters: Any) -> Any:
    stack_parameters = {"image": "old", **parameters}
    files = {"n.yaml": NESTED}
    heat.stacks.create(
        stack_name="vnf", template=template, files=files, parameters=stack_parameters
    )
    return settled(heat)


def ids(heat: Any, kind: str) -> dict[str, str]:
    """Return the ids of the resources of a type, by their parents' names."""
    resources = heat.resources.list("vnf", nested_depth=4)
    return {
        getattr(entry, "parent_resource", ""): entry.physical_resource_id
        for entry in resources
        if entry.resource_type == kind
    }


# What changes in the server's properties, and whether it is another server then.
SERVER_CHANGES = [
    ({"image": "b"}, False),
    ({"image": "b", "image_update_policy": "REPLACE"}, True),
    ({"flavor": "large"}, False),
    ({"flavor": "large", "flavor_update_policy": "REPLACE"}, True),
    ({"metadata": {"a": "b"}}, False),
    ({"user_data": "#!/bin/sh"}, True),
    ({"key_name": "k"}, True),
    ({"block_device_mapping_v2": [{"volume_id": "v"}]}, True),
]


@pytest.mark.parametrize(("change", "replaced"), SERVER_CHANGES)
def test_a_server_is_changed_in_place_or_replaced_as_its_type_says(
    heat: Any, change: dict[str, Any], replaced: bool
) -> None:
    def template(properties: dict[str, Any]) -> dict[str, Any]:
        server = {"type": "OS::Nova::Server", "properties": properties}
        return {"heat_template_version": "2015-04-30", "resources": {"server": server}}

    plain = {"image": "a", "flavor": "small"}
    heat.stacks.create(stack_name="vnf", template=template(plain))
    settled(heat)
    before = ids(heat, "OS::Nova::Server")
    heat.stacks.update("vnf", template=template({**plain, **change}))
    assert settled(heat).stack_status == "UPDATE_COMPLETE"
    assert (ids(heat, "OS::Nova::Server") != before) is replaced


def test_requests_that_heat_refuses_are_refused(cloud: EmbeddedOpenStack, heat: Any) -> None:
    cloud.faults.resources.append(ResourceFault(stuck=True, times=1))
    body = {"template": TOP, "files": {"n.yaml": NESTED}, "parameters": {"image": "old"}}
    heat.stacks.create(stack_name="vnf", **body)
    with pytest.raises(exc.HTTPConflict, match="already exists"):
        heat.stacks.create(stack_name="vnf", **body)
    with pytest.raises(exc.HTTPBadRequest, match=r"Parameter \(image\) was not provided"):
        heat.stacks.create(stack_name="other", **{**body, "parameters": {}})
    early = {**TOP, "conditions": {}}
    with pytest.raises(exc.HTTPBadRequest, match="section is invalid: conditions"):
        heat.stacks.create(stack_name="other", **{**body, "template": early})
    with pytest.raises(exc.HTTPNotFound, match="could not be found"):
        heat.stacks.get("nobody")
    cloud.faults.stacks_allowed = 1
    with pytest.raises(exc.HTTPForbidden, match="maximum stacks per tenant"):
        heat.stacks.create(stack_name="other", **body)
    until(lambda: cloud.call(lambda engine: len(list(engine.servers()))) == 2)
    cloud.release()
    assert settled(heat).stack_status == "CREATE_COMPLETE"


def test_a_wrong_password_gets_no_token_and_an_expired_token_is_renewed(
    cloud: EmbeddedOpenStack, heat: Any
) -> None:
    create(heat)
    cloud.keystone.expire_tokens()
    assert heat.stacks.get("vnf").stack_status == "CREATE_COMPLETE"
    assert cloud.keystone.issued == 2
    auth = {**cloud.auth(), "password": "wrong"}
    password = identity.Password(**{**auth, "auth_url": f"{auth['auth_url']}/v3"})
    with pytest.raises(Exception, match="requires authentication"):
        session.Session(password).get_token()


def test_its_clouds_yaml_is_enough_for_openstacksdk(
    cloud: EmbeddedOpenStack, heat: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(heat)
    path = cloud.write_clouds_yaml(tmp_path / "clouds.yaml")
    assert path.stat().st_mode & 0o077 == 0
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
    sdk = pytest.importorskip("openstack")
    stacks = sdk.connect(cloud="embedded").orchestration.stacks()
    assert [stack.name for stack in stacks] == ["vnf"]
