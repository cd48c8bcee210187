# SPDX-License-Identifier: Apache-2.0
"""What an operator does with Tacker: by its ``openstack`` client, or straight over HTTP.

The client takes two seconds for each command; so the tests of the guides use it, and the others,
and whoever waits, speak HTTP.
"""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from tests.tacker.services import Tacker

Json = dict[str, Any]
SETTLED = frozenset({"COMPLETED", "FAILED", "FAILED_TEMP", "ROLLED_BACK"})
PATIENCE_SECONDS = 120.0
PAUSE_SECONDS = 0.5
HELD = "holds this VNF instance"
"""What an operation says that another one keeps out."""


@dataclass(frozen=True)
class Operator:
    """An operator of one of Tacker's two APIs: 'v1' or 'v2'."""

    tacker: Tacker
    api: str
    typed: list[str] = field(default_factory=list)
    """The commands of the client so far, as far as their arguments."""

    # --- by the openstack client ----------------------------------------------------------------

    def openstack(self, *command: str) -> str:
        """Run a command of the client and return its output."""
        version = ("--os-tacker-api-version", "2") if self.api == "v2" else ()
        return self._openstack(*command, *version)

    def openstack_v1(self, *command: str) -> str:
        """Run a command of the v1 client, for packages, which have only one API."""
        return self._openstack(*command)

    def _openstack(self, *command: str) -> str:
        self.typed.append(verb(" ".join(command)))
        address = ("--os-auth-type", "none", "--os-endpoint", self.tacker.url)
        completed = self.tacker.client(*address, *command)
        assert completed.returncode == 0, (
            f"openstack {' '.join(command)}: {completed.stderr.decode()}"
        )
        return completed.stdout.decode()

    # --- over HTTP ------------------------------------------------------------------------------

    def onboard(self, package: Path) -> str:
        """Upload a package, wait until Tacker has read it and return its VNFD's id."""
        created = self.call("POST", "/vnfpkgm/v1/vnf_packages", {"userDefinedData": {}})
        path = f"/vnfpkgm/v1/vnf_packages/{created['id']}"
        self._send("PUT", f"{path}/package_content", package.read_bytes(), "application/zip")
        return str(self.onboarded(created["id"])["vnfdId"])

    def onboarded(self, package_id: str) -> Json:
        """Wait until Tacker has read a package and return it."""
        path = f"/vnfpkgm/v1/vnf_packages/{package_id}"
        return until(
            lambda: self.call("GET", path),
            lambda package: package["onboardingState"] == "ONBOARDED",
            "the package is onboarded",
        )

    def register_vim(self, cluster: ClusterAccess, name: str = "") -> str:
        """Register a cluster for the v1 API and return the VIM's id."""
        credentials = {"bearer_token": cluster.token, "ssl_ca_cert": cluster.ca_text}
        vim = {
            "type": "kubernetes",
            "name": name or f"cluster-{cluster.url}",
            "auth_url": cluster.url,
            "vim_project": {"name": "default"},
            "auth_cred": credentials,
            "is_default": self.has_no_vim(),
        }
        return str(self.call("POST", "/v1.0/vims", {"vim": vim})["vim"]["id"])

    def has_no_vim(self) -> bool:
        """Return whether no VIM is registered: the v1 API needs the first one as the default."""
        return not self.call("GET", "/v1.0/vims")["vims"]

    def vim_connection(self, cluster: ClusterAccess) -> Any:
        """Return the vimConnectionInfo of an instantiate request."""
        if self.api == "v1":
            entry = {"id": "cluster", "vimId": self.register_vim(cluster), "vimType": "kubernetes"}
            return [entry]
        return kubernetes_vim(cluster)

    def create(self, vnfd_id: str) -> str:
        """Create a VNF instance and return its id."""
        return str(self.call("POST", self._instances(), {"vnfdId": vnfd_id})["id"])

    def instantiate(self, instance_id: str, request: Json) -> Json:
        """Instantiate it and return the settled operation occurrence."""
        return self.operate(instance_id, "instantiate", request)

    def terminate(self, instance_id: str) -> Json:
        """Terminate it and return the settled operation occurrence."""
        return self.operate(instance_id, "terminate", {"terminationType": "FORCEFUL"})

    def operate(self, instance_id: str, operation: str, request: Json) -> Json:
        """Begin an operation by its name in the URL and return the settled operation occurrence."""
        earlier = {each["id"] for each in self._occurrences(instance_id, operation.upper())}
        self._accepted("POST", f"{self._instances()}/{instance_id}/{operation}", request)
        return self.settled(instance_id, operation.upper(), besides=earlier)

    def _accepted(self, method: str, path: str, body: Json | None = None) -> None:
        """Send a request until Tacker does not refuse it with 409.

        The conductor shows an operation's end while it still holds the lock of the VNF instance, to
        send the notification; whatever begins or rolls back an operation meanwhile is refused.
        """

        def refusal() -> str:
            try:
                self.call(method, path, body)
            except AssertionError as refused:
                return str(refused)
            return ""

        refused = until(refusal, lambda text: ": 409 " not in text, f"{path} is accepted")
        assert not refused, refused

    def modify(self, instance_id: str, request: Json) -> Json:
        """Modify it and return the settled operation occurrence.

        Tacker's v1 API answers before the occurrence is in its database.
        """
        earlier = self.begin_modify(instance_id, request)
        return self.settled(instance_id, "MODIFY_INFO", besides=earlier)

    def begin_modify(self, instance_id: str, request: Json) -> set[str]:
        """Send a modify request; return the ids of earlier ones' occurrences."""
        earlier = {each["id"] for each in self._occurrences(instance_id, "MODIFY_INFO")}
        self._accepted("PATCH", f"{self._instances()}/{instance_id}", request)
        return earlier

    def rollback(self, occurrence: Json) -> Json:
        """Roll a failed operation back and return the settled operation occurrence.

        Until the lease of one that was killed has expired, a rollback fails, and is tried again.
        """

        def is_let_in(ended: Json) -> bool:
            return HELD not in json.dumps(ended.get("error"))

        tried = partial(self.go_on, occurrence, "rollback")
        return dict(until(tried, is_let_in, "the rollback is let in"))

    def go_on(self, occurrence: Json, request: str) -> Json:
        """Ask for a retry, a rollback or a fail of a failed operation; return how it ends."""
        path = f"/vnflcm/{self.api}/vnf_lcm_op_occs/{occurrence['id']}"
        entered = self.call("GET", path)["stateEnteredTime"]
        self._accepted("POST", f"{path}/{request}")
        return dict(
            until(
                lambda: self.call("GET", path),
                lambda now: (
                    now["operationState"] in SETTLED
                    # the times have no fractions: it may end in the second in which it failed
                    and (now["operationState"], now["stateEnteredTime"]) != ("FAILED_TEMP", entered)
                ),
                f"the {request} ends",
                PATIENCE_SECONDS * 2,
            )
        )

    def show(self, instance_id: str) -> Json:
        """Return the instance as Tacker records it."""
        return self.call("GET", f"{self._instances()}/{instance_id}")

    def settled(
        self,
        instance_id: str,
        operation: str,
        besides: Collection[str] = (),
    ) -> Json:
        """Wait for the end of the instance's last occurrence of an operation and return it.

        :param besides: the ids of occurrences that do not count.
        """

        def last() -> Json:
            found = self._occurrences(instance_id, operation)
            occurrences = [each for each in found if each["id"] not in besides]
            return max(occurrences, key=lambda each: each["startTime"], default={})

        match = until(last, is_settled, f"{operation} ends", PATIENCE_SECONDS * 2)
        if self.api == "v1":  # cannot show a MODIFY_INFO by itself: 500, JSONDecodeError
            return dict(match)
        return dict(self.call("GET", f"/vnflcm/v2/vnf_lcm_op_occs/{match['id']}"))

    def _occurrences(self, instance_id: str, operation: str) -> list[Json]:
        """Return the instance's occurrences of an operation."""
        return [
            occurrence
            for occurrence in self.call("GET", f"/vnflcm/{self.api}/vnf_lcm_op_occs?all_fields=yes")
            if occurrence["vnfInstanceId"] == instance_id and occurrence["operation"] == operation
        ]

    def call(self, method: str, path: str, body: Json | None = None) -> Any:
        """Send a request and return the response. AssertionError if it was refused."""
        merge = method == "PATCH" and self.api == "v2"
        kind = "application/merge-patch+json" if merge else "application/json"
        text = self._send(method, path, json.dumps(body).encode() if body else None, kind)
        return json.loads(text) if text else None

    def _send(self, method: str, path: str, body: bytes | None, content_type: str) -> bytes:
        headers = {"Content-Type": content_type, "Accept": "application/json"}
        if path.startswith("/vnflcm/v2"):
            headers["Version"] = "2.0.0"
        request = urllib.request.Request(self.tacker.url + path, body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read()!r}") from error

    def _instances(self) -> str:
        return f"/vnflcm/{self.api}/vnf_instances"


