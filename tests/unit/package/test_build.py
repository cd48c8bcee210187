# SPDX-License-Identifier: Apache-2.0
"""Making a package of a folder. (Its metadata: test_csar.py and test_samples.py.)"""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from container_update.model.errors import PackageError
from container_update.package import csar
from container_update.package.tools.build import DRIVERS, build, driver_file

VNFD = "Definitions/x.vnfd.yaml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = tmp_path / "folder" / "Files"
    files.mkdir(parents=True)
    (files / "cm.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n")
    (files / ".hidden").write_text("of an editor")
    (files.parent / "Definitions").mkdir()
    (files.parent / VNFD).write_text("tosca_definitions_version: tosca_simple_yaml_1_2\n")
    return files.parent


@pytest.mark.parametrize("api", ["v1", "v2"])
def test_a_package_carries_the_installed_driver_byte_for_byte(
    api: str, folder: Path, tmp_path: Path
) -> None:
    target = build(folder, tmp_path / "package.zip", api=api)
    with zipfile.ZipFile(target) as package:
        assert package.read(DRIVERS[api][1]) == driver_file(api).read_bytes()


def test_without_an_api_a_package_carries_no_driver(folder: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(build(folder, tmp_path / "package.zip")) as package:
        assert package.namelist() == [VNFD, "Files/cm.yaml", "TOSCA-Metadata/TOSCA.meta"]


def test_what_was_built_can_be_read_and_its_hashes_hold(folder: Path, tmp_path: Path) -> None:
    with csar.open_package(str(build(folder, tmp_path / "package.zip", api="v2"))) as package:
        package.verify()
        listed = [artifact.path for artifact in package.artifacts]
    assert listed == [VNFD, "Files/cm.yaml", "Scripts/container_update_mgmt_v2.py"]


def test_the_same_files_give_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    first = build(folder, tmp_path / "first.zip").read_bytes()
    (folder / "Files" / "cm.yaml").touch()
    assert build(folder, tmp_path / "second.zip").read_bytes() == first


def test_an_older_zip_is_replaced(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "package.zip"
    target.write_text("older")
    assert zipfile.is_zipfile(build(folder, target))
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["package.zip"]


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("nowhere", "package.zip", "no such folder"),
        ("folder", "nowhere/package.zip", "cannot be written: No such file or directory"),
        ("folder", "folder/package.zip", "cannot be written into"),
    ],
)
def test_a_package_that_cannot_be_built_is_a_clear_error(
    source: str, target: str, message: str, folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(PackageError, match=message):
        build(tmp_path / source, tmp_path / target)


@pytest.mark.parametrize("vnfd", [None, "x.vnfd.yaml", "Definitions/x.yaml"])
def test_a_folder_without_a_vnfd_is_no_package_and_nothing_is_written(
    vnfd: str | None, folder: Path, tmp_path: Path
) -> None:
    (folder / VNFD).rename(folder / vnfd) if vnfd else (folder / VNFD).unlink()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(PackageError, match=r"expected a VNFD Definitions/NAME\.vnfd\.yaml"):
        build(folder, tmp_path / "package.zip", api="v2")
    assert sorted(tmp_path.rglob("*")) == before
