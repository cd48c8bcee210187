# SPDX-License-Identifier: Apache-2.0
"""What every strategy guarantees, on every VIM."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from container_update import PackageError, UpdateFailedError
from tests.functional.change_vnfpkg.kubernetes import KubernetesContractSite
from tests.functional.change_vnfpkg.site import (
    BROKEN,
    PLAIN,
    V1,
    V2,
    VDUS,
    Arguments,
    ContractSite,
    Release,
)
from tests.functional.real import one_of

V3 = Release("v3")

SUCCEEDS = "print('coordinated')"
FAILS = "import sys; print('the peer said no'); sys.exit(3)"
HANGS = "import time\nwhile True: time.sleep(60)"
GARBAGE = "import os; os.write(1, b'\\x1b[2J\\x00\\xff' * 100_000)"
TELLS = """
import pickle, sys
context = pickle.load(sys.stdin.buffer)
coordination = context["coordination"]
print(coordination["vnf"], coordination["vdu_id"], context["request"]["vnfdId"])
"""
SHOUTS = """
import os, pickle, sys
context = pickle.load(sys.stdin.buffer)
print("password", context["coordination"]["vnfc_param"]["password"])
print("inherited", sorted(os.environ))
"""
CLASS = """
class Coordinate:
    def __init__(self, context):
        self.context = context
    def coordinate_vnf(self):
        print("by class", self.context["coordination"]["vnf"])
"""


def scripts(new: str, old: str = SUCCEEDS) -> dict[str, str]:
    """Return a package's coordination scripts by path."""
    return {"Scripts/new.py": new, "Scripts/old.py": old}


SCRIPT_PARAMS = {
    "lcm-operation-coordinate-new-vnf": "./Scripts/new.py",
    "lcm-operation-coordinate-old-vnf": "./Scripts/old.py",
}


def needs_parts(site: ContractSite) -> None:
    """Skip strategies that the specification defines for whole VNFs only."""
    if not site.can_change_a_part:
        pytest.skip("the strategy replaces the VNF as a whole")


# --- success ------------------------------------------------------------------------------------


def test_the_new_release_runs_and_serves(site: ContractSite) -> None:
    site.instantiate(V1)
    outcome = site.change(V2).outcome
    assert site.is_at("v2")
    assert {result.state.value for result in outcome.results} == {"done"}


def test_a_second_run_finds_nothing_to_do(site: ContractSite) -> None:
    site.instantiate(V1)
    site.change(V2)
    before = {vdu: site.instances(vdu) for vdu in VDUS}
    assert site.change(V2).outcome.plan.is_empty
    assert {vdu: site.instances(vdu) for vdu in VDUS} == before


def test_one_change_follows_another(site: ContractSite) -> None:
    site.instantiate(V1)
    for release in (V2, V3, V1, V2):
        site.change(release)
        assert site.is_at(release.version)
        site.runs_from(release)


def test_only_the_vdus_of_the_request_change(site: ContractSite) -> None:
    needs_parts(site)
    site.instantiate(V1)
    others = site.instances("VDU2")
    site.change(V2, Arguments({"vdu_params": [{"vdu_id": "VDU1"}]}))
    assert site.running() == {"VDU1": {"v2"}, "VDU2": {"v1"}}
    assert site.instances("VDU2") == others
    assert site.serving() == {"v2"}


def test_the_current_number_of_instances_is_kept(site: ContractSite) -> None:
    site.instantiate(V1)
    site.scale("VDU1", 3)
    site.change(V2)
    assert len(site.instances("VDU1")) == 3


def test_a_vdu_scaled_to_zero_stays_at_zero(site: ContractSite) -> None:
    """A paused autoscaler leaves a workload of 0 instances alone."""
    site.instantiate(V1)
    site.scale("VDU2", 0)
    site.change(V2)
    assert site.running() == {"VDU1": {"v2"}}
    assert not site.left_over()


def test_a_vdu_that_the_new_package_does_not_have_is_removed(site: ContractSite) -> None:
    site.instantiate(V1)
    site.change(replace(V2, vdus=("VDU1",)))
    assert site.is_at("v2", "VDU1")


def test_a_vdu_that_only_the_new_package_has_is_created(site: ContractSite) -> None:
    site.instantiate(replace(V1, vdus=("VDU1",)))
    site.change(V2)
    assert site.is_at("v2")


def test_an_exception_of_a_progress_callback_decides_nothing(
    site: ContractSite, caplog: pytest.LogCaptureFixture
) -> None:
    site.instantiate(V1)

    def broken(_: object) -> None:
        raise BrokenPipeError

    site.change(V2, Arguments(progress=broken))
    assert site.is_at("v2")
    assert caplog.text.count("broken failed") == 1


