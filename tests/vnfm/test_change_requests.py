# SPDX-License-Identifier: Apache-2.0
"""A request to change the package over REST: checked by the schema and what is installed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from container_update import Options
from container_update.emulator.kubernetes import EmbeddedCluster
from tests import one_by_one
from tests.internals.core import CHANGE_REQUEST
from tests.internals.service import Service, Settings
from tests.unit.engine.test_change_request import WRONG
from tests.vnfm import vnfs
from tests.vnfm.client import Client


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """A client of the v2 API."""
    settings = Settings(state_dir=str(tmp_path / "state"), auth="none")
    service = Service(settings, Options(timeout=30, grace_period=1))
    with TestClient(service.app, base_url="http://127.0.0.1:9890") as http:
        yield Client(http, "v2")


@pytest.fixture
def vnf(client: Client, cluster: EmbeddedCluster, tmp_path: Path) -> tuple[str, str]:
    """The path of a running VNF, and the VNFD of the package to change to."""
    old, new = (
        client.onboard(vnfs.package(tmp_path, version, vnfs.ours("v2"))[0])
        for version in ("1.0", "2.0")
    )
    path = client.create(old)
    client.do("POST", f"{path}/instantiate", vnfs.instantiation(client.vims(cluster)))
    return path, new


def change(vnfd_id: str, upgrade_type: Any, **more: Any) -> dict[str, Any]:
    """Return a request."""
    params = {"upgrade_type": upgrade_type, **more.pop("params", {})}
    return {"vnfdId": vnfd_id, "additionalParams": params, **more}


def test_an_installed_strategy_is_used(
    client: Client, vnf: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = one_by_one.install(tmp_path / "plugin", monkeypatch)
    path, new = vnf
    refused = client.call("POST", f"{path}/change_vnfpkg", change(new, "Big-Bang"), 422)
    assert (
        'kubernetes: Blue-Green, Canary, One-By-One, RollingUpdate), found "Big-Bang"'
        in refused["detail"]
    )
    client.do("POST", f"{path}/change_vnfpkg", change(new, "one by one"))
    assert client.call("GET", path)["vnfdId"] == new
    assert set(planned) == {"one by one"}


SCRIPT = "lcm-operation-coordinate-new-vnf"
DRIVER = "Scripts/container_update_mgmt_v2.py"


LACKING = [
    ({"lcm-kubernetes-def-files": ["none.yaml"]}, "def-files: none.yaml in .*: no such file"),
    ({SCRIPT: "none.py"}, f"{SCRIPT}: expected none.py in"),
    ({SCRIPT: DRIVER, f"{SCRIPT}-class": "Missing"}, "expected the class Missing, found"),
]


def test_what_the_package_lacks_is_refused_before_it_is_accepted(
    client: Client, vnf: tuple[str, str]
) -> None:
    path, new = vnf
    for params, message in LACKING:
        body = change(new, "RollingUpdate", params=params)
        refused = client.call("POST", f"{path}/change_vnfpkg", body, 422)
        assert re.search(message, refused["detail"]), (message, refused)


def test_a_refusal_by_the_schema_has_the_same_message_as_elsewhere(
    client: Client, vnf: tuple[str, str]
) -> None:
    """The table is that of the library's own test."""
    path, _ = vnf
    bodies = [(body, message) for body, message in WRONG if isinstance(body, dict)]
    assert len(bodies) > 20
    for body, message in bodies:
        refused = client.call("POST", f"{path}/change_vnfpkg", body, 422)
        assert re.search(message, refused["detail"]), (message, refused["detail"])
        assert "sesame" not in refused["detail"]


def test_the_openapi_document_contains_the_schema_of_the_requests(client: Client) -> None:
    document = client.call("GET", "/openapi.json")
    operation = document["paths"]["/vnflcm/v2/vnf_instances/{instance_id}/change_vnfpkg"]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    assert schema["properties"].keys() == CHANGE_REQUEST.fields.keys()
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == CHANGE_REQUEST.required
    params = schema["properties"]["additionalParams"]
    assert params["properties"].keys() == CHANGE_REQUEST.fields["additionalParams"].fields.keys()
