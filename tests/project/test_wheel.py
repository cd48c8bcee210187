"""The content of the wheel, with the samples in it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.project.test_repository import ROOT, tracked

BUILD = "from setuptools.build_meta import build_wheel; build_wheel('dist')"
NOT_BUILT_FROM = {"tests", "doc", "benchmarks", "releasenotes"}


def run(folder: Path, *arguments: str) -> str:
    """Run Python in a folder and return its output; fail with its errors."""
    completed = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's files. It is built from a copy, as a build writes beside its sources."""
    copy = tmp_path_factory.mktemp("sources")
    for path in tracked():
        name = path.relative_to(ROOT)
        if path.is_file() and name.parts[0] not in NOT_BUILT_FROM:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy / name)
    run(copy, "-c", BUILD)
    (wheel,) = copy.glob("dist/*.whl")
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def files(folder: Path) -> dict[str, bytes]:
    """Return the contents of a folder by path, without compiled modules."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_has_every_sample_and_every_module(unpacked: Path) -> None:
    expected = {}
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        if name.startswith("samples/"):
            expected[f"container_update/{name}"] = path.read_bytes()
        elif name.startswith("container_update/") and path.suffix != ".rst":
            expected[name] = path.read_bytes()
    assert len(expected) > 400
    names = {name for name in files(unpacked) if name.startswith("container_update/")}
    assert names == expected.keys()
    assert {name: (unpacked / name).read_bytes() for name in names} == expected


def test_without_a_checkout_a_sample_is_copied_and_none_is_in_the_bundle(
    unpacked: Path, tmp_path: Path
) -> None:
    output = run(unpacked, "-m", "container_update", "samples", "04-blue-green", f"{tmp_path}/copy")
    assert output == f"{tmp_path}/copy\n"
    assert files(tmp_path / "copy") == files(unpacked / "container_update/samples/04-blue-green")
    run(unpacked, "-m", "container_update", "csar", "bundle", f"{tmp_path}/script.py")
    with zipfile.ZipFile(tmp_path / "script.py") as bundle:
        names = bundle.namelist()
    assert "container_update/package/samples.py" in names
    assert [name for name in names if name.startswith("container_update/samples/")] == []
