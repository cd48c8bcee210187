# SPDX-License-Identifier: Apache-2.0
"""Proof 5: Tacker's own sample packages, of whose text blocks at the end none has a line end."""

from __future__ import annotations

import base64
import io
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from container_update import PackageError
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.internals.core import DRIVERS, TYPE_FILES, driver_file, main
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
    """Zips Tacker's files, the guide's type files and our driver, as the guide does.

    The v1 sample's ``TOSCA.meta`` has the hash of another driver in one line, which ``csar check``
    names.
    """

    def build(api: str, vnfd_ids: Mapping[str, str]) -> Mapping[str, Path]:
        return {side: zipped(api, side, vnfd_id) for side, vnfd_id in vnfd_ids.items()}

    def zipped(api: str, side: str, vnfd_id: str) -> Path:
        folder = tmp_path / side
        shutil.copytree(lab.samples / CONTENTS[api].format(side), folder)
        for file in (folder / "Definitions").iterdir():
            file.write_text(VNFD_ID.sub(vnfd_id, file.read_text()))
        for name in TYPE_FILES:
            shutil.copy(lab.types / name, folder / "Definitions")
        copy = folder / DRIVERS[api][1]
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(driver_file(api), copy)
        if api == "v1":
            findings = io.StringIO()
            assert main(["csar", "check", str(folder)], findings) == PackageError.exit_status
            correct(folder, findings.getvalue())
        return Path(shutil.make_archive(str(folder), "zip", folder))

    return build


def correct(folder: Path, findings: str) -> None:
    """Write the hash that was found into the line of the metadata that the only error names."""
    (error,) = (line for line in findings.splitlines() if line.startswith("error: "))
    found = re.search(r"of (\S+):(\d+), found ([0-9a-f]{64})", error)
    assert found, error
    file = folder / found[1]
    lines = file.read_text().splitlines()
    assert lines[int(found[2]) - 1].startswith("Hash: ")
    lines[int(found[2]) - 1] = f"Hash: {found[3]}"
    file.write_text("\n".join(lines) + "\n")


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
