# SPDX-License-Identifier: Apache-2.0
"""``container-update samples`` and ``csar sample``, as operators type them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from container_update.cli import main
from container_update.package.tools import samples


def run(*arguments: str | Path) -> tuple[int, list[str]]:
    """The exit status and the lines that were printed."""
    out = io.StringIO()
    return main.main(list(map(str, arguments)), out), out.getvalue().splitlines()


def test_every_sample_is_listed_on_a_line_of_its_own() -> None:
    status, lines = run("try", "samples")
    assert status == 0
    assert [tuple(line.split(maxsplit=1)) for line in lines] == list(samples.titles().items())
    columns = {
        line.index(title) for line, title in zip(lines, samples.titles().values(), strict=True)
    }
    assert len(columns) == 1, "the titles stand below each other"


def test_a_sample_goes_into_the_folder_that_is_named(tmp_path: Path) -> None:
    assert run("try", "samples", "rbac", tmp_path / "rights") == (0, [str(tmp_path / "rights")])
    assert (tmp_path / "rights" / "role.yaml").is_file()


def test_a_sample_goes_into_a_folder_of_its_name_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("try", "samples", "coordination") == (0, ["coordination"])
    assert (tmp_path / "coordination" / "ask_manager.py").is_file()


def test_a_sample_that_there_is_not_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("try", "samples", "nothing", tmp_path / "copy") == (4, [])
    assert "there is no sample nothing: choose one of" in capsys.readouterr().err


def test_the_packages_for_tacker_are_named_when_they_are_built(tmp_path: Path) -> None:
    for name in samples.TYPE_FILES:
        (tmp_path / name).touch()
    status, lines = run("csar", "sample", "v2", tmp_path, tmp_path / "out")
    assert (status, lines) == (0, [f"{tmp_path}/out/before.zip", f"{tmp_path}/out/after.zip"])
    assert all(Path(line).is_file() for line in lines)


@pytest.mark.parametrize("types", [".", "no/such/folder"])
def test_packages_for_tacker_without_the_type_files_are_refused(
    types: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("csar", "sample", "v1", tmp_path / types, tmp_path) == (4, [])
    assert "https://forge.etsi.org/rep/nfv/SOL001" in capsys.readouterr().err
