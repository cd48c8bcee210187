# SPDX-License-Identifier: Apache-2.0
"""The user guides' whole procedures, and the changes of the package, with the ``openstack`` client.

The guides are run by the same test that runs them on a real Tacker.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from container_update.emulator.kubernetes import EmbeddedCluster
from tests.tacker import test_user_guides as guides
from tests.tacker.conftest import Kubectl
from tests.tacker.operator import Operator
from tests.vnfm.conftest import SAMPLES, Build
from tests.vnfm.served import served

play = guides.test_the_guides_procedure_does_what_the_guide_shows


@pytest.mark.parametrize("guide", guides.GUIDES, ids=lambda guide: guide.api)
def test_the_guides_procedure_works_as_with_tacker(
    guide: guides.Guide,
    database: str,
    cluster: EmbeddedCluster,
    kubectl: Kubectl,
    build: Build,
    tmp_path: Path,
) -> None:
    with served(tmp_path, database) as service:
        play(guide, service, cluster, kubectl, build, tmp_path)


@dataclass(frozen=True)
class Change:
    """A sample that changes the package."""

    sample: str
    def_files: tuple[str, ...]
    """Of its instantiation."""


CHANGES = [
    Change("04-blue-green", ("page.yaml", "deployment.yaml", "service.yaml")),
    Change("05-rolling-update", ("settings.yaml", "worker.yaml", "store.yaml", "legacy.yaml")),
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.sample)
def test_a_change_of_the_package_does_what_its_sample_says(
    change: Change,
    database: str,
    cluster: EmbeddedCluster,
    kubectl: Kubectl,
    zipped: Callable[[str], Mapping[str, Path]],
    tmp_path: Path,
) -> None:
    with served(tmp_path, database) as service:
        operator = Operator(service, "v2")
        packages = zipped(change.sample)
        old, new = (guides.upload(operator, packages[side]) for side in guides.SIDES)
        instance_id = guides.create(operator, old)
        request = {
            "flavourId": "default",
            "additionalParams": {
                "lcm-kubernetes-def-files": [f"Files/kubernetes/{f}" for f in change.def_files]
            },
            "vimConnectionInfo": operator.vim_connection(cluster),
        }
        guides.instantiate(operator, instance_id, request, tmp_path)
        before = kubectl.pods()

        file = SAMPLES / change.sample / "request.json"
        accepted = operator.openstack("vnflcm", "change-vnfpkg", instance_id, str(file))
        assert "has been accepted" in accepted

        occurrence = operator.settled(instance_id, "CHANGE_VNFPKG")
        assert occurrence["operationState"] == "COMPLETED", occurrence
        instance = operator.show(instance_id)
        recorded = guides.resources(instance)
        assert instance["vnfdId"] == new == json.loads(file.read_text())["vnfdId"]
        assert sorted(recorded.values()) == sorted(kubectl.pods()), "the records name what runs"
        affected = occurrence["resourceChanges"]["affectedVnfcs"]
        came = {each["computeResource"]["resourceId"] for each in affected}
        assert set(kubectl.pods()) - set(before) <= came
        guides.terminate_and_delete(operator, instance_id)
        assert kubectl.pods() == {}
