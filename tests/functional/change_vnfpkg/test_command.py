# SPDX-License-Identifier: Apache-2.0
"""``container-update change`` as a user types it."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.functional.change_vnfpkg.conftest import kubernetes_site
from tests.functional.change_vnfpkg.kubernetes import KubernetesContractSite
from tests.functional.change_vnfpkg.site import BROKEN, V1, V2, ContractSite, Release
from tests.functional.upgrade_types import BLUE_GREEN
from tests.internals.core import build, main

FAILS = {"Scripts/new.py": "import sys; sys.exit('the peer said no')"}
SPEAKS = {"Scripts/new.py": "print('the peer said yes')"}


@pytest.fixture
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ContractSite]:
    """A running VNF that is changed with Blue-Green."""
    with kubernetes_site(BLUE_GREEN, request, tmp_path) as contract_site:
        contract_site.instantiate(V1)
        yield contract_site


def run(site: KubernetesContractSite, command: str, *arguments: str) -> tuple[int, str]:
    """Run a command for the VNF and return its exit status and its output."""
    out = io.StringIO()
    options = ["--grace-period", "0.5", "--drain-seconds", "0.1"]
    return main([command, *arguments, *site.command_options, *options], out), out.getvalue()


def change(site: KubernetesContractSite, release: Release = V2, *arguments: str) -> tuple[int, str]:
    """Run the command that changes to a release."""
    kind = ["--upgrade-type", "blue-green"]
    return run(site, "change", site.old, site.package(release), *kind, *arguments)


def test_plan_steps_scripts_and_sum_are_shown_in_this_order(site: KubernetesContractSite) -> None:
    release = replace(V2, scripts=SPEAKS)
    status, text = change(site, release, "--coordinate-new", "Scripts/new.py")
    assert status == 0
    positions = [text.index(t) for t in ("Workloads:", "done: ", "the peer said yes", "Changed in")]
    assert positions == sorted(positions)
    assert change(site)[0] == 2


def test_it_says_why_old_pods_stay_for_a_while(site: KubernetesContractSite) -> None:
    status, text = change(site, V2, "--progress", "json")
    assert status == 0
    events = [json.loads(line) for line in text.splitlines()]
    switched = next(
        n for n, e in enumerate(events) if e["event"] == "result" and e["action"].startswith("sw")
    )
    deleted = next(
        n for n, e in enumerate(events) if e["event"] == "step" and e["action"] == "delete"
    )
    texts = [e["message"] for e in events[switched:deleted] if e["event"] == "waiting"]
    assert "its pods end their requests, for 0.1 s" in texts


def test_the_command_that_goes_back_does(site: KubernetesContractSite) -> None:
    status, text = change(site, V2, "--vdu", "VDU1", "--vdu", "VDU2")
    assert status == 0
    line = text.splitlines()[-1]
    assert line.startswith("To go back: container-update change ")
    back = shlex.split(line.partition("container-update ")[2])
    assert run(site, *back)[0] == 0
    assert site.is_at("v1")


def test_what_only_the_operator_knows_of_the_way_back_is_named(
    site: KubernetesContractSite,
) -> None:
    release = replace(V2, scripts=SPEAKS)
    status, text = change(site, release, "--coordinate-new", "Scripts/new.py")
    assert status == 0
    assert text.splitlines()[-1].endswith(", with --coordinate-new for that package")


def test_json_is_for_programs_and_the_records_go_into_a_file(
    site: KubernetesContractSite, tmp_path: Path
) -> None:
    instance, records = tmp_path / "instance.json", tmp_path / "records.json"
    instance.write_text(json.dumps(site.instance_record()))
    files = ["--instance", str(instance), "--records", str(records)]
    status, text = change(site, V2, "-o", "json", *files)
    body: dict[str, Any] = json.loads(text)
    assert status == 0
    assert body["vnfdId"] == "vnfd-v2"
    assert set(body["resourceNames"]) == {"web", "worker"}
    after = json.loads(records.read_text())
    vnfcs = after["instantiatedVnfInfo"]["vnfcResourceInfo"]
    pods = {resource["computeResource"]["resourceId"] for resource in vnfcs}
    assert pods == site.instances("VDU1") | site.instances("VDU2")


def test_records_that_cannot_be_written_decide_nothing(
    site: KubernetesContractSite, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    instance = tmp_path / "instance.json"
    instance.write_text(json.dumps(site.instance_record()))
    files = ["--instance", str(instance), "--records", "/dev/full"]
    assert change(site, V2, *files)[0] == 0
    assert "the change is done, but /dev/full cannot be written" in caplog.text
    assert site.is_at("v2")


def test_a_script_that_fails_is_shown_with_what_it_said(
    site: KubernetesContractSite, capsys: pytest.CaptureFixture[str]
) -> None:
    status, text = change(
        site, replace(V2, scripts=FAILS), "--coordinate-new", "Scripts/new.py", "--vdu", "VDU1"
    )
    assert status == 7
    assert "| the peer said no" in text
    assert "status 1: the peer said no" in capsys.readouterr().err
    assert site.is_at("v1")


def test_a_failed_change_can_be_inspected_and_rolled_back(
    site: KubernetesContractSite,
) -> None:
    assert change(site, BROKEN, "--leave-failed")[0] == 7
    status, text = run(site, "status")
    assert status == 0
    assert "create" in text
    assert run(site, "rollback")[0] == 0
    assert site.is_at("v1")
    assert run(site, "rollback")[0] == 2


def test_resume_runs_the_scripts_of_the_packages_that_are_named_and_of_no_others(
    site: KubernetesContractSite,
) -> None:
    """An unsigned journal's packages are not run; a script that was mended is another's."""
    package = Path(site.package(replace(V2, scripts=FAILS)))
    unsigned = "--no-journal-key"
    arguments = ["--upgrade-type", "Blue-Green", "--coordinate-new", "Scripts/new.py"]
    status, _ = run(site, "change", site.old, str(package), *arguments, "--leave-failed", unsigned)
    assert status == 7
    assert run(site, "resume", unsigned)[0] == 4
    failing = (package / "Scripts/new.py").read_text()
    (package / "Scripts/new.py").write_text(SPEAKS["Scripts/new.py"])
    build.write_metadata(package)
    assert run(site, "resume", unsigned, site.old, str(package))[0] == 4
    (package / "Scripts/new.py").write_text(failing)
    build.write_metadata(package)
    assert run(site, "resume", unsigned, site.old, str(package))[0] == 7, (
        "the script runs, and fails again"
    )
    assert site.is_at("v1")


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--upgrade-type", "Big-Bang"], 64),
        (["--upgrade-type", "Blue-Green", "--vdu", "VDU9"], 4),
        (["--upgrade-type", "Blue-Green", "--request", "none.json"], 4),
    ],
)
def test_a_wrong_request_has_its_status(
    site: KubernetesContractSite, arguments: list[str], status: int
) -> None:
    exit_status, _ = run(site, "change", site.old, site.package(V2), *arguments)
    assert exit_status == status
    assert site.is_at("v1")


def test_an_upgrade_type_that_is_not_installed_is_told_by_the_option_before_anything_is_connected(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["change", "old", "new", "--upgrade-type", "Big-Bang", "--kubeconfig", "/none"]
    assert main(command) == 64
    expected = "--upgrade-type: expected one that a strategy is installed for"
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize("request_body", [None, {}, {"additionalParams": {"upgrade_type": ""}}])
def test_without_an_upgrade_type_the_option_is_named_before_anything_is_connected(
    request_body: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(request_body))
    options = [] if request_body is None else ["--request", str(file)]
    command = ["change", "old", "new", "--kubeconfig", "/nowhere", *options]
    assert main(command) == 64
    told = capsys.readouterr().err
    assert "--upgrade-type: expected one of Blue-Green, Canary, RollingUpdate" in told
    assert "nowhere" not in told
