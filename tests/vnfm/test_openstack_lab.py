# SPDX-License-Identifier: Apache-2.0
"""The life cycle of a sample's VNF on a real cloud, through the service.

As tests/functional/stacks: ``OS_CLOUD`` names the cloud.
"""

from __future__ import annotations

import json
import re
import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

pytest.importorskip("openstack", reason="the extra openstack is not installed")

import openstack.config

from container_update import Options
from tests.functional.stacks.site import REAL, Site
from tests.internals.core import build
from tests.internals.service import Service, Settings
from tests.internals.stacks import Heat, connect, live, reference
from tests.vnfm.client import Client
from tests.vnfm.clouds import registration, vims
from tests.vnfm.conftest import SAMPLES
from tests.vnfm.test_upkeep_openstack import ASPECT, POLICIES

pytestmark = pytest.mark.skipif(not REAL, reason="no cloud: set OS_CLOUD to one of clouds.yaml")
OPTIONS = Options(timeout=300, undo_timeout=300, retry_seconds=5, lease_seconds=20)
Json = dict[str, Any]


def package(folder: Path, sample: str, side: str, image: str, flavor: str) -> tuple[Path, str]:
    """Build a sample's package for the cloud, with an id of its own; return the file and the id."""
    source = folder / str(uuid.uuid4())
    shutil.copytree(SAMPLES / sample / side, source)
    texts = {
        path: path.read_text() for path in source.rglob("*") if path.suffix in (".yaml", ".py")
    }
    (old_id,) = {
        line.split("descriptor_id:")[1].strip().strip("\"'")
        for text in texts.values()
        for line in text.splitlines()
        if line.strip().startswith("descriptor_id:") and "-" in line.split(":")[1]
    }
    new_id = str(uuid.uuid4())
    new = {"front-1.0": image, "front-2.0": image, "m1.small": flavor, "m1.medium": flavor}
    new[old_id] = new_id
    pattern = re.compile("|".join(map(re.escape, new)))
    for path, text in texts.items():
        path.write_text(pattern.sub(lambda match: new[match[0]], text))
    vnfd = source / "Definitions" / "df_simple.yaml"
    if sample.startswith("07"):
        vnfd.write_text(vnfd.read_text() + POLICIES)
    return build.build(source, source.with_suffix(".zip")), new_id


def images(heat: Heat, instance_id: str) -> list[str]:
    """Return the image of each server of an instance's one stack."""
    (stack,) = [stack for stack in heat.stacks() if instance_id in stack["stack_name"]]
    found = []
    for resource in heat.resources(reference(stack), live.DEPTH):
        if resource["resource_type"] == "OS::Nova::Server":
            nested = resource["links"][1]["href"].partition("/stacks/")[2]
            server: Json = heat.resource(nested, resource["resource_name"]) or {}
            found.append(str(server["attributes"]["image"]["id"]))
    return found


@pytest.mark.parametrize(
    ("sample", "kind"),
    [("06-openstack-blue-green", "Blue-Green"), ("07-openstack-rolling", "RollingUpdate")],
)
def test_a_vnf_lives_and_fails_on_a_real_cloud(sample: str, kind: str, tmp_path: Path) -> None:
    auth = openstack.config.OpenStackConfig().get_one(REAL).config["auth"]
    settings = Settings(state_dir=str(tmp_path / "state"), auth="none")
    request = {"upgrade_type": kind, "vdu_params": [{"vdu_id": "VDU1"}]}
    with (
        connect(REAL, options=OPTIONS) as heat,
        TestClient(Service(settings, OPTIONS).app, base_url="http://127.0.0.1:9890") as http,
    ):
        client, site = Client(http, "v2"), Site.of_cloud(heat)
        small, large = site.flavors
        old, old_id = package(tmp_path, sample, "before", site.images[0], small)
        new, new_id = package(tmp_path, sample, "after", site.images[1], large)
        wrong, wrong_id = package(tmp_path, sample, "after", "there-is-no-such-image", small)
        for file in (old, new, wrong):
            client.onboard(file)
        path = client.create(old_id)
        instance_id = path.rpartition("/")[2]
        body = {"flavourId": "simple", "additionalParams": {"network": site.network}}
        if kind == "Blue-Green":
            vim = client.call("POST", "/v1.0/vims", {"vim": registration(auth)}, 201)["vim"]
            assert vim["status"] == "ACTIVE"
        else:
            body["vimConnectionInfo"] = vims(auth)
        client.do("POST", f"{path}/instantiate", body)
        size = len(images(heat, instance_id))

        if kind == "RollingUpdate":
            scaling = {"type": "SCALE_IN", "aspectId": ASPECT, "numberOfSteps": 1}
            client.do("POST", f"{path}/scale", scaling)
            size -= 1

        change = {"vnfdId": wrong_id, "additionalParams": request}
        failed = client.do("POST", f"{path}/change_vnfpkg", change, "FAILED_TEMP")
        assert "there-is-no-such-image" in json.dumps(failed["error"])
        for action, state in (("retry", "FAILED_TEMP"), ("rollback", "ROLLED_BACK")):
            operation = str(failed["_links"]["self"]["href"])
            assert client.send("POST", f"{operation}/{action}").status_code == 202
            assert client.settled(operation)["operationState"] == state
        assert images(heat, instance_id) == [site.images[0]] * size

        change = {"vnfdId": new_id, "additionalParams": request}
        client.do("POST", f"{path}/change_vnfpkg", change)
        assert images(heat, instance_id) == [site.images[1]] * size
        assert client.call("GET", path)["vnfdId"] == new_id
        client.do("POST", f"{path}/terminate", {"terminationType": "FORCEFUL"})
        assert not [stack for stack in heat.stacks() if instance_id in stack["stack_name"]]
