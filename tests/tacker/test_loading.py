"""Proof 1: Tacker loads the installed driver and trusts the copy of it in a package."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.tacker import programs
from tests.tacker.conftest import Build
from tests.tacker.lab import Lab


@pytest.fixture
def unpacked(build: Build, tmp_path: Path) -> Path:
    """The sample package as Tacker unpacks it."""
    with zipfile.ZipFile(build("v1")["before"]) as package:
        package.extractall(tmp_path / "package")
    return tmp_path / "package"


def load_driver(lab: Lab, *packages: Path) -> dict[str, Any]:
    completed = programs.run_script(lab, "load_driver.py", [*map(str, packages)], lab.folder)
    assert completed.returncode == 0, completed.stderr.decode()
    return dict(json.loads(completed.stdout))


def test_tacker_loads_the_driver_from_the_installed_wheel(lab: Lab) -> None:
    result = load_driver(lab)
    assert (result["type"], result["installed"]) == ("mgmt-container-update", True)


def test_the_driver_has_every_method_that_tackers_base_class_demands(
    lab: Lab,
) -> None:
    result = load_driver(lab)
    assert result["missing"] == []
    assert "modify_information_end" in result["called"]
    assert len(result["called"]) == 12


def test_tacker_trusts_the_samples_copy_of_the_driver_and_none_with_a_byte_changed(
    lab: Lab, unpacked: Path, tmp_path: Path
) -> None:
    changed = Path(shutil.copytree(unpacked, tmp_path / "changed"))
    copy = changed / "Scripts" / "container_update_mgmt.py"
    copy.write_bytes(copy.read_bytes().replace(b"mgmt", b"mgmu", 1))
    assert load_driver(lab, unpacked, changed)["trusts"] == [True, "MgmtDriverHashMatchFailure"]