# --- records ------------------------------------------------------------------------------------


def test_vnfcs_keep_or_change_their_ids_as_the_specification_says(site: ContractSite) -> None:
    site.instantiate(V1)
    before = site.instance_record()
    after = site.change(V2).records.apply_to(before)
    ids = [
        {r["id"] for r in record["instantiatedVnfInfo"]["vnfcResourceInfo"]}
        for record in (before, after)
    ]
    assert (ids[0] == ids[1]) is not site.renews_vnfc_ids
    assert len(ids[0]) == len(ids[1])


def test_the_records_of_unchanged_vdus_are_kept(site: ContractSite) -> None:
    needs_parts(site)
    site.instantiate(V1)
    before = site.instance_record()
    after = site.change(V2, Arguments({"vdu_params": [{"vdu_id": "VDU1"}]})).records.apply_to(
        before
    )
    vnfcs_of_vdu2 = [
        [r for r in record["instantiatedVnfInfo"]["vnfcResourceInfo"] if r["vduId"] == "VDU2"]
        for record in (before, after)
    ]
    assert vnfcs_of_vdu2[0] == vnfcs_of_vdu2[1]


# --- coordination -------------------------------------------------------------------------------


def script_roles(site: ContractSite) -> list[str]:
    """Return the roles whose script a strategy runs, in order."""
    return ["new"] if site.in_place else ["new", "old"]


def test_scripts_run_for_each_vdu_and_get_its_context(site: ContractSite) -> None:
    site.instantiate(V1)
    changed = site.change(replace(V2, scripts=scripts(TELLS, TELLS)), Arguments(SCRIPT_PARAMS))
    outputs = [report.output.strip() for report in changed.scripts]
    assert outputs == [f"{role} {vdu} vnfd-v2" for role in script_roles(site) for vdu in VDUS]
    assert {report.status for report in changed.scripts} == {0}


FROM_OLD, FROM_NEW = "print('the old package')", "print('the new package')"


@pytest.mark.parametrize(
    ("in_old", "in_new", "found"),
    [
        ({"Scripts/old.py": FROM_OLD}, {"Scripts/new.py": FROM_NEW}, "own"),
        ({"Scripts/new.py": FROM_OLD}, {"Scripts/old.py": FROM_NEW}, "other"),
        (scripts(FROM_OLD, FROM_OLD), scripts(FROM_NEW, FROM_NEW), "own"),
    ],
)
def test_a_script_is_run_from_its_own_vnfs_package_or_else_from_the_other_one(
    site: ContractSite, in_old: dict[str, str], in_new: dict[str, str], found: str
) -> None:
    site.instantiate(replace(V1, scripts=in_old))
    reports = site.change(replace(V2, scripts=in_new), Arguments(SCRIPT_PARAMS)).scripts
    assert {report.which for report in reports} == set(script_roles(site))
    other = {"old": "new", "new": "old"}
    for report in reports:
        package = report.which if found == "own" else other[report.which]
        assert report.output.strip() == f"the {package} package"


def test_the_old_packages_script_runs_when_a_change_in_place_is_undone(
    site: ContractSite, tmp_path: Path
) -> None:
    if isinstance(site, KubernetesContractSite) or not site.in_place:
        pytest.skip("this change runs the old VNF's script forwards, or not at all")
    told = tmp_path / "told"
    tells = f"open({str(told)!r}, 'a').write('old')"
    site.instantiate(replace(V1, scripts={"Scripts/old.py": tells}))
    with pytest.raises(UpdateFailedError):
        site.change(replace(V2, scripts={"Scripts/new.py": FAILS}), Arguments(SCRIPT_PARAMS))
    assert told.read_text() == "old"


def test_a_script_can_be_called_by_the_name_of_its_class(site: ContractSite) -> None:
    site.instantiate(V1)
    params = {**SCRIPT_PARAMS, "lcm-operation-coordinate-new-vnf-class": "Coordinate"}
    changed = site.change(replace(V2, scripts=scripts(CLASS)), Arguments(params))
    assert changed.scripts[0].output.strip() == "by class new"


