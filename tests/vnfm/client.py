"""What a client does over HTTP, with the service in this process or in another one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from container_update.emulator.kubernetes import EmbeddedCluster
from tests.tacker.operator import kubernetes_vim
from tests.vnfm.waiting import until

Json = dict[str, Any]
SETTLED = frozenset({"COMPLETED", "FAILED", "FAILED_TEMP", "ROLLED_BACK"})
PATIENCE_SECONDS = 120.0
FOREIGN_COMMAND = re.compile(r"container-update [a-z]|openstack vnflcm|--[a-z]")
"""What no client of the API can do: commands of other front ends, options of a command line."""


@dataclass(frozen=True)
class Client:
    """A client of one of the two APIs."""

    http: Any
    """What has ``request(method, path, json=, content=, headers=)``: a TestClient, httpx's."""
    api: str = "v1"

    def send(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """Send a request; the answer, whatever it is."""
        headers = {"Version": "2.0.0", **more.pop("headers", {})}
        return self.http.request(method, urlsplit(path).path, json=body, headers=headers, **more)

    def call(self, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        """Send a request that has to be answered with a status; its JSON."""
        answer = self.send(method, path, body)
        assert answer.status_code == status, f"{method} {path}: {answer.text}"
        return answer.json() if answer.content else None

    # --- packages and instances -------------------------------------------------------------------

    def upload(self, package: Path) -> str:
        """Create a package and upload its content; its id."""
        created = self.call("POST", "/vnfpkgm/v1/vnf_packages", {}, 201)
        path = f"/vnfpkgm/v1/vnf_packages/{created['id']}"
        sent = self.http.request(
            "PUT", f"{path}/package_content", content=package.read_bytes(),
            headers={"Content-Type": "application/zip"},
        )  # fmt: skip
        assert sent.status_code == 202, sent.text
        return str(created["id"])

    def read_in(self, package_id: str) -> Json:
        """The package, once the service has read it in or refused it."""
        path = f"/vnfpkgm/v1/vnf_packages/{package_id}"

        def look() -> Json | None:
            package: Json = self.call("GET", path)
            return package if package["onboardingState"] in ("ONBOARDED", "ERROR") else None

        found = until(look, "the package is read in", PATIENCE_SECONDS)
        assert found is not None
        return found

    def onboard(self, package: Path) -> str:
        """Upload a package that is right; its VNFD's id."""
        found = self.read_in(self.upload(package))
        assert found["onboardingState"] == "ONBOARDED", found
        return str(found["vnfdId"])

    def vims(self, cluster: EmbeddedCluster) -> Any:
        """vimConnectionInfo of an instantiate request."""
        entry = kubernetes_vim(cluster)
        return entry if self.api == "v2" else list(entry.values())

    def create(self, vnfd_id: str) -> str:
        """Create an instance; its path."""
        root = f"/vnflcm/{self.api}/vnf_instances"
        created = self.call("POST", root, {"vnfdId": vnfd_id}, 201)
        return f"{root}/{created['id']}"

    # --- operations -------------------------------------------------------------------------------

    def begin(self, method: str, path: str, body: Any = None) -> str:
        """Send a request that is accepted; the path of the operation occurrence."""
        answer = self.send(method, path, body)
        assert answer.status_code == 202, f"{method} {path}: {answer.status_code} {answer.text}"
        return urlsplit(answer.headers["Location"]).path

    def settled(self, operation: str) -> Json:
        """The occurrence, once nobody works at it any more."""

        def look() -> Json | None:
            found: Json = self.call("GET", operation)
            return found if found["operationState"] in SETTLED else None

        found = until(look, f"{operation} ends", PATIENCE_SECONDS)
        assert found is not None
        assert not FOREIGN_COMMAND.search(str(found.get("error")))
        return found

    def do(self, method: str, path: str, body: Any = None, state: str = "COMPLETED") -> Json:
        """Send a request and wait for the operation's end, which has to be a state."""
        found = self.settled(self.begin(method, path, body))
        assert found["operationState"] == state, found.get("error")
        return found


def assert_finish_or_go_back(operation: Json) -> None:
    """Its error names the two requests of API v2 that go on with it or undo it."""
    path = f"POST /vnflcm/v2/vnf_lcm_op_occs/{operation['id']}"
    said = f"Finish it: {path}/retry; or go back: {path}/rollback."
    assert operation["error"]["detail"].endswith(said)
