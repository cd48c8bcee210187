"""Note 4 of the v1 guide: after an update, a heal of the entire VNF applies all of the package.

Tacker's v1 API deletes the VNF's objects and creates them again from the package on record. Its v2
API only deletes the pods, so that the controllers create the same again.
"""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from container_update.emulator.kubernetes import EmbeddedCluster
from container_update.package.build import write_metadata
from tests.tacker.conftest import Build, Kubectl, guide_request, running_cnf
from tests.tacker.operator import Operator
from tests.tacker.services import Tacker

DEPLOYMENT = "Files/kubernetes/deployment.yaml"
ENV = "        env:\n"
ADDED = f"{ENV}        - name: COLOUR\n          value: blue\n"


def test_a_heal_of_the_entire_vnf_applies_what_an_update_left_out(
    tacker: Tacker, cluster: EmbeddedCluster, kubectl: Kubectl, build: Build, tmp_path: Path
) -> None:
    operator = Operator(tacker, "v1")
    old: list[str] = []

    def with_added_env(api: str, vnfd_ids: Mapping[str, str]) -> Mapping[str, Path]:
        old.append(vnfd_ids["before"])
        packages = build(api, vnfd_ids)
        return {**packages, "after": edited(packages["after"], tmp_path / "after")}

    instance_id, new = running_cnf(operator, cluster, with_added_env)
    request = {**guide_request("v1", "sample_param_file.json"), "vnfdId": new}
    assert operator.modify(instance_id, request)["operationState"] == "COMPLETED"
    assert image_and_colour(kubectl) == ("cirros", None), "the image alone took effect"

    operator.call("POST", f"/vnflcm/v1/vnf_instances/{instance_id}/heal", {"cause": "note 4"})
    assert operator.settled(instance_id, "HEAL")["operationState"] == "COMPLETED"

    assert image_and_colour(kubectl) == ("cirros", "blue")
    assert recorded(operator.show(instance_id)) == sorted(kubectl.pods())
    back = {"vnfdId": old[0], "vnfInstanceName": "back", "metadata": {"a": "b"}}
    assert operator.modify(instance_id, back)["operationState"] == "COMPLETED"
    assert image_and_colour(kubectl) == ("nginx", "blue"), "another update works on what was healed"
    assert recorded(operator.show(instance_id)) == sorted(kubectl.pods())


def edited(package: Path, folder: Path) -> Path:
    """Return a package whose first Deployment has one more variable."""
    with zipfile.ZipFile(package) as archive:
        archive.extractall(folder)
    file = folder / DEPLOYMENT
    file.write_text(file.read_text().replace(ENV, ADDED, 1))
    write_metadata(folder)
    return Path(shutil.make_archive(str(folder), "zip", folder))


def image_and_colour(kubectl: Kubectl) -> tuple[str, str | None]:
    """Return what the only pod of deployment1 runs."""
    (pod,) = (pod for name, pod in kubectl.pods().items() if name.startswith("deployment1-"))
    container = pod["spec"]["containers"][0]
    colours = [env.get("value") for env in container["env"] if env["name"] == "COLOUR"]
    return container["image"], colours[0] if colours else None


def recorded(instance: dict[str, Any]) -> list[str]:
    entries = instance["instantiatedVnfInfo"]["vnfcResourceInfo"]
    return sorted(entry["computeResource"]["resourceId"] for entry in entries)
