# SPDX-License-Identifier: Apache-2.0
"""A sample's VNF in the embedded cloud, through the service's API and through Heat."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from container_update.emulator.heat import EmbeddedOpenStack
from container_update.emulator.heat.balancer import Balancer
from tests.internals.core import hot
from tests.internals.stacks import Heat, connect, live, reference
from tests.vnfm.client import Client
from tests.vnfm.conftest import SAMPLES

Json = dict[str, Any]
BLUE_GREEN, ROLLING = "06-openstack-blue-green", "07-openstack-rolling"
VNFC_PASSWORD = "only-the-scripts-know-it"
"""A password in vdu_params."""


def vims(auth: Mapping[str, str]) -> Json:
    """Return the vimConnectionInfo of a cloud by what the client libraries call ``auth``."""
    access = {
        "username": auth["username"],
        "password": auth["password"],
        "project": auth["project_name"],
        "userDomain": auth["user_domain_name"],
        "projectDomain": auth["project_domain_name"],
    }
    vim = {
        "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3",
        "interfaceInfo": {"endpoint": auth["auth_url"]},
        "accessInfo": access,
    }
    return {"vim1": vim}


def registration(auth: Mapping[str, str]) -> Json:
    """Return the VIM that ``openstack vim register`` sends for a cloud, as the default one."""
    credentials = ("username", "password", "user_domain_name")
    return {
        "type": "openstack",
        "name": "cloud",
        "auth_url": auth["auth_url"],
        "auth_cred": {name: auth[name] for name in credentials},
        "vim_project": {
            "name": auth["project_name"],
            "project_domain_name": auth["project_domain_name"],
        },
        "is_default": True,
    }


@dataclass(frozen=True)
class Cloud:
    """The cloud with the load balancer beside it."""

    stack: EmbeddedOpenStack
    balancer: Balancer
    heat: Heat

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that nothing may show."""
        return (self.stack.keystone.password, self.balancer.password, VNFC_PASSWORD)

    def legacy(self) -> Json:
        """Return the content of the file of ``openstack vim register``."""
        return {**self.stack.auth(), "type": "openstack", "cert_verify": "False"}

    def vims(self) -> Json:
        """Return the vimConnectionInfo of an instantiate request of Tacker's v2 API."""
        return vims(self.stack.auth())

    def stacks(self) -> dict[str, str]:
        """Return the status of each stack by its name, the journal's included."""
        return {stack["stack_name"]: stack["stack_status"] for stack in self.heat.stacks()}

    def is_at_rest(self) -> bool:
        """Return whether no stack and no nested stack is changing."""
        stacks = self.heat.stacks()
        states = [stack["stack_status"] for stack in stacks]
        for stack in stacks:
            nested = self.heat.resources(reference(stack), live.DEPTH)
            states += [entry["resource_status"] for entry in nested]
        return not any(state.endswith("_IN_PROGRESS") for state in states)

    def running(self, stack_id: str) -> dict[str, tuple[str, str]]:
        """Return image and flavour of each server of a stack, by its id."""
        (vnf_stack,) = (
            vnf_stack for vnf_stack in self.heat.stacks() if vnf_stack["id"] == stack_id
        )
        servers = {}
        for entry in self.heat.resources(reference(vnf_stack), live.DEPTH):
            if entry["resource_type"] == hot.SERVER:
                stack = entry["links"][1]["href"].partition("/stacks/")[2]
                server = self.heat.resource(stack, entry["resource_name"]) or {}
                attributes = server["attributes"]
                image, flavor = attributes["image"]["id"], attributes["flavor"]["original_name"]
                servers[entry["physical_resource_id"]] = (image, str(flavor))
        return servers


@contextmanager
def clouded() -> Iterator[Cloud]:
    """Yield a cloud that runs until the end of the block."""
    with EmbeddedOpenStack() as stack, Balancer() as balancer:
        stack.faults.seconds = 0.001
        with connect(auth=stack.auth()) as heat:
            yield Cloud(stack, balancer, heat)


