# SPDX-License-Identifier: Apache-2.0
"""Proof 1: Tacker loads the installed driver and trusts the copy of it in a package."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.internals.core import driver_file
from tests.project.test_repository import ROOT
from tests.tacker import programs
from tests.tacker.conftest import Build
from tests.tacker.lab import OLDER, VERSION, Lab


@pytest.fixture(scope="module", params=[VERSION, OLDER])
def loaded(
    request: pytest.FixtureRequest,
    lab: Lab,
    build: Build,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Any]:
    """What a version of Tacker says about the driver, and about two packages with a copy of it: the
    sample as Tacker unpacks it, and one in which a byte of the copy is another one."""
    python = lab.pythons[request.param]
    if not python.exists():
        pytest.skip(f"no Tacker {request.param}: python tests/tacker/lab.py fetches it")
    folder = tmp_path_factory.mktemp("packages")
    with zipfile.ZipFile(build("v1")["before"]) as package:
        package.extractall(folder / "package")
    changed = Path(shutil.copytree(folder / "package", folder / "changed"))
    copy = changed / "Scripts" / "container_update_mgmt.py"
    copy.write_bytes(copy.read_bytes().replace(b"mgmt", b"mgmu", 1))
    said = run(lab, python, programs.INSIDE / "load_driver.py", folder / "package", changed)
    request_of_script = pickle.dumps({"operation": "scale_end", "vnf_instance": {}})
    answer = run(lab, python, driver_file("v2"), given=request_of_script)
    return {"version": request.param, "answer": pickle.loads(answer), **json.loads(said)}


def run(lab: Lab, python: Path, *command: Path, given: bytes = b"") -> bytes:
    environment = {**os.environ, **programs.environment(lab)}
    done = subprocess.run(
        [python, *command], input=given, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_tacker_loads_the_driver_from_the_installed_wheel(loaded: dict[str, Any]) -> None:
    assert (loaded["type"], loaded["installed"]) == ("mgmt-container-update", True)


def test_the_driver_has_every_method_that_tackers_base_class_demands(
    loaded: dict[str, Any],
) -> None:
    assert loaded["missing"] == []
    assert "modify_information_end" in loaded["called"]
    assert len(loaded["called"]) == 12


def test_tacker_trusts_the_samples_copy_of_the_driver_and_none_with_a_byte_changed(
    loaded: dict[str, Any],
) -> None:
    assert loaded["trusts"] == [True, "MgmtDriverHashMatchFailure"]


def test_the_page_has_what_each_version_does_with_the_drivers(loaded: dict[str, Any]) -> None:
    cells = (
        loaded["version"],
        f"loaded, its {len(loaded['called'])} operations called, the copy in ``Scripts/`` trusted",
        "answers" if loaded["answer"] == {} else "fails",
    )
    row = "   * - " + "\n     - ".join(cells) + "\n"
    assert row in (ROOT / "doc/source/tacker.rst").read_text(encoding="utf-8"), row
