# SPDX-License-Identifier: Apache-2.0
"""A client of the API, for a service in this process or in another one."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.tacker.operator import ClusterAccess, kubernetes_vim
from tests.vnfm.waiting import until

Json = dict[str, Any]
SETTLED = frozenset({"COMPLETED", "FAILED", "FAILED_TEMP", "ROLLED_BACK"})
PATIENCE_SECONDS = 600.0 if "OS_CLOUD" in os.environ else 120.0
FOREIGN_COMMAND = re.compile(r"container-update [a-z]|openstack vnflcm|--[a-z]")
"""Commands and options of command lines, which no message to an API client may mention."""


@dataclass(frozen=True)
class Client:
    """A client of one of the two APIs."""

    http: Any
    """An object with ``request(method, path, json=, content=, headers=)``, such as a TestClient."""
    api: str = "v1"

    def send(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """Send a request and return the response with any status."""
        headers = {"Version": "2.0.0", **more.pop("headers", {})}
        return self.http.request(method, urlsplit(path).path, json=body, headers=headers, **more)

    def call(self, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        """Send a request, check the response's status and return its JSON."""
        answer = self.send(method, path, body)
        assert answer.status_code == status, f"{method} {path}: {answer.text}"
        return answer.json() if answer.content else None

    # --- packages and instances -------------------------------------------------------------------

    def upload(self, package: Path) -> str:
        """Create a package, upload its content and return its id."""
        created = self.call("POST", "/vnfpkgm/v1/vnf_packages", {}, 201)
        path = f"/vnfpkgm/v1/vnf_packages/{created['id']}"
        sent = self.http.request(
            "PUT", f"{path}/package_content", content=package.read_bytes(),
            headers={"Content-Type": "application/zip"},
        )  # fmt: skip
        assert sent.status_code == 202, sent.text
        return str(created["id"])

    def read_in(self, package_id: str) -> Json:
        """Wait until the service has read or refused the package and return it."""
        path = f"/vnfpkgm/v1/vnf_packages/{package_id}"

        def read_package() -> Json | None:
            package: Json = self.call("GET", path)
            return package if package["onboardingState"] in ("ONBOARDED", "ERROR") else None

        package = until(read_package, "the package is read in", PATIENCE_SECONDS, lasts=True)
        assert package is not None
        return package

    def onboard(self, package: Path) -> str:
        """Upload a valid package and return its VNFD's id."""
        onboarded = self.read_in(self.upload(package))
        assert onboarded["onboardingState"] == "ONBOARDED", onboarded
        return str(onboarded["vnfdId"])

    def vims(self, cluster: ClusterAccess) -> Any:
        """Return the vimConnectionInfo of an instantiate request."""
        entry = kubernetes_vim(cluster)
        return entry if self.api == "v2" else list(entry.values())

    def create(self, vnfd_id: str) -> str:
        """Create an instance and return its path."""
        root = f"/vnflcm/{self.api}/vnf_instances"
        created = self.call("POST", root, {"vnfdId": vnfd_id}, 201)
        return f"{root}/{created['id']}"

    # --- operations -------------------------------------------------------------------------------

    def begin(self, method: str, path: str, body: Any = None) -> str:
        """Send a request that is accepted and return the operation occurrence's path."""
        answer = self.send(method, path, body)
        assert answer.status_code == 202, f"{method} {path}: {answer.status_code} {answer.text}"
        return urlsplit(answer.headers["Location"]).path

    def settled(self, operation: str) -> Json:
        """Wait for the end of the occurrence and return it."""

        def read_operation() -> Json | None:
            settled_operation: Json = self.call("GET", operation)
            return settled_operation if settled_operation["operationState"] in SETTLED else None

        settled_operation = until(read_operation, f"{operation} ends", PATIENCE_SECONDS, lasts=True)
        assert settled_operation is not None
        assert not FOREIGN_COMMAND.search(str(settled_operation.get("error")))
        return settled_operation

    def do(self, method: str, path: str, body: Any = None, state: str = "COMPLETED") -> Json:
        """Send a request, wait for the operation's end and check its state."""
        ended_operation = self.settled(self.begin(method, path, body))
        assert ended_operation["operationState"] == state, ended_operation.get("error")
        return ended_operation


def assert_finish_or_go_back(operation: Json) -> None:
    """Check that the error names the two requests of API v2 that continue or undo the operation."""
    path = f"POST /vnflcm/v2/vnf_lcm_op_occs/{operation['id']}"
    expected = f"Finish it: {path}/retry; or go back: {path}/rollback."
    assert operation["error"]["detail"].endswith(expected)
