# SPDX-License-Identifier: Apache-2.0
"""Why a package is in ERROR: in lists, in the service's log, and for the ``openstack`` client."""

from __future__ import annotations

import json
import logging
import zipfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from fastapi.testclient import TestClient

from tests.tacker.operator import Operator
from tests.vnfm import vnfs
from tests.vnfm.client import PATIENCE_SECONDS, Client
from tests.vnfm.served import served
from tests.vnfm.waiting import until

PACKAGES = "/vnfpkgm/v1/vnf_packages"


def broken(folder: Path) -> Path:
    """Write a package whose VNFD is not there."""
    path = folder / "broken.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("TOSCA-Metadata/TOSCA.meta", "Entry-Definitions: Definitions/none.yaml\n")
    return path


def no_zip(folder: Path) -> Path:
    path = folder / "wrong.zip"
    path.write_bytes(b"no zip")
    return path


def with_nul(folder: Path) -> Path:
    """Write a package whose product has a name with a NUL, which PostgreSQL does not take."""
    vnfd = vnfs.VNFD.replace("product_name: Small VNF", 'product_name: "Small\\0VNF"')
    with mock.patch.object(vnfs, "VNFD", vnfd):
        return vnfs.package(folder, "1.0", vnfs.ours("v1"))[0]


def long_id(folder: Path) -> Path:
    vnfd = vnfs.VNFD.replace("descriptor_id: {vnfd_id}", f"descriptor_id: {'x' * 256}")
    with mock.patch.object(vnfs, "VNFD", vnfd):
        return vnfs.package(folder, "1.0", vnfs.ours("v1"))[0]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (with_nul, "VNFD, product_name: expected at most 255 printable characters, found 9: "),
        (long_id, "VNFD, descriptor_id: expected at most 255 printable characters, found 256: "),
        (broken, "Entry-Definitions: the VNFD cannot be read: "),
        (no_zip, "the package is neither a folder nor a zip file: "),
    ],
)
def test_the_reason_is_in_lists_and_in_one_line_of_the_log_without_paths_of_the_host(
    made: Callable[[Path], Path],
    expected: str,
    http: TestClient,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = Client(http)
    with caplog.at_level(logging.WARNING, "container_update"):
        shown = client.read_in(client.upload(made(tmp_path)))
    (listed,) = client.call("GET", PACKAGES)
    details = shown["onboardingFailureDetails"]
    assert listed["onboardingFailureDetails"] == details
    assert listed["error"] == shown["error"] == details["detail"]
    assert "softwareImages" not in listed
    assert details["detail"].startswith(expected)
    (line,) = [record.getMessage() for record in caplog.records]
    assert line == f"package {shown['id']} is in ERROR: {details['detail']}"
    assert str(tmp_path) not in line + json.dumps(shown)


def test_the_reason_goes_with_the_next_upload(http: TestClient, tmp_path: Path) -> None:
    client = Client(http)
    package = client.read_in(client.upload(no_zip(tmp_path)))
    right, _ = vnfs.package(tmp_path, "1.0", vnfs.ours("v1"))
    path = f"{PACKAGES}/{package['id']}"
    client.send("PUT", f"{path}/package_content", content=right.read_bytes())
    after = client.read_in(package["id"])
    assert after["onboardingState"] == "ONBOARDED"
    assert {"error", "onboardingFailureDetails"}.isdisjoint(after)


def test_the_client_prints_the_reason_and_the_users_own_data(tmp_path: Path) -> None:
    with served(tmp_path / "service") as service:
        operator = Operator(service, "v1")
        created = operator.openstack(
            "vnf", "package", "create", "--user-data", "site=north", "-f", "value", "-c", "ID"
        ).strip()
        operator.openstack("vnf", "package", "upload", "--path", str(broken(tmp_path)), created)

        def refused() -> str | None:
            return operator.call("GET", f"{PACKAGES}/{created}").get("error")

        reason = until(refused, "the package is refused", PATIENCE_SECONDS)
        show = json.loads(operator.openstack("vnf", "package", "show", created, "-f", "json"))
        assert show["error"] == reason
        assert show["User Defined Data"] == {"site": "north"}
        listed = operator.openstack("vnf", "package", "list", "--fields", "error", "-f", "json")
        assert [each["Error"] for each in json.loads(listed)] == [reason]
        assert f"package {created} is in ERROR: {reason}" in [
            json.loads(line)["message"] for line in service.log().splitlines()
        ]
