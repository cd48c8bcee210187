# SPDX-License-Identifier: Apache-2.0
"""``container-update csar``, as those who write packages type it."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest

from container_update.cli import main
from container_update.package.tools import samples

SAMPLE = samples.root() / "01-user-guide" / "v1" / "before"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLE, tmp_path / "package"))


def csar(*arguments: str | Path) -> tuple[int, str]:
    """The exit status and what was printed."""
    out = io.StringIO()
    return main.main(["csar", *map(str, arguments)], out), out.getvalue()


def test_a_package_without_errors_passes_with_a_count_of_the_rest(package: Path) -> None:
    status, told = csar("check", package)
    assert status == 0
    *findings, total = told.splitlines()
    assert findings
    assert all(line.startswith(("warning: ", "note: ")) for line in findings)
    assert total == f"0 errors, {len(findings)} other findings"


def test_a_package_with_an_error_does_not_pass(package: Path) -> None:
    (package / "Files/kubernetes/deployment.yaml").write_text("kind: [Deployment")
    status, told = csar("check", package)
    assert status == 4
    assert told.startswith("error: Files/kubernetes/deployment.yaml")
    assert told.splitlines()[-1].startswith("2 errors, "), "its hash and its YAML"


def test_one_finding_is_counted_in_the_singular(package: Path) -> None:
    (package / "Files/kubernetes/more.yaml").write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: p}}"
    )
    assert csar("check", package)[1].splitlines()[-1].startswith("1 error, ")


def test_a_folder_without_a_vnfd_is_not_built(
    package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    next(package.glob("Definitions/*.vnfd.yaml")).unlink()
    assert csar("build", package, "--to", tmp_path / "p.zip") == (4, "")
    assert "expected a VNFD Definitions/NAME.vnfd.yaml" in capsys.readouterr().err
    assert not (tmp_path / "p.zip").exists()


def test_programs_get_the_same_findings_as_json(package: Path) -> None:
    (package / "Files/kubernetes/deployment.yaml").write_text("kind: [Deployment")
    status, told = csar("check", package, "-o", "json")
    assert status == 4
    findings = json.loads(told)["findings"]
    lines = csar("check", package)[1].splitlines()
    assert len(findings) == len(lines) - 1
    assert findings[0]["severity"] == "error"
    assert findings[0]["file"] == "Files/kubernetes/deployment.yaml"
    assert {"message", "advice", "line"} < set(findings[0])


@pytest.mark.parametrize(
    ("bound", "told"),
    [
        ("--package-files=3", "files"),
        ("--package-bytes=100", "bytes"),
        ("--def-file-bytes=100", "bytes"),
        ("--yaml-values=3", "values"),
        ("--yaml-characters=3", "characters"),
        ("--yaml-depth=1", "deep"),
    ],
)
def test_the_bounds_of_reading_are_options(
    bound: str, told: str, package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, found = csar("check", package, bound)
    assert status == 4
    assert told in found + capsys.readouterr().err


def test_what_is_built_passes_the_check(package: Path, tmp_path: Path) -> None:
    status, told = csar("build", package, "--to", tmp_path / "p.zip", "--api", "v1")
    assert (status, told) == (0, f"{tmp_path / 'p.zip'}\n")
    assert csar("check", tmp_path / "p.zip")[0] == 0
