"""A sample's VNF in the embedded cloud, as a client of the service sees it and as Heat does."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from container_update.emulator.heat import EmbeddedOpenStack
from container_update.emulator.heat.balancer import Balancer
from container_update.package import hot
from container_update.stacks import live
from container_update.stacks.client import Heat, connect, reference
from tests.vnfm.client import Client
from tests.vnfm.conftest import SAMPLES

Json = dict[str, Any]
BLUE_GREEN, ROLLING = "06-openstack-blue-green", "07-openstack-rolling"
VNFC_PASSWORD = "only-the-scripts-know-it"
"""In vdu_params."""


@dataclass(frozen=True)
class Cloud:
    """The cloud with the load balancer beside it."""

    stack: EmbeddedOpenStack
    balancer: Balancer
    heat: Heat

    @property
    def secrets(self) -> tuple[str, ...]:
        """What nobody may be shown."""
        return (self.stack.keystone.password, self.balancer.password, VNFC_PASSWORD)

    def legacy(self) -> Json:
        """What ``openstack vim register`` has in its file."""
        return {**self.stack.auth(), "type": "openstack", "cert_verify": "False"}

    def vims(self) -> Json:
        """vimConnectionInfo of an instantiate request, as Tacker's v2 API has it."""
        auth = self.stack.auth()
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

    def stacks(self) -> dict[str, str]:
        """Every stack's name, the journal's too, to its state."""
        return {page["stack_name"]: page["stack_status"] for page in self.heat.stacks()}

    def is_at_rest(self) -> bool:
        """Nothing is done to any stack, or in one that is nested in it."""
        pages = self.heat.stacks()
        states = [page["stack_status"] for page in pages]
        for page in pages:
            inside = self.heat.resources(reference(page), live.DEPTH)
            states += [entry["resource_status"] for entry in inside]
        return not any(state.endswith("_IN_PROGRESS") for state in states)

    def running(self, stack_id: str) -> dict[str, tuple[str, str]]:
        """The servers of a stack: id to image and flavour."""
        (page,) = (page for page in self.heat.stacks() if page["id"] == stack_id)
        found = {}
        for entry in self.heat.resources(reference(page), live.DEPTH):
            if entry["resource_type"] == hot.SERVER:
                stack = entry["links"][1]["href"].partition("/stacks/")[2]
                seen = (self.heat.resource(stack, entry["resource_name"]) or {})["attributes"]
                image = seen["image"]["id"]
                found[entry["physical_resource_id"]] = (image, str(seen["flavor"]))
        return found


@contextmanager
def clouded() -> Iterator[Cloud]:
    """A cloud that runs until the end of the block."""
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
    """Its coordination scripts run, which takes a second each time."""

    def zipped(self, side: str) -> Path:
        """The package ``before`` or ``after``; with the load balancer's host key, as the README
        says."""
        copy = self.folder / self.name / side
        if not copy.exists():
            shutil.copytree(SAMPLES / self.name / side, copy)
            if side == "after":
                (copy / "Scripts" / "known_hosts").write_text(self.cloud.balancer.known_hosts())
        return Path(shutil.make_archive(str(copy), "zip", copy))

    def instantiation(self, vims: Json | None = None) -> Json:
        """An InstantiateVnfRequest; the default VIM where none is given."""
        body = {"flavourId": "simple", "additionalParams": {"network": "private"}}
        return {**body, "vimConnectionInfo": vims} if vims else body

    def change(self) -> Json:
        """The sample's ChangeCurrentVnfPkgRequest, for the load balancer that there is."""
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
    """An instance of a sample that was made."""

    client: Client
    sample: Sample
    path: str

    @property
    def id(self) -> str:
        """The instance's."""
        return self.path.rpartition("/")[2]

    @property
    def journal(self) -> str:
        """The stack that a change's journal is in."""
        return f"container-update-{self.id}"

    def shown(self) -> Json:
        """The instance's record."""
        found: Json = self.client.call("GET", self.path)
        return found

    def begin_change(self) -> str:
        """Begin the sample's change; the operation's path."""
        return self.client.begin("POST", f"{self.path}/change_vnfpkg", self.sample.change())

    def change(self, state: str = "COMPLETED") -> Json:
        """The sample's change, to its end."""
        return self.client.do("POST", f"{self.path}/change_vnfpkg", self.sample.change(), state)

    def asked(self, operation: Json, what: str, state: str) -> Json:
        """Have a failed operation retried, rolled back or given up; the operation, ended so."""
        path = operation["_links"]["self"]["href"]
        answer = self.client.send("POST", f"{path}/{what}")
        assert answer.status_code == (200 if what == "fail" else 202), answer.text
        found = self.client.settled(path)
        assert found["operationState"] == state, found.get("error")
        return found

    def steps(self, operation: str) -> list[Json]:
        """How far an operation is."""
        found: Json = self.client.call("GET", f"{operation}/progress")
        return list(found["steps"])

    def check(self, version: str) -> Json:
        """The record says what Heat has, and that is what one of the packages says; the record."""
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
    """The server that a VNFC's record names."""
    return str(entry["computeResource"]["resourceId"])


def made(client: Client, sample: Sample, vims: Json | None = None) -> CloudVnf:
    """The sample's VNF, instantiated; both packages are onboarded."""
    old, _ = (client.onboard(sample.zipped(side)) for side in ("before", "after"))
    vnf = CloudVnf(client, sample, client.create(old))
    client.do("POST", f"{vnf.path}/instantiate", sample.instantiation(vims))
    return vnf
