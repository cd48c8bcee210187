# SPDX-License-Identifier: Apache-2.0
"""The states that the tests of the suite presuppose: made by requests, one by one for those that
send the same request to a resource in another state."""

from __future__ import annotations

import json
import shutil
import socket
import uuid
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from container_update import connect
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.vnfm import scalable, vnfs
from tests.vnfm.client import Client
from tests.vnfm.consumer import Consumer

Variables = Mapping[str, str]
CLOSED = "https://127.0.0.1:9"
ROOT = "/vnflcm/v1"
REPLACED = {
    "schemas/VnfLcmOpOcc.schema.json": "schemas/vnfLcmOpOcc.schema.json",
    "schemas/Subscriptions.schema.json": "schemas/subscriptions.schema.json",
    "jsons/NsdInfoModificationDisable.json": "jsons/VnfPkgInfoModificationsDisabled.json",
    "jsons/NsdInfoModificationEnable.json": "jsons/VnfPkgInfoModifications.json",
}
"""Files that the tests name and the suite does not have, and those of it that they mean."""


@dataclass
class States:
    """Packages, instances, operations and subscriptions of the service."""

    folder: Path
    http: Any
    cluster: EmbeddedCluster
    consumer: Consumer
    ids: dict[str, str] = field(default_factory=dict)
    number: int = 0
    silent: socket.socket = field(default_factory=socket.socket)
    """A port that accepts connections and never answers."""

    @property
    def client(self) -> Client:
        return Client(self.http, "v1")

    def fill(self, suite: Path) -> None:
        """Onboard the packages, create what is shared, complete the data of the suite."""
        self.silent.bind(("127.0.0.1", 0))
        self.silent.listen()
        scaled = scalable.package(self.folder)
        self.ids["vnfd"] = self.client.onboard(scaled)
        self.ids["package"] = self._package_id(self.ids["vnfd"])
        with zipfile.ZipFile(scaled) as files:
            sizes = {each.filename: each.file_size for each in files.infolist()}
        self.ids["artifact"] = max(sizes, key=lambda name: sizes[name])
        for name in ("plain", "disabled", "new"):
            (self.folder / name).mkdir()
            path, vnfd_id = vnfs.package(self.folder / name, "1.0", vnfs.ours("v1"))
            if name == "new":
                self.ids["zip"] = str(path)
                break
            self.ids[f"{name} vnfd"] = vnfd_id
            self.ids[name] = self.client.upload(path)
            self.client.read_in(self.ids[name])
        self._enable("disabled", "DISABLED")
        self.ids["created"] = self._new_package()
        self.ids["running"] = self.running()
        self.ids["idle"] = self.idle()
        for root in (ROOT, "/vnfpkgm/v1"):
            for _ in range(3):
                self.subscribe(root)
        self._complete(suite)

    def _complete(self, suite: Path) -> None:
        for api in suite.glob("SOL00[35]/VNF[LP]*Management-API"):
            for wanted, meant in REPLACED.items():
                if (api / meant).exists() and not (api / wanted).exists():
                    shutil.copyfile(api / meant, api / wanted)
            (api / "files").mkdir(exist_ok=True)
            shutil.copyfile(self.ids["zip"], api / "files/vnfPackage.zip")
            for name, change in {
                "lccnSubscriptionRequest": {"callbackUri": self.consumer.url},
                "subscriptions": {"callbackUri": self.consumer.url},
                "createVnfRequest": {"vnfdId": self.ids["vnfd"]},
                "scaleVnfRequest": {"aspectId": scalable.ASPECT},
                "terminateVnfRequest": {"terminationType": "FORCEFUL"},
            }.items():
                file = api / f"jsons/{name}.json"
                if file.exists():
                    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
            request = json.dumps(self._instantiation())
            (api / "jsons/instantiateVnfRequest.json").write_text(request)

    # --- resources ------------------------------------------------------------

    def _package_id(self, vnfd_id: str) -> str:
        return str(self.client.call("GET", f"/vnfpkgm/v1/onboarded_vnf_packages/{vnfd_id}")["id"])

    def _new_package(self) -> str:
        return str(self.client.call("POST", "/vnfpkgm/v1/vnf_packages", {}, 201)["id"])

    def _enable(self, name: str, state: str) -> None:
        path = f"/vnfpkgm/v1/vnf_packages/{self.ids[name]}"
        if self.client.call("GET", path)["operationalState"] != state:
            self.client.call("PATCH", path, {"operationalState": state})

    def subscribe(self, root: str) -> str:
        """Create a subscription."""
        body = {"callbackUri": self.consumer.url}
        return str(self.client.call("POST", f"{root}/subscriptions", body, 201)["id"])

    def _instantiation(self, endpoint: str = "") -> Any:
        """Return a request in a namespace of its own."""
        self.number += 1
        namespace = f"etsi-{self.number}"
        with connect(str(self.cluster.write_kubeconfig(self.folder / "kubeconfig"))) as connected:
            metadata = {"name": namespace}
            connected.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        vims = [{"id": "vim", **entry} for entry in self.client.vims(self.cluster)]
        if endpoint:
            vims = [{**vims[0], "interfaceInfo": {"endpoint": endpoint}}]
        request = scalable.instantiation(vims)
        params = {**request["additionalParams"], "namespace": namespace}
        return {**request, "additionalParams": params}

    def idle(self) -> str:
        """Create an instance."""
        return self.client.create(self.ids["vnfd"]).rpartition("/")[2]

    def running(self) -> str:
        """Create an instance that is instantiated."""
        instance = self.idle()
        path = f"{ROOT}/vnf_instances/{instance}/instantiate"
        self.ids["completed"] = self.client.do("POST", path, self._instantiation())["id"]
        return instance

    def failed(self) -> tuple[str, str]:
        """Create an instance whose operation is FAILED_TEMP, and return both."""
        instance = self.idle()
        path = f"{ROOT}/vnf_instances/{instance}/instantiate"
        operation = self.client.do("POST", path, self._instantiation(CLOSED), "FAILED_TEMP")
        return instance, operation["id"]

    def processing(self) -> str:
        """Return an operation that waits for its VIM."""
        port = self.silent.getsockname()[1]
        path = f"{ROOT}/vnf_instances/{self.idle()}/instantiate"
        begun = self.client.begin("POST", path, self._instantiation(f"https://127.0.0.1:{port}"))
        return begun.rpartition("/")[2]

    # --- variables ------------------------------------------------------------

    def usual(self, name: str) -> Variables:
        """Return the variables for the tests of a file."""
        ids, unknown = self.ids, str(uuid.uuid4())
        of_onboarded = "plain" if name.endswith("VNFDInIndividualVNFPackage") else ""
        root = ROOT if "Lifecycle" in name else "/vnfpkgm/v1"
        packages = {
            "vnfPackageId": ids["plain" if of_onboarded else "package"],
            "vndId": ids["plain vnfd" if of_onboarded else "vnfd"],
            "vnfPkgId": ids["package"],
            "vnfPkgZipVNFD": ids["package"],
            "vndIdZipVnfd": ids["vnfd"],
            "vnfPkgPlainVNFD": ids["plain"],
            "onboardingStateVnfPkgId": ids["created"],
            "vnfPackageOctetStreamId": ids["package"],
            "vnfdOctetStreamId": ids["vnfd"],
            "artifactPath": ids["artifact"],
            "POS_FILTER": f"filter=(eq,vnfdId,{ids['vnfd']})",
            "filter_ok": f"filter=(eq,callbackUri,{self.consumer.url})",
            "callbackUri": self.consumer.url,
            "disabledVnfPackageId": ids["disabled"],
            "instantiatedVnfPackageId": ids["package"],
            "newVnfPackageId": self._new_package(),
            "vnfPkgViaUriId": self._new_package(),
            "creatingVnfPackageId": ids["package"],
            "creatingVnfPkgViaUriId": ids["package"],
            "subscriptionId": self.subscribe(root),
            "erroneousSubscriptionId": unknown,
        }
        return {
            **packages,
            "vnfInstanceId": ids["running"],
            "notInstantiatedVnfInstanceId": ids["idle"],
            "vnfLcmOpOccId": ids["completed"],
            "requestedFlavour": "simple",
            "sub_filter": "filter=(eq,callbackUri,x)",
            "VNFM_DUPLICATION": "1",
            "CancelMode": json.dumps({"cancelMode": "FORCEFUL"}),
        }

    def special(self, name: str) -> Mapping[str, Callable[[], Variables]]:
        """Return the tests of a file with a state of their own, and what makes it."""
        file = name.rpartition("/")[2]
        unknown = {"vnfInstanceId": str(uuid.uuid4()), "vnfLcmOpOccId": str(uuid.uuid4())}

        def instance(make: Callable[[], str]) -> Callable[[], Variables]:
            return lambda: {**self.usual(name), "vnfInstanceId": make()}

        def operation(make: Callable[[], str]) -> Callable[[], Variables]:
            return lambda: {**self.usual(name), "vnfLcmOpOccId": make()}

        def nothing() -> Variables:
            return {**self.usual(name), **unknown}

        def package(state: str) -> Callable[[], Variables]:
            def enabled() -> Variables:
                self._enable("plain", state)
                return {**self.usual(name), "vnfPackageId": self.ids["plain"]}

            return enabled

        of_operation = {
            "": operation(lambda: self.failed()[1]),
            " Conflict (Not-FAILED_TEMP)": operation(lambda: self.ids["completed"]),
            " Not Found": nothing,
        }
        return {
            "IndividualVNFInstance": {
                "PATCH Individual VNFInstance": instance(self.idle),
                "PATCH Individual VNFInstance Precondition failed": instance(self.idle),
                "PATCH Individual VNFInstance Conflict": instance(lambda: self.failed()[0]),
                "DELETE Individual VNFInstance": instance(self.idle),
            },
            "HealVNFTask": {
                "POST Heal a vnfInstance": instance(self.running),
                "POST Heal a vnfInstance Conflict (Not-Instantiated)": instance(self.idle),
                "POST Heal a vnfInstance Not Found": nothing,
            },
            "ScaleVNFTask": {
                "POST Scale a vnfInstance": instance(self.running),
                "POST Scale a vnfInstance Conflict (Not-Instantiated)": instance(self.idle),
                "POST Scale a vnfInstance Not Found": nothing,
            },
            "InstantiateVNFTask": {"Instantiate a vnfInstance": instance(self.idle)},
            "TerminateVNFTask": {
                "POST Terminate a vnfInstance": instance(self.running),
                "POST Terminate a vnfInstance Conflict (Not-Instantiated)": instance(self.idle),
            },
            "RetryOperationTask": {
                f"Post Retry operation task{end}": make for end, make in of_operation.items()
            },
            "RollbackOperationTask": {
                f"Post Rollback operation task{end}": make for end, make in of_operation.items()
            },
            "FailOperationTask": {
                f"Post Fail operation task{end}": make for end, make in of_operation.items()
            },
            "CancelOperationTask": {
                "POST Cancel operation task": operation(self.processing),
                "POST Cancel operation task Not Found": nothing,
            },
            "IndividualVNFPackage": {
                "Disable Individual VNF Package": package("ENABLED"),
                "Disable Individual VNF Package with conflict due to operational state DISABLED":
                    package("DISABLED"),
                "Enable Individual VNF Package": package("DISABLED"),
                "Enable Individual VNF Package with conflict due to operational state ENABLED":
                    package("ENABLED"),
            } if "SOL005" in name else {},
        }.get(file, {})  # fmt: skip