def test_a_script_inherits_no_secret_and_its_report_shows_no_password(
    site: ContractSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_PASSWORD", "inherited-password")
    site.instantiate(V1)
    login = {"cp_name": "CP1", "username": "ubuntu", "password": "sesame-1"}
    vdu = {"vdu_id": "VDU1", "new_vnfc_param": login}
    changed = site.change(
        replace(V2, scripts=scripts(SHOUTS)), Arguments({**SCRIPT_PARAMS, "vdu_params": vdu})
    )
    (report, *_) = changed.scripts
    assert "password ***" in report.output
    assert "OS_PASSWORD" not in report.output
    assert "sesame-1" not in str(report)


@pytest.mark.parametrize(
    ("script", "options", "message"),
    [
        pytest.param(FAILS, {}, "status 3: the peer said no", id="fails"),
        pytest.param(HANGS, {"coordination_seconds": 1}, "within 1 s", id="hangs"),
        pytest.param("not python", {}, "status 1", id="is no program"),
    ],
)
def test_a_failing_script_fails_the_change_and_everything_is_put_back(
    site: ContractSite, script: str, options: dict[str, Any], message: str
) -> None:
    site.instantiate(V1)
    release = replace(V2, scripts=scripts(script))
    with pytest.raises(UpdateFailedError, match=message):
        site.change(release, Arguments(SCRIPT_PARAMS, options=options))
    assert site.is_at("v1")


def test_control_characters_in_a_scripts_output_are_removed(site: ContractSite) -> None:
    site.instantiate(V1)
    changed = site.change(replace(V2, scripts=scripts(GARBAGE)), Arguments(SCRIPT_PARAMS))
    output = changed.scripts[0].output
    assert "\x1b" not in output
    assert len(output) < 10_000
    assert site.is_at("v2")


# --- failure ------------------------------------------------------------------------------------


def test_the_number_of_instances_survives_a_failure(site: ContractSite) -> None:
    site.instantiate(V1)
    site.scale("VDU1", 3)
    with pytest.raises(UpdateFailedError):
        site.change(BROKEN)
    assert len(site.instances("VDU1")) == 3


def test_a_change_to_another_release_first_undoes_a_failed_one(
    site: ContractSite,
) -> None:
    site.instantiate(V1)
    with pytest.raises(UpdateFailedError):
        site.change(BROKEN, Arguments(leave_failed=True))
    site.change(V3)
    assert site.is_at("v3")


@pytest.mark.parametrize("number", one_of(2, range(3, 15, 2), everywhere=True))
@pytest.mark.parametrize("recovery", ["rollback", "resume"])
def test_an_interrupted_failing_change_ends_with_the_old_release(
    site: ContractSite, number: int, recovery: str
) -> None:
    site.instantiate(V1)
    site.interrupt(BROKEN, PLAIN, number)
    if recovery == "rollback":
        site.rollback()
    else:
        with contextlib.suppress(UpdateFailedError):  # it fails again, and undoes itself
            site.resume()
    assert site.is_at("v1")


# --- wrong requests -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "body", "attribute"),
    [
        ({"upgrade_type": "Big-Bang"}, {}, "additionalParams.upgrade_type"),
        ({"vdu_params": [{"vdu_id": "VDU9"}]}, {}, r"vdu_params\[0\].vdu_id.*VDU9"),
        ({"lcm-operation-coordinate-new-vnf": "Scripts/none.py"}, {}, "Scripts/none.py"),
        ({"lcm-operation-coordinate-old-vnf": "Scripts/none.py"}, {}, "coordinate-old-vnf: .*none"),
        ({"lcm-operation-coordinate-new-vnf": "../x.py"}, {}, "coordinate-new-vnf: .*x.py"),
        ({}, {"vnfdId": "another"}, "vnfdId: expected vnfd-v2"),
        ({}, {"extVirtualLinks": "net"}, "extVirtualLinks: expected a list"),
    ],
)
def test_a_wrong_request_names_its_attribute_and_nothing_is_written(
    site: ContractSite, params: dict[str, Any], body: dict[str, Any], attribute: str
) -> None:
    site.instantiate(V1)
    with pytest.raises(PackageError, match=attribute):
        site.change(V2, Arguments(params, body))
    assert site.is_at("v1")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("class Other: ...", "expected the class Coordinate, found Other"),
        ("class Coordinate(:", "expected a Python file"),
    ],
)
def test_a_script_without_its_class_is_refused_and_nothing_is_written(
    site: ContractSite, script: str, message: str
) -> None:
    site.instantiate(V1)
    params = {**SCRIPT_PARAMS, "lcm-operation-coordinate-new-vnf-class": "Coordinate"}
    with pytest.raises(PackageError, match=message):
        site.change(replace(V2, scripts=scripts(script)), Arguments(params))
    assert site.is_at("v1")
