# SPDX-License-Identifier: Apache-2.0
"""The v2 script as a single file."""

from __future__ import annotations

import pickle
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import stevedore

from container_update.engine.goals import upgrade_types
from container_update.model.errors import PackageError
from container_update.package.tools.build import bundle

ALONE = ("-I", "-S")
"""Without what is installed."""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return bundle(tmp_path / "container_update_mgmt_v2.py")


def run(script: Path, request: dict[str, Any], *flags: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, *flags, str(script)]
    return subprocess.run(command, input=pickle.dumps(request), capture_output=True, check=False)


def test_the_bundle_answers_with_nothing_installed_beside_it(script: Path) -> None:
    done = run(script, {"operation": "modify_information_start", "vnf_instance": {}}, *ALONE)
    assert (done.returncode, pickle.loads(done.stdout), done.stderr) == (0, {}, b"")


def test_the_bundle_uses_its_own_modules_though_others_are_installed(script: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(script)!r}); "
        "import container_update.engine.goals.update as u"
    )
    command = [sys.executable, "-c", f"{code}; print(u.__file__)"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.startswith(str(script)), done.stderr


def test_the_bundle_has_the_upgrade_types_with_stevedore_alone_beside_it(
    script: Path, tmp_path: Path
) -> None:
    (tmp_path / "stevedore").symlink_to(Path(stevedore.__file__).parent)
    code = (
        f"import sys; sys.path[:0] = [{str(script)!r}, {str(tmp_path)!r}]; "
        "from container_update.engine.goals.upgrade_types import installed_types; "
        "print(sorted(installed_types()['kubernetes']))"
    )
    command = [sys.executable, *ALONE, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == f"{sorted(upgrade_types.installed_types()['kubernetes'])}\n", done.stderr
    assert "Blue-Green" in done.stdout


def test_an_update_gets_as_far_as_its_package(script: Path) -> None:
    info = {"metadata": {"lcm-kubernetes-def-files": ["a.yaml"]}}
    vim = {
        "vimType": "kubernetes",
        "interfaceInfo": {"endpoint": "http://127.0.0.1:9"},
        "accessInfo": {"bearer_token": "t"},
    }
    request = {
        "operation": "modify_information_end",
        "request": {"vnfdId": "new"},
        "vnf_instance": {
            "id": "instance-1",
            "instantiatedVnfInfo": info,
            "vimConnectionInfo": {"vim1": vim},
        },
        "tmp_csar_dir": "/no/such/package",
        "new_csar_dir": "/no/such/package",
    }
    done = run(script, request)
    assert done.returncode == 1
    assert done.stderr.decode().startswith("the package /no/such/package cannot be opened")
    kept = pickle.loads(done.stdout)["user_script_err_handling_data"]
    assert kept == {"container_update": {"state": "untouched"}}


def test_the_bundle_leaves_out_what_a_script_never_uses(script: Path) -> None:
    with zipfile.ZipFile(script) as archive:
        names = archive.namelist()
    assert "container_update/engine/goals/update.py" in names
    folders = {name.split("/")[1] for name in names if name.count("/") > 1}
    assert "engine" in folders
    assert not folders & {"cli", "emulator", "samples", "vnfm"}
    assert "container_update/drivers/tacker_v1.py" not in names


def test_the_same_sources_give_the_same_bytes(script: Path, tmp_path: Path) -> None:
    assert bundle(tmp_path / "again").read_bytes() == script.read_bytes()


def test_a_bundle_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(PackageError, match=r"nowhere/x\.py cannot be written: No such file"):
        bundle(tmp_path / "nowhere" / "x.py")
