# SPDX-License-Identifier: Apache-2.0
"""The documentation builds from wherever it is built; CI builds it without a warning."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = Path(sys.executable).parent


def run(tool: str, *arguments: str) -> None:
    """Run a tool of this environment; fail with what it says."""
    assert (TOOLS / tool).exists(), f"{tool} is missing: install the extra 'test'"
    completed = subprocess.run(
        [TOOLS / tool, *arguments],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout


@pytest.mark.thorough
def test_the_documentation_loads_nothing_from_the_network(tmp_path):
    run("sphinx-build", "-q", "-b", "html", "doc/source", str(tmp_path))
    loads = r"""(?:src=["']|url\(["']?|@import\s*["']?|<link[^>]+href=["'])(?:https?:)?//[^"')]+"""
    pages = [page for kind in ("html", "css") for page in tmp_path.rglob(f"*.{kind}")]
    assert len(pages) > 30
    assert [found for page in pages for found in re.findall(loads, page.read_text("utf-8"))] == []


@pytest.mark.thorough
def test_the_documentation_builds_without_a_git_history_too(tmp_path):
    """As from an sdist: the release notes then say where they are."""
    for part in ("container_update", "deploy", "doc", "releasenotes", "samples"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("*.pyc"))
    source, out = str(tmp_path / "doc/source"), tmp_path / "out"
    run("sphinx-build", "-q", "-W", "--keep-going", "-b", "text", source, str(out))
    assert "built without the git history" in (out / "release-notes/notes.txt").read_text("utf-8")


@pytest.mark.thorough
def test_the_release_notes_say_what_was_released_and_what_came_since(tmp_path):
    copy = tmp_path / "copy"

    def git(*arguments):
        return subprocess.run(
            ["git", "-c", "user.name=A", "-c", "user.email=a@b.c", "-C", copy, *arguments],
            capture_output=True,
            text=True,
            check=False,
        )

    copy.mkdir()
    if (cloned := git("clone", "-q", str(ROOT), ".")).returncode:
        pytest.skip("there is no git history: " + cloned.stderr.strip())
    git("tag", "-f", "-a", "1.0.0", "-m", "Release 1.0.0")
    note = copy / "releasenotes/notes/what-came-since-0123456789abcdef.yaml"
    note.write_text("---\nfixes:\n  - It came since.\n")
    git("add", "releasenotes")
    git("commit", "-q", "-m", "Come since")
    run("sphinx-build", "-q", "-W", "-b", "text", str(copy / "doc/source"), f"{tmp_path}/out")
    page = (tmp_path / "out/release-notes/notes.txt").read_text("utf-8")
    since, released = page.index("In development\n===="), page.index("1.0.0\n====")
    assert since < page.index("It came since.") < released < page.index("A running CNF moves")


def test_readmes_and_contributing_are_valid_restructured_text(tmp_path):
    pages = [*ROOT.glob("*.rst"), *ROOT.glob("samples/*/README.rst")]
    assert ROOT / "README.rst" in pages
    for number, page in enumerate(pages):
        text = page.read_text(encoding="utf-8")
        (tmp_path / f"page{number}.rst").write_text(text, encoding="utf-8")
    shutil.copytree(ROOT / "doc/source/pictures", tmp_path / "doc/source/pictures")
    (tmp_path / "index.rst").write_text("Pages\n=====\n\n.. toctree::\n   :glob:\n\n   page*\n")
    (tmp_path / "conf.py").write_text("")
    run("sphinx-build", "-q", "-W", "--keep-going", "-b", "dummy", str(tmp_path), f"{tmp_path}/out")
