# SPDX-License-Identifier: Apache-2.0
"""What identifies a package for people."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from container_update.model.errors import PackageError
from container_update.model.requests import PackageIdentity
from container_update.package import csar
from container_update.package.tools import samples

PACKAGE = samples.root() / samples.GUIDE / "v1" / "after"


def identity_of(source: str) -> PackageIdentity:
    with csar.open_package(source) as package:
        return csar.identity_of(package)


def test_a_package_is_identified_by_its_vnfd_and_its_bytes(tmp_path: Path) -> None:
    zipped = shutil.make_archive(str(tmp_path / "after"), "zip", PACKAGE)
    folder, archive = identity_of(str(PACKAGE)), identity_of(zipped)
    assert (folder.product, folder.version) == ("Sample VNF", "2.0")
    assert (archive.product, archive.version) == ("Sample VNF", "2.0")
    assert archive.sha256 == hashlib.sha256(Path(zipped).read_bytes()).hexdigest()
    assert str(folder) == f"Sample VNF 2.0 (sha256 {folder.sha256[:12]})"


def test_a_folder_has_another_hash_when_a_file_of_it_has_another_content_or_name(
    tmp_path: Path,
) -> None:
    copy = Path(shutil.copytree(PACKAGE, tmp_path / "copy"))
    hashes = [identity_of(str(copy)).sha256]
    assert hashes == [identity_of(str(PACKAGE)).sha256]
    (copy / "note").write_text("1")
    hashes.append(identity_of(str(copy)).sha256)
    (copy / "note").rename(copy / "other")
    hashes.append(identity_of(str(copy)).sha256)
    assert len(set(hashes)) == 3


def test_a_package_whose_vnfd_is_not_accepted_has_its_name_and_its_hash(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(PACKAGE, tmp_path / "copy"))
    shutil.rmtree(copy / "TOSCA-Metadata")
    found = identity_of(str(copy))
    assert str(found) == f"copy (sha256 {found.sha256[:12]})"


def test_a_yaml_file_has_its_name_and_the_hash_of_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text("kind: Pod\n")
    found = identity_of(str(tmp_path / "web.yaml"))
    assert found.sha256 == hashlib.sha256(b"kind: Pod\n").hexdigest()
    assert str(found) == f"web.yaml (sha256 {found.sha256[:12]})"


def test_there_has_to_be_a_package(tmp_path: Path) -> None:
    with pytest.raises(PackageError, match="nowhere"):
        identity_of(str(tmp_path / "nowhere"))
