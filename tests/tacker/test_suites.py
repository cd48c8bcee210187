# SPDX-License-Identifier: Apache-2.0
"""Tacker's own functional tests with our drivers; all of them, and Tacker's: ``suites.py``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

pytest.importorskip("openstack", reason="the extra openstack is not installed")

from tests.functional.real import REAL
from tests.tacker import suites
from tests.tacker.lab import Lab

CONCERNED = re.compile(r"update|change|heal|scale|rollback")


@pytest.fixture(scope="module")
def sources(lab: Lab) -> Path:
    """Tacker's sources; skipped if they were not fetched."""
    found = suites.sources_of(lab)
    if not found.exists():
        pytest.skip(f"no {found}: python tests/tacker/suites.py fetches it")
    return found


@pytest.mark.timeout(3600)
def test_tackers_tests_of_update_change_heal_scale_and_rollback_pass_with_our_drivers(
    lab: Lab, sources: Path, tmp_path: Path
) -> None:
    tests = [name for name in suites.offered(suites.KUBERNETES, sources) if CONCERNED.search(name)]
    assert len(tests) > 10

    with (
        suites.cluster_of(REAL, tmp_path) as cluster,
        suites.running(lab, "ours", cluster, tmp_path) as run,
    ):
        results = {name: run(name) for name in tests}

    failed = {name: each.reason for name, each in results.items() if each.outcome == "failed"}
    assert failed == {}


@pytest.mark.timeout(3600)
@pytest.mark.skipif(not suites.CLOUD, reason="no OS_CLOUD: the VNFs are servers")
@pytest.mark.parametrize("suite", suites.WITH_SCRIPT, ids=lambda suite: suite.name)
def test_tackers_tests_of_vnfs_of_servers_pass_with_our_script(
    suite: suites.Suite, lab: Lab, sources: Path, tmp_path: Path
) -> None:
    with suites.running_on_cloud(lab, "ours", suite, suites.cloud_of_tests(), tmp_path) as run:
        results = {name: run(name) for name in suites.offered(suite, sources)}

    failed = {name: each.reason for name, each in results.items() if each.outcome == "failed"}
    assert failed == {}
    assert any(each.operations for each in results.values())


@pytest.mark.parametrize(
    "package", [name for packages in suites.NO_DRIVER.values() for name in packages]
)
def test_a_package_whose_tests_run_with_tackers_drivers_alone_maps_no_operation(
    package: str, sources: Path
) -> None:
    folder = sources / "samples/tests/etc/samples/etsi/nfv" / package
    vnfds = [yaml.safe_load(file.read_text()) for file in folder.glob("Definitions/*_df_*.yaml")]
    nodes = [
        each for vnfd in vnfds for each in vnfd["topology_template"]["node_templates"].values()
    ]
    operations = [node["interfaces"]["Vnflcm"] for node in nodes if "interfaces" in node]
    assert operations
    assert not any(script for each in operations for script in each.values())
