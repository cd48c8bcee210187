# SPDX-License-Identifier: Apache-2.0
"""The content of the sdist, and of the wheel that is built from it; both, installed by pip."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from email import message_from_bytes
from pathlib import Path

import pytest

from tests.deploy.test_containerfile import sources
from tests.internals.core import man
from tests.project.test_repository import ROOT, tracked

BUILD = "from setuptools.build_meta import build_{0}; build_{0}('dist')"
WRITTEN_BY_SETUPTOOLS = {"PKG-INFO", "container_update.egg-info", "setup.cfg"}


def run(folder: Path, *arguments: str) -> str:
    """Run Python in a folder and return its output; fail with its errors."""
    completed = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


def files(folder: Path) -> dict[str, bytes]:
    """Return the contents of a folder by path, without compiled modules."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="module")
def repository() -> Mapping[str, bytes]:
    """The contents of the repository's files by path."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_bytes() for path in tracked() if path.is_file()
    }


@pytest.fixture(scope="module")
def sdist_file(repository: Mapping[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist. It is built from a copy, as a build writes beside its sources."""
    copy = tmp_path_factory.mktemp("sources")
    for name in repository:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, copy / name)
    (copy / "tests/__pycache__").mkdir()
    (copy / "tests/__pycache__/attributes.cpython-311.pyc").touch()
    run(copy, "-c", BUILD.format("sdist"))
    (archive,) = copy.glob("dist/*.tar.gz")
    return archive


@pytest.fixture(scope="module")
def sdist(sdist_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist's files."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(sdist_file) as tar:
        tar.extractall(folder, filter="data")
    (top,) = folder.iterdir()
    return top


@pytest.fixture(scope="module")
def wheel_file(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is built from the sdist, as pip does."""
    copy = tmp_path_factory.mktemp("wheel") / "sources"
    shutil.copytree(sdist, copy)
    run(copy, "-c", BUILD.format("wheel"))
    (archive,) = copy.glob("dist/*.whl")
    return archive


@pytest.fixture(scope="module")
def wheel(wheel_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's files."""
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel_file) as content:
        content.extractall(folder)
    return folder


@pytest.mark.parametrize("kind", ["sdist", "wheel"])
def test_what_pip_installs_is_a_command_that_runs(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Its dependencies are those of this environment: pip asks no index."""
    archive: Path = request.getfixturevalue(f"{kind}_file")
    alone = ("--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check")
    run(tmp_path, "-m", "pip", "install", "-q", *alone, "--target", "installed", str(archive))

    def command(*words: str) -> str:
        program = str(tmp_path / "installed/bin/container-update")
        environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}
        return subprocess.run(
            [program, *words], cwd=tmp_path, env=environment, check=True, text=True,
            capture_output=True,
        ).stdout  # fmt: skip

    version = command("--version").removeprefix("container-update ").strip()
    assert f"-{version}" in archive.name
    assert "04-blue-green" in command("samples")
    command("samples", "01-user-guide", "guide")
    assert "errors" in command("csar", "check", "guide/v2/after")
    pages = tmp_path / "installed/share/man/man1"
    assert (pages / "container-update.1").read_text() == man.page()
    assert "container-update.1" in (pages / "kubectl-cnf.1").read_text()


def test_the_sdist_has_the_whole_repository_and_nothing_else(
    repository: Mapping[str, bytes], sdist: Path
) -> None:
    assert {"tox.ini", "deploy", "doc", "releasenotes", "samples", "tests"} <= {
        name.partition("/")[0] for name in repository
    }
    found = {
        name: content
        for name, content in files(sdist).items()
        if name.partition("/")[0] not in WRITTEN_BY_SETUPTOOLS
    }
    expected = {name: content for name, content in repository.items() if name != "setup.cfg"}
    assert found.keys() == expected.keys()
    assert found == expected
    assert list(sdist.rglob("*.pyc")) == []


def test_the_wheel_has_every_sample_and_every_module(
    repository: Mapping[str, bytes], wheel: Path
) -> None:
    expected = {}
    for name, content in repository.items():
        if name.startswith("samples/"):
            expected[f"container_update/{name}"] = content
        elif name.startswith("container_update/") and not name.endswith(".rst"):
            expected[name] = content
    assert len(expected) > 400
    found = {
        name: content
        for name, content in files(wheel).items()
        if not name.partition("/")[0].endswith((".dist-info", ".data"))
    }
    assert found.keys() == expected.keys()
    assert found == expected


def test_the_image_gets_all_that_the_wheel_is_built_from(
    repository: Mapping[str, bytes], wheel: Path, tmp_path: Path
) -> None:
    """Build it from what the Containerfile copies and compare."""
    for name, content in repository.items():
        if name.partition("/")[0] in sources():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(content)
    run(tmp_path, "-c", BUILD.format("wheel"))
    (archive,) = tmp_path.glob("dist/*.whl")
    with zipfile.ZipFile(archive) as content:
        assert sorted(content.namelist()) == sorted(files(wheel))


def test_an_index_shows_where_the_project_is_and_who_writes_it(wheel: Path) -> None:
    (path,) = wheel.glob("*.dist-info/METADATA")
    metadata = message_from_bytes(path.read_bytes())
    urls = dict(line.split(", ") for line in metadata.get_all("Project-URL", []))
    assert urls.keys() == {"Documentation", "Source", "Issues", "Release notes"}
    assert [url for url in urls.values() if not url.startswith("https://")] == []
    assert metadata["Author"] == metadata["Maintainer"] == "container-update contributors"
    statuses = [line for line in metadata.get_all("Classifier", []) if "Status" in line]
    assert len(statuses) == 1


def test_without_a_checkout_a_sample_is_copied_and_none_is_in_the_bundle(
    wheel: Path, tmp_path: Path
) -> None:
    output = run(
        wheel, "-m", "container_update", "try", "samples", "04-blue-green", f"{tmp_path}/copy"
    )
    assert output == f"{tmp_path}/copy\n"
    assert files(tmp_path / "copy") == files(wheel / "container_update/samples/04-blue-green")
    run(wheel, "-m", "container_update", "csar", "bundle", f"{tmp_path}/script.py")
    with zipfile.ZipFile(tmp_path / "script.py") as bundle:
        names = bundle.namelist()
    assert "container_update/package/tools/samples.py" in names
    assert [name for name in names if name.startswith("container_update/samples/")] == []