def is_settled(occurrence: Json) -> bool:
    """Tell whether an operation occurrence goes on only by another request."""
    return occurrence.get("operationState") in SETTLED


def verb(command: str) -> str:
    """Return what a command of the client does: 'vnflcm create'."""
    match = re.match(r"(vnf package|vnflcm|vim) [a-z]+", command)
    assert match, command
    return match.group()


class ClusterAccess(Protocol):
    """Where a cluster is, and who may change it."""

    @property
    def url(self) -> str:
        """The API server's address."""

    @property
    def ca_text(self) -> str:
        """The certificate of its authority."""

    @property
    def token(self) -> str:
        """A bearer token."""


def kubernetes_vim(cluster: ClusterAccess) -> Json:
    """Return the vimConnectionInfo of a v2 request; a certificate is one line (SOL003)."""
    interface = {"endpoint": cluster.url, "ssl_ca_cert": cluster.ca_text.replace("\n", " ")}
    return {
        "vim1": {
            "vimId": "b7e657dc-8f16-4c1c-8fa4-a7c298d6a827",
            "vimType": "ETSINFV.KUBERNETES.V_1",
            "interfaceInfo": interface,
            "accessInfo": {"bearer_token": cluster.token},
        }
    }


def until(read: Any, is_settled: Any, description: str, seconds: float = PATIENCE_SECONDS) -> Any:
    """Read until the value is settled and return it. AssertionError after the deadline."""
    deadline = time.monotonic() + seconds
    while True:
        value = read()
        if is_settled(value):
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:.0f} s until {description}: {value}")
        time.sleep(PAUSE_SECONDS)
