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


def test_no_metadata_is_written_through_a_link_that_leads_out(folder: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("as it was")
    (folder / "TOSCA-Metadata").mkdir()
    (folder / "TOSCA-Metadata/TOSCA.meta").symlink_to(theirs)
    with pytest.raises(PackageError, match=r"TOSCA\.meta"):
        build(folder, tmp_path / "package.zip")
    assert theirs.read_text() == "as it was"


def test_a_folder_with_two_vnfds_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "Definitions/y.vnfd.yml").write_text("tosca_definitions_version: x\n")
    with pytest.raises(PackageError, match=r"expected one VNFD, found .*x\.vnfd.*, .*y\.vnfd"):
        build(folder, tmp_path / "package.zip")


def test_what_python_compiled_is_not_packed_and_all_may_read_what_is(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "Scripts/__pycache__").mkdir(parents=True)
    (folder / "Scripts/__pycache__/a.pyc").write_text("compiled")
    (folder / "Files/cm.yaml").chmod(0o600)
    with zipfile.ZipFile(build(folder, tmp_path / "package.zip")) as package:
        modes = {info.filename: info.external_attr >> 16 for info in package.infolist()}
    assert modes == dict.fromkeys([VNFD, "Files/cm.yaml", "TOSCA-Metadata/TOSCA.meta"], 0o644)
