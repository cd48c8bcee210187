# SPDX-License-Identifier: Apache-2.0
"""The specification's "attributes to be updated" of a CNF, as the service shows them over REST.

The Deployment and the Service are the specification's own sample. The attributes are compared
before and after; besides, those that name a resource have to name what is live, and exactly that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import ANY, Mock

import pytest
import yaml
from fastapi.testclient import TestClient

from container_update import ContainerUpdateError, Options, connect
from container_update.emulator.faults import Fault, Faults, answer
from container_update.emulator.kubernetes import EmbeddedCluster
from tests import attributes
from tests.attributes import (
    COMPUTE,
    METADATA,
    NAME,
    NETWORK,
    NEW,
    SAME,
    STORAGE,
    VNFC_ID,
    VNFC_METADATA,
    VNFD,
    Values,
    became,
)  # fmt: skip
from tests.functional.change_vnfpkg import specification
from tests.functional.upgrade_types import BLUE_GREEN, ROLLING
from tests.internals.core import Collection, KubernetesCluster, ObjectKey, is_deleting
from tests.internals.service import Vault
from tests.vnfm import scalable, vnfs
from tests.vnfm.client import Client

Json = dict[str, Any]

CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: data{suffix}}}
spec: {{accessModes: [ReadWriteMany], resources: {{requests: {{storage: 1Mi}}}}}}
"""
STATEFUL = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: db}}
spec:
  replicas: 2
  serviceName: db
  selector: {{matchLabels: {{app: db}}}}
  template:
    metadata: {{labels: {{app: db}}}}
    spec:
      containers: [{{name: db, image: "{image}"}}]
  volumeClaimTemplates:
  - metadata: {{name: store}}
    spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Mi}}}}}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: probe, labels: {{app: probe}}}}
spec:
  containers: [{{name: probe, image: "{image}"}}]
"""
FOLDER = "Files/kubernetes/"
Files = Callable[[str, str, str], dict[str, str]]
"""The manifests of a package by name: of a version, its image, and the suffix of its names."""


def application(version: str, image: str, suffix: str) -> dict[str, str]:
    """The specification's sample, with a volume beside."""
    body, service = specification.deployment(version, image=image), specification.service(version)
    spec = body["spec"]["template"]["spec"]
    spec["containers"][0]["volumeMounts"].append({"name": "data", "mountPath": "/data"})
    claim = {"claimName": f"data{suffix}"}
    spec["volumes"].append({"name": "data", "persistentVolumeClaim": claim})
    service["metadata"]["name"] += suffix
    config = specification.config_map("original")
    bodies = {"deployment": body, "service": service, "config": config}
    texts = {name: yaml.safe_dump(body) for name, body in bodies.items()}
    return {**texts, "claim": CLAIM.format(suffix=suffix)}


def stateful(_: str, image: str, __: str) -> dict[str, str]:
    """A StatefulSet, whose pods keep their names."""
    return {"stateful": STATEFUL.format(image=image)}


def named_pods(version: str, image: str, suffix: str) -> dict[str, str]:
    """The same, and a Pod."""
    return {**stateful(version, image, suffix), "pod": POD.format(image=image)}


ONE_VDU = {"VDU1": "app-name"}
TWO_VDUS = {"VDU1": "db", "VDU2": "probe"}


