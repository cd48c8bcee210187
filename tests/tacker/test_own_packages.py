"""Proof 5: Tacker's own sample packages, of whose text blocks at the end none has a line end."""

from __future__ import annotations

import base64
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from container_update.emulator.kubernetes import EmbeddedCluster
from container_update.package.build import build as build_package
from container_update.package.samples import TYPE_FILES
from tests.tacker.conftest import Build, Kubectl, guide_request, running_cnf
from tests.tacker.lab import Lab
from tests.tacker.operator import Operator
from tests.tacker.services import Tacker
from tests.tacker.test_user_guides import pods_of, restarts, uid

CONTENTS = {
    "v1": "tests/etc/samples/etsi/nfv/test_cnf_container_update_{}",
    "v2": "tests/functional/sol_kubernetes_v2/test_cnf_container_update_{}/contents",
}
VNFD_ID = re.compile("b1bb0ce7-ebca-4fa7-95ed-[0-9a-f]{12}")

NEW_PODS = ("vdu1-update", "vdu2-update", "daemonset-vdu5")
SAME_PODS = ("env-test", "volume-test")
UNTOUCHED = ("deployment2-vdu6", "env-test2", "volume-test2")


@pytest.fixture
def build_own(lab: Lab, tmp_path: Path) -> Build:
    """Builds packages of Tacker's files, the guide's type files and our driver: ``csar build``,
    as the hashes in Tacker's own ``TOSCA.meta`` are those of another driver."""

    def build(api: str, vnfd_ids: Mapping[str, str]) -> Mapping[str, Path]:
        return {side: zipped(api, side, vnfd_id) for side, vnfd_id in vnfd_ids.items()}

    def zipped(api: str, side: str, vnfd_id: str) -> Path:
        folder = tmp_path / side
        shutil.copytree(lab.samples / CONTENTS[api].format(side), folder)
        for file in (folder / "Definitions").iterdir():
            file.write_text(VNFD_ID.sub(vnfd_id, file.read_text()))
        for name in TYPE_FILES:
            shutil.copy(lab.types / name, folder / "Definitions")
        return build_package(folder, tmp_path / f"{side}.zip", api=api)

    return build


@pytest.mark.parametrize("api", CONTENTS)
def test_tackers_own_packages_are_updated_as_the_guide_shows(
    api: str, tacker: Tacker, cluster: EmbeddedCluster, kubectl: Kubectl, build_own: Build
) -> None:
    operator = Operator(tacker, api)
    instance_id, new = running_cnf(operator, cluster, build_own)
    before = kubectl.pods()

    request = {**guide_request(api, "sample_param_file.json"), "vnfdId": new}
    occurrence = operator.modify(instance_id, request)

    assert occurrence["operationState"] == "COMPLETED", occurrence
    after = kubectl.pods()
    for name in SAME_PODS:
        assert (uid(after[name]), restarts(after[name])) == (uid(before[name]), 1)
    for workload in NEW_PODS:
        assert not set(pods_of(workload, before)) & set(pods_of(workload, after))
    for workload in UNTOUCHED:
        (name,) = pods_of(workload, before)
        assert (uid(after[name]), restarts(after[name])) == (uid(before[name]), 0)
    assert sizes(kubectl, "secret-data") == {"password": 16, "secKey1.txt": 18}
    assert sizes(kubectl, "secret-data3") == {"password": 15, "secKey1.txt": 15}
    assert kubectl.data("ConfigMap", "cm-data") == {"cmKey1.txt": "configmap2 data2\nfoo2\nbar2"}


def sizes(kubectl: Kubectl, secret: str) -> dict[str, int]:
    data = kubectl.data("Secret", secret)
    return {key: len(base64.b64decode(value)) for key, value in data.items()}