@dataclass(frozen=True)
class Sample:
    """A sample's packages and requests, for one cloud."""

    name: str
    cloud: Cloud
    folder: Path
    scripts: bool = True
    """Whether its coordination scripts run, which takes a second each time."""

    def zipped(self, side: str) -> Path:
        """Return the zipped package ``before`` or ``after``, with the load balancer's host key as
        the README says."""
        copy = self.folder / self.name / side
        if not copy.exists():
            shutil.copytree(SAMPLES / self.name / side, copy)
            if side == "after":
                (copy / "Scripts" / "known_hosts").write_text(self.cloud.balancer.known_hosts())
        return Path(shutil.make_archive(str(copy), "zip", copy))

    def instantiation(self, vims: Json | None = None) -> Json:
        """Return an InstantiateVnfRequest; without *vims* for the default VIM."""
        body = {"flavourId": "simple", "additionalParams": {"network": "private"}}
        return {**body, "vimConnectionInfo": vims} if vims else body

    def change(self) -> Json:
        """Return the sample's ChangeCurrentVnfPkgRequest, for the running load balancer."""
        body: Json = json.loads((SAMPLES / self.name / "request.json").read_text())
        params = body["additionalParams"]
        if not self.scripts:
            body["additionalParams"] = params = {
                name: value for name, value in params.items() if "coordinate" not in name
            }
        params["vdu_params"][0]["old_vnfc_param"]["password"] = VNFC_PASSWORD
        if "external_lb_param" in params:
            params["external_lb_param"] = self.cloud.balancer.login()
        return body


@dataclass(frozen=True)
class CloudVnf:
    """An instance of a sample."""

    client: Client
    sample: Sample
    path: str

    @property
    def id(self) -> str:
        """The instance's id."""
        return self.path.rpartition("/")[2]

    @property
    def journal(self) -> str:
        """The name of the stack that holds a change's journal."""
        return f"container-update-{self.id}"

    def shown(self) -> Json:
        """Return the instance's record."""
        record: Json = self.client.call("GET", self.path)
        return record

    def begin_change(self) -> str:
        """Begin the sample's change and return the operation's path."""
        return self.client.begin("POST", f"{self.path}/change_vnfpkg", self.sample.change())

    def change(self, state: str = "COMPLETED") -> Json:
        """Run the sample's change to its end and return the operation."""
        return self.client.do("POST", f"{self.path}/change_vnfpkg", self.sample.change(), state)

    def recover(self, operation: Json, action: str, state: str) -> Json:
        """Retry, roll back or fail a failed operation and return it when it has ended."""
        path = operation["_links"]["self"]["href"]
        answer = self.client.send("POST", f"{path}/{action}")
        assert answer.status_code == (200 if action == "fail" else 202), answer.text
        ended_operation = self.client.settled(path)
        assert ended_operation["operationState"] == state, ended_operation.get("error")
        return ended_operation

    def steps(self, operation: str) -> list[Json]:
        """Return the steps of an operation with their states."""
        progress: Json = self.client.call("GET", f"{operation}/progress")
        return list(progress["steps"])

    def check(self, version: str) -> Json:
        """Check that the record agrees with Heat and with the version; return the record."""
        record, cloud = self.shown(), self.sample.cloud
        info = record["instantiatedVnfInfo"]
        assert set(cloud.stacks().values()) <= {"CREATE_COMPLETE", "UPDATE_COMPLETE"}
        assert len(cloud.stacks()) == 1, "neither a second stack nor a journal is left"
        flavor = {"1.0": "m1.small", "2.0": "m1.medium"}[version]
        running = cloud.running(info["instance_id"])
        assert set(running.values()) == {(f"front-{version}", flavor)}
        recorded = {entry["id"]: resource(entry) for entry in info["vnfcResourceInfo"]}
        assert sorted(recorded.values()) == sorted(running)
        named = {entry["vnfcResourceInfoId"] for entry in info["vnfcInfo"]}
        assert named == set(recorded)
        new = self.sample.change()["vnfdId"]
        assert (record["vnfdId"] == new) is (version == "2.0")
        assert info["metadata"]["stack_id"] == info["instance_id"]
        return record


def resource(entry: Json) -> str:
    """Return the id of the server in a VNFC's record."""
    return str(entry["computeResource"]["resourceId"])


def instantiated(client: Client, sample: Sample, vims: Json | None = None) -> CloudVnf:
    """Onboard both packages, instantiate the sample's VNF and return it."""
    old, _ = (client.onboard(sample.zipped(side)) for side in ("before", "after"))
    vnf = CloudVnf(client, sample, client.create(old))
    client.do("POST", f"{vnf.path}/instantiate", sample.instantiation(vims))
    return vnf