@dataclass(frozen=True)
class Cnf:
    """A VNF over REST, and its namespace."""

    client: Client
    kubernetes: KubernetesCluster
    path: str
    vnfd_ids: tuple[str, str]
    """Of the old and of the new package."""
    def_files: list[str]
    """Of the new package."""

    def show(self) -> Json:
        """Return the VnfInstance."""
        shown: Json = self.client.call("GET", self.path)
        return shown

    def change(self, upgrade_type: str, def_files: list[str] | None = None) -> Json:
        """Change to the new package and return the occurrence."""
        params: Json = {"upgrade_type": upgrade_type}
        if def_files:
            params["lcm-kubernetes-def-files"] = def_files
        body = {"vnfdId": self.vnfd_ids[1], "additionalParams": params}
        return self.client.do("POST", f"{self.path}/change_vnfpkg", body)

    def objects(self, group: str, kind: str) -> list[Json]:
        """Return the live objects of a kind, without those that are being deleted."""
        items = self.kubernetes.list(Collection(group, kind, "default")).items
        return [item for item in items if not is_deleting(item)]

    def names(self, group: str, kind: str) -> set[str]:
        """Return the names of the live objects of a kind."""
        return {item["metadata"]["name"] for item in self.objects(group, kind)}

    def live(self) -> Values:
        """Return each attribute that names resources, with the live resources' names."""
        return {
            COMPUTE: self.names("", "Pod"),
            NETWORK: self.names("", "Service") - {"kubernetes"},
            STORAGE: self.claims(),
            NAME: self.names("apps", "Deployment"),
        }

    def claims(self) -> set[str]:
        """Return the claims of the live pods; others may remain because they hold data."""
        pods = self.objects("", "Pod")
        volumes = [volume for pod in pods for volume in pod["spec"].get("volumes") or ()]
        claims = [volume.get("persistentVolumeClaim") or {} for volume in volumes]
        return {claim["claimName"] for claim in claims if claim}


@pytest.fixture
def options() -> Options:
    return Options(timeout=30, grace_period=1, drain_seconds=0)


@pytest.fixture
def client(http: TestClient) -> Client:
    return Client(http, "v2")


@dataclass
class Launcher:
    """Instantiates CNFs."""

    client: Client
    cluster: EmbeddedCluster
    kubernetes: KubernetesCluster
    folder: Path

    def __call__(
        self,
        files: Files,
        vdus: dict[str, str],
        *,
        renames: bool = False,
        moves: bool = False,
    ) -> Cnf:
        """Onboard the old and the new package and instantiate the old one.

        :param renames: Service and claim have a name of their own in each version.
        :param moves: the files have other paths in the new package.
        """
        vnfd_ids, def_files = [], []
        for version, image in (("original", "nginx:alpine"), ("new", "nginx:2")):
            suffix = f"-{version}" if renames else ""
            folder = f"{FOLDER}{version}/" if moves else FOLDER
            texts = {
                f"{folder}{name}.yaml": text for name, text in files(version, image, suffix).items()
            }
            driver = vnfs.ours(self.client.api)
            path, vnfd_id = vnfs.package(self.folder, version, driver, texts, vdus)
            vnfd_ids.append(vnfd_id)
            def_files.append(list(texts))
            self.client.onboard(path)
        path = self.client.create(vnfd_ids[0])
        old, new = def_files
        request = vnfs.instantiation(self.client.vims(self.cluster), def_files=old)
        self.client.do("POST", f"{path}/instantiate", request)
        return Cnf(self.client, self.kubernetes, path, (vnfd_ids[0], vnfd_ids[1]), new)


@pytest.fixture
def launch(client: Client, cluster: EmbeddedCluster, tmp_path: Path) -> Iterator[Launcher]:
    with connect(str(cluster.write_kubeconfig(tmp_path / "kubeconfig"))) as kubernetes:
        yield Launcher(client, cluster, kubernetes, tmp_path)


def values(instance: Json) -> Values:
    """Return the values of each attribute of the specification's list."""
    metadata = instance["instantiatedVnfInfo"]["metadata"]
    return {
        **attributes.values(instance),
        METADATA: {str(metadata["lcm-kubernetes-def-files"])},
        NAME: {body["metadata"]["name"] for body in metadata["vdu_reses"].values()},
    }


