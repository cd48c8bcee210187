# SPDX-License-Identifier: Apache-2.0
"""The library as its documentation and another project use it, on the embedded cluster."""

from __future__ import annotations

import doctest
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import container_update as library
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.internals.core import samples

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "doc/source/library.rst"
GUIDE = samples.root() / samples.GUIDE / "v2"

PROGRAM = f"""\
from container_update import Outcome, UpdateRequest, connect, update

request = UpdateRequest(old={str(GUIDE / "before")!r}, new={str(GUIDE / "after")!r})
outcome: Outcome = update(request, connect())
print(*(result.state.value for result in outcome.results))
"""


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The kubeconfig of a separate cluster, also in $KUBECONFIG."""
    with EmbeddedCluster() as embedded:
        path = str(embedded.write_kubeconfig(tmp_path / "kubeconfig"))
        monkeypatch.setenv("KUBECONFIG", path)
        yield path


def write_broken(folder: Path) -> None:
    """Copy the guide's new package, with an image of a Deployment that does not exist."""
    shutil.copytree(GUIDE / "after", folder)
    deployment, metadata = folder / "Files/kubernetes/deployment.yaml", folder / "TOSCA-Metadata"
    good = deployment.read_bytes()
    bad = good.replace(b"image: cirros", b"image: missing")
    assert bad != good
    deployment.write_bytes(bad)
    listed = (metadata / "TOSCA.meta").read_text()
    digests = [hashlib.sha256(content).hexdigest() for content in (good, bad)]
    (metadata / "TOSCA.meta").write_text(listed.replace(*digests))


@pytest.mark.usefixtures("kubeconfig")
def test_the_examples_of_the_documentation_are_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_broken(tmp_path / "broken")
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(
        str(LIBRARY), module_relative=False, optionflags=doctest.ELLIPSIS, encoding="utf-8"
    )
    assert result.attempted > 30
    assert result.failed == 0


def test_a_program_of_five_lines_passes_mypy_and_runs(kubeconfig: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)

    def output(*arguments: str, status: int = 0) -> str:
        completed = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            # mypy does not follow the import hook of an editable installation
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert completed.returncode == status, completed.stdout
        return completed.stdout

    assert "no issues found" in output("-m", "mypy", "--strict", "program.py")
    wrong = "from container_update import connect, uptade\nconnect(7)\n"
    (tmp_path / "wrong.py").write_text(wrong)
    assert "Found 2 errors" in output("-m", "mypy", "--strict", "wrong.py", status=1)
    install = "from container_update import connect, install; install({!r}, connect())"
    output("-c", install.format(str(GUIDE / "before")))
    assert output("program.py").split() == ["done"] * 7


def test_who_leaves_the_loop_of_an_operation_has_everything_as_before(
    kubeconfig: str, tmp_path: Path
) -> None:
    write_broken(tmp_path / "broken")
    request = library.UpdateRequest(old=str(GUIDE / "after"), new=str(tmp_path / "broken"))
    with library.connect(kubeconfig) as cluster:
        library.install(request.old, cluster)
        for event in library.events(library.update, request, cluster):
            if isinstance(event, library.StepWait):
                break
        assert library.status(cluster).record is None
        assert library.plan_update(request, cluster).steps
        missing = library.UpdateRequest(old=request.old, new="missing")
        with pytest.raises(library.PackageError):
            list(library.events(library.update, missing, cluster))


def test_a_plan_that_is_not_the_saved_one_is_refused(kubeconfig: str, tmp_path: Path) -> None:
    request = library.UpdateRequest(old=str(GUIDE / "before"), new=str(GUIDE / "after"))
    with library.connect(kubeconfig) as cluster:
        library.install(request.old, cluster)
        plan, saved = library.plan_update(request, cluster), tmp_path / "plan"
        assert "because" in library.describe(plan)
        library.save_plan(plan, request, cluster, saved)
        library.update(request, cluster)
        library.update(library.UpdateRequest(old=request.new, new=request.old), cluster)
        with pytest.raises(library.PlanError, match="cannot be carried out any more"):
            library.apply_plan(saved, cluster)
        with pytest.raises(library.PlanError, match="expected a saved plan"):
            library.apply_plan(GUIDE / "before" / "TOSCA-Metadata/TOSCA.meta", cluster)
