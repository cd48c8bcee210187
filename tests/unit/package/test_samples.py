# SPDX-License-Identifier: Apache-2.0
"""The samples: where they lie, copies, and the packages for Tacker."""

from __future__ import annotations

import zipfile
from importlib import resources
from pathlib import Path

import pytest

from container_update.model.errors import ContainerUpdateError, PackageError
from container_update.package import csar, csar_metadata
from container_update.package.tools import build, samples

CHECKOUT = Path(__file__).parents[3] / "samples"


@pytest.fixture
def types(tmp_path: Path) -> Path:
    """A folder with files that are called like ETSI's."""
    folder = tmp_path / "types"
    folder.mkdir()
    for name in samples.TYPE_FILES:
        (folder / name).write_text(f"description: {name}\n")
    return folder


def unzipped(package: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(package) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_checkout_that_is_installed_in_place_has_its_own_samples() -> None:
    assert samples.root().resolve() == CHECKOUT


def test_every_folder_of_the_samples_has_a_title() -> None:
    folders = {path.name for path in CHECKOUT.iterdir() if path.is_dir()} - {"__pycache__"}
    assert samples.titles().keys() == folders
    assert samples.titles()["coordination"] == "Coordination scripts"
    assert samples.titles()["rbac"] == "The minimal rights of an update"


def test_samples_that_are_not_installed_are_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def files(package: str) -> None:
        raise ModuleNotFoundError(package)

    monkeypatch.setattr(resources, "files", files)
    with pytest.raises(ContainerUpdateError, match="samples are not installed: run 'pip install"):
        samples.root()


def test_a_copy_has_every_file_but_what_python_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "samples"
    (place / "one/Scripts/__pycache__").mkdir(parents=True)
    for name in ("README.rst", "Scripts/a.py", "Scripts/__pycache__/a.pyc"):
        (place / "one" / name).write_text("=====\nTitle\n=====\n")
    monkeypatch.setattr(samples, "root", lambda: place)
    copy = samples.copy("one", tmp_path / "new" / "copy")
    found = {path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()}
    assert found == {"README.rst", "Scripts/a.py"}


@pytest.mark.parametrize("name", ["nothing", "..", "01-user-guide/v1", ""])
def test_only_the_samples_that_there_are_can_be_copied(name: str, tmp_path: Path) -> None:
    with pytest.raises(PackageError, match=r"no sample .*: choose one of 01-user-guide, .*, rbac"):
        samples.copy(name, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_copy_never_writes_into_a_folder_that_exists(tmp_path: Path) -> None:
    (tmp_path / "role.yaml").write_text("mine")
    with pytest.raises(PackageError, match=r"rbac cannot be copied to .*: File exists: name"):
        samples.copy("rbac", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["role.yaml"]


@pytest.mark.parametrize("api", ["v1", "v2"])
def test_a_package_for_tacker_has_the_guides_files_the_types_and_the_driver(
    api: str, types: Path, tmp_path: Path
) -> None:
    packages = samples.build_for_tacker(api, types, tmp_path / "new" / "folder")
    assert packages.keys() == {"before", "after"}
    for side, package in packages.items():
        assert package == tmp_path / "new/folder" / f"{side}.zip"
        with csar.open_package(str(package)) as opened:
            opened.verify()
        files = unzipped(package)
        driver = build.DRIVERS[api][1]
        guide = CHECKOUT / samples.GUIDE / api / side
        manifests = {path.relative_to(guide).as_posix() for path in guide.glob("Files/*/*")}
        definitions = (CHECKOUT / samples.DEFINITIONS[api] / "Definitions").iterdir()
        assert files.keys() == {
            csar_metadata.TOSCA_META,
            *manifests,
            *(f"Definitions/{path.name}" for path in definitions),
            *(f"Definitions/{name}" for name in samples.TYPE_FILES),
            driver,
        }
        assert files[driver] == build.driver_file(api).read_bytes()
        assert samples.VNFD_IDS[api][side].encode() in files["Definitions/vnf_type.yaml"]
        assert [name for name, content in files.items() if b"@VNFD_ID@" in content] == []


def test_the_packages_for_tacker_can_have_other_ids(types: Path, tmp_path: Path) -> None:
    packages = samples.build_for_tacker("v1", types, tmp_path / "out", {"before": "my-id"})
    assert packages.keys() == {"before"}
    assert b"my-id" in unzipped(packages["before"])["Definitions/vnf_type.yaml"]


@pytest.mark.parametrize("name", samples.TYPE_FILES)
def test_a_type_file_that_is_missing_is_named(name: str, types: Path, tmp_path: Path) -> None:
    (types / name).unlink()
    with pytest.raises(PackageError, match=rf"types has no {name}: take version 2\.6\.1"):
        samples.build_for_tacker("v2", types, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_created_is_a_clear_error(types: Path) -> None:
    with pytest.raises(PackageError, match=r"cannot be created: (File exists|Not a directory)"):
        samples.build_for_tacker("v1", types, types / samples.TYPE_FILES[0])