BLUE_GREEN_TABLE = {
    VNFD: NEW, COMPUTE: NEW, NETWORK: NEW, STORAGE: NEW, NAME: SAME,
    METADATA: SAME, VNFC_ID: SAME, VNFC_METADATA: SAME,
}  # fmt: skip
ROLLING_TABLE = {
    VNFD: NEW, VNFC_ID: NEW, COMPUTE: NEW, VNFC_METADATA: NEW,
    METADATA: SAME, NETWORK: SAME, STORAGE: SAME, NAME: SAME,
}  # fmt: skip
CASES = {
    "Blue-Green": (BLUE_GREEN, True, False, BLUE_GREEN_TABLE),
    "Blue-Green, Service and claim stay": (
        BLUE_GREEN, False, False, BLUE_GREEN_TABLE | {NETWORK: SAME, STORAGE: SAME},
    ),
    "Blue-Green, def-files in the request": (
        BLUE_GREEN, True, True, BLUE_GREEN_TABLE | {METADATA: NEW},
    ),
    "rolling": (ROLLING, False, False, ROLLING_TABLE),
    "rolling, def-files in the request": (ROLLING, False, True, ROLLING_TABLE | {METADATA: NEW}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_attributes_of_a_cnf_follow_its_pods_and_objects(case: str, launch: Launcher) -> None:
    upgrade_type, renames, names_def_files, table = CASES[case]
    cnf = launch(application, ONE_VDU, renames=renames, moves=names_def_files)
    instance = cnf.show()
    before = values(instance)
    assert {name: before[name] for name in cnf.live()} == cnf.live()
    occurrence = cnf.change(upgrade_type, cnf.def_files if names_def_files else None)
    after = cnf.show()
    assert {name: became(before[name], values(after)[name]) for name in before} == table
    assert {name: values(after)[name] for name in cnf.live()} == cnf.live()
    for shown in (instance, after):
        assert_complete(shown)
    assert kinds_of_change(occurrence) == {
        "affectedVnfcs": {"MODIFIED"} if upgrade_type == BLUE_GREEN else {"ADDED", "REMOVED"},
        **({"affectedVirtualLinks": {"MODIFIED"},
            "affectedVirtualStorages": {"MODIFIED"}} if renames else {}),
    }  # fmt: skip


def assert_complete(instance: Json) -> None:
    """Check the attributes that SOL003 requires of an entry, and that VNFCs name their storages."""
    info = instance["instantiatedVnfInfo"]
    (link,) = info["vnfVirtualLinkResourceInfo"]
    (storage,) = info["virtualStorageResourceInfo"]
    assert link["vnfVirtualLinkDescId"] == link["networkResource"]["resourceId"]
    assert link["networkResource"]["vimLevelResourceType"] == "Service"
    assert storage["virtualStorageDescId"] == "data"
    assert storage["storageResource"]["vimLevelResourceType"] == "PersistentVolumeClaim"
    assert [vnfc["storageResourceIds"] for vnfc in info["vnfcResourceInfo"]] == [
        [storage["id"]], [storage["id"]],
    ]  # fmt: skip


def kinds_of_change(occurrence: Json) -> dict[str, set[str]]:
    """Return the changeTypes in each list of resourceChanges."""
    return {
        name: {entry["changeType"] for entry in entries}
        for name, entries in occurrence["resourceChanges"].items()
    }


def vnfcs(instance: Json) -> dict[str, Json]:
    """Return the entry of each pod."""
    entries = instance["instantiatedVnfInfo"]["vnfcResourceInfo"]
    return {entry["computeResource"]["resourceId"]: entry for entry in entries}


# --- operations after a change --------------------------------------------------------------------


@pytest.mark.parametrize("upgrade_type", [BLUE_GREEN, ROLLING])
def test_a_modification_that_changes_nothing_leaves_the_records(
    upgrade_type: str, launch: Launcher
) -> None:
    cnf = launch(application, ONE_VDU)
    cnf.change(upgrade_type)
    before = cnf.show()["instantiatedVnfInfo"]
    occurrence = cnf.client.do("PATCH", cnf.path, {"vnfdId": cnf.vnfd_ids[1]})
    assert cnf.show()["instantiatedVnfInfo"] == before
    assert "resourceChanges" not in occurrence


@pytest.mark.parametrize("upgrade_type", [BLUE_GREEN, ROLLING])
def test_a_changed_vnf_is_modified_and_terminated(upgrade_type: str, launch: Launcher) -> None:
    cnf = launch(application, ONE_VDU)
    cnf.change(upgrade_type)
    assert cnf.live()[NAME] == {"app-name"}
    cnf.client.do("PATCH", cnf.path, {"vnfdId": cnf.vnfd_ids[0]})
    after = cnf.show()
    assert {name: values(after)[name] for name in cnf.live()} == cnf.live()
    workload = after["instantiatedVnfInfo"]["metadata"]["vdu_reses"]["VDU1"]
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    assert (workload["metadata"]["name"], container["image"]) == ("app-name", "nginx:alpine")
    assert_complete(after)
    occurrence = cnf.client.do("POST", f"{cnf.path}/terminate", {"terminationType": "FORCEFUL"})
    assert list(kinds_of_change(occurrence).values()) == [{"REMOVED"}] * 3
    assert not cnf.live()[NAME] | cnf.live()[COMPUTE]


# --- operations that are given up -----------------------------------------------------------------


def two_workloads(version: str, image: str, suffix: str) -> dict[str, str]:
    """The specification's sample twice; the second one has an image of its own."""
    texts = application(version, image, suffix)
    other = texts["deployment"].replace("app-name", "other").replace("nginx:", "broken:")
    return {**texts, "other": other}


@pytest.mark.parametrize("verb", ["modify", "change_vnfpkg", "terminate"])
@pytest.mark.parametrize("api", ["v1", "v2"])
def test_an_operation_that_is_given_up_leaves_a_record_of_what_runs(
    api: str, verb: str, launch: Launcher, cluster: EmbeddedCluster
) -> None:
    cnf = replace(launch, client=replace(launch.client, api=api))(
        two_workloads, {**ONE_VDU, "VDU2": "other"}
    )
    before = set(vnfcs(cnf.show()))
    cluster.behaviour.bad_images = ["broken:2"]
    params = {"upgrade_type": ROLLING}
    if verb == "terminate":
        refusing = Faults(Fault(answer(403), method="DELETE", path="*/deployments/other"))
        cluster.middlewares.append(refusing)
        request = "POST", f"{cnf.path}/terminate", {"terminationType": "FORCEFUL"}
    elif verb == "modify" or api == "v1":  # which has no other request for a change
        metadata = {} if verb == "modify" else params
        request = "PATCH", cnf.path, {"vnfdId": cnf.vnfd_ids[1], "metadata": metadata}
    else:
        body = {"vnfdId": cnf.vnfd_ids[1], "additionalParams": params}
        request = "POST", f"{cnf.path}/change_vnfpkg", body
    failed = cnf.client.do(*request, "FAILED_TEMP")
    assert cnf.names("", "Pod") != before

    given_up = cnf.client.call("POST", f"{failed['_links']['self']['href']}/fail")

    live = cnf.names("", "Pod")
    assert set(vnfcs(cnf.show())) == live
    changes = given_up["resourceChanges"]["affectedVnfcs"]
    assert {entry["computeResource"]["resourceId"] for entry in changes} >= live - before


@pytest.mark.parametrize("lacks", ["answers", "keys"])
def test_an_operation_is_given_up_though_the_vim_cannot_be_asked(
    lacks: str, launch: Launcher, cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cnf = launch(stateful, {"VDU1": "db"})
    before = cnf.show()
    cluster.middlewares.append(Faults(Fault(answer(403), times=1000)))
    failed = cnf.client.do("POST", f"{cnf.path}/heal", {}, "FAILED_TEMP")
    with monkeypatch.context() as patch:
        if lacks == "keys":
            patch.setattr(Vault, "open", Mock(side_effect=ContainerUpdateError("no key opens it")))
        cnf.client.call("POST", f"{failed['_links']['self']['href']}/fail")
    assert cnf.show() == before


# --- pods that keep their names -------------------------------------------------------------------


@pytest.mark.parametrize("upgrade_type", [BLUE_GREEN, ROLLING])
def test_pods_that_keep_their_names_are_told_of(upgrade_type: str, launch: Launcher) -> None:
    cnf = launch(named_pods, TWO_VDUS)
    before = vnfcs(cnf.show())
    occurrence = cnf.change(upgrade_type)
    after = vnfcs(cnf.show())
    assert before.keys() == after.keys() == {"db-0", "db-1", "probe"}
    renewed = {pod for pod in after if after[pod]["id"] != before[pod]["id"]}
    described = {pod for pod in after if after[pod]["metadata"] != before[pod]["metadata"]}
    assert renewed == described == (set(after) if upgrade_type == ROLLING else set())
    changes = [
        (entry["computeResource"]["resourceId"], entry["changeType"], entry["id"])
        for entry in occurrence["resourceChanges"]["affectedVnfcs"]
    ]
    if upgrade_type == ROLLING:
        added = [(pod, "ADDED", after[pod]["id"]) for pod in after]
        assert changes == [*added, *((pod, "REMOVED", before[pod]["id"]) for pod in before)]
    else:
        assert changes == [(pod, "MODIFIED", after[pod]["id"]) for pod in after]


def test_a_retry_knows_the_pods_that_the_try_before_it_restarted(
    launch: Launcher, cluster: EmbeddedCluster
) -> None:
    cnf = launch(stateful, {"VDU1": "db"})
    before = vnfcs(cnf.show())
    cluster.behaviour.bad_images = ["nginx:2"]
    body = {"vnfdId": cnf.vnfd_ids[1], "additionalParams": {"upgrade_type": ROLLING}}
    failed = cnf.client.do("POST", f"{cnf.path}/change_vnfpkg", body, "FAILED_TEMP")
    assert vnfcs(cnf.show()) == before
    cluster.behaviour.bad_images = []
    cnf.kubernetes.delete(ObjectKey("", "Pod", "default", "db-1"))
    occurrence = cnf.client.do("POST", f"{failed['_links']['self']['href']}/retry")
    after = vnfcs(cnf.show())
    assert before.keys() == after.keys()
    assert not {vnfc["id"] for vnfc in before.values()} & {vnfc["id"] for vnfc in after.values()}
    assert kinds_of_change(occurrence) == {"affectedVnfcs": {"ADDED", "REMOVED"}}


@pytest.mark.parametrize("api", ["v1", "v2"])
def test_a_modification_tells_of_pods_that_keep_their_names(api: str, launch: Launcher) -> None:
    cnf = replace(launch, client=replace(launch.client, api=api))(named_pods, TWO_VDUS)
    before = cnf.show()["instantiatedVnfInfo"]
    occurrence = cnf.client.do("PATCH", cnf.path, {"vnfdId": cnf.vnfd_ids[1]})
    assert cnf.show()["instantiatedVnfInfo"] | {"metadata": ANY} == before | {"metadata": ANY}
    changes = [
        (entry["computeResource"]["resourceId"], entry["changeType"])
        for entry in occurrence["resourceChanges"]["affectedVnfcs"]
    ]
    assert changes == [("db-0", "MODIFIED"), ("db-1", "MODIFIED"), ("probe", "MODIFIED")]
    assert occurrence["resourceChanges"].keys() == {"affectedVnfcs"}


@pytest.mark.parametrize("api", ["v1", "v2"])
def test_each_pod_of_a_stateful_set_has_its_claim(api: str, launch: Launcher) -> None:
    cnf = replace(launch, client=replace(launch.client, api=api))(named_pods, TWO_VDUS)
    cnf.client.do("PATCH", cnf.path, {"vnfdId": cnf.vnfd_ids[1]})
    info = cnf.show()["instantiatedVnfInfo"]
    claims = {
        entry["id"]: (entry["virtualStorageDescId"], entry["storageResource"]["resourceId"])
        for entry in info["virtualStorageResourceInfo"]
    }
    assert info["vnfVirtualLinkResourceInfo"] == []
    assert {
        entry["computeResource"]["resourceId"]: [
            claims[id_] for id_ in entry.get("storageResourceIds") or ()
        ]
        for entry in info["vnfcResourceInfo"]
    } == {"db-0": [("store", "store-db-0")], "db-1": [("store", "store-db-1")], "probe": []}


def test_each_resource_names_the_connection_to_its_vim(client: Client, vnf: str) -> None:
    """ResourceHandle, SOL003 4.4.1.7: also of what an operation adds."""
    request = {"type": "SCALE_OUT", "aspectId": scalable.ASPECT}
    scaled = client.do("POST", f"{vnf}/scale", request)
    instance = client.call("GET", vnf)
    vims = instance["vimConnectionInfo"]
    ids = set(vims) if client.api == "v2" else {vim["id"] for vim in vims}
    vnfcs = instance["instantiatedVnfInfo"]["vnfcResourceInfo"]
    for entry in vnfcs + scaled["resourceChanges"]["affectedVnfcs"]:
        assert {entry["computeResource"]["vimConnectionId"]} == ids
