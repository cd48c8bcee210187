# SPDX-License-Identifier: Apache-2.0
"""The page for a CI: all that it prints runs in one shell that ends at the first failure."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from container_update import install
from tests import needs
from tests.functional.cnf import Cnf
from tests.functional.manifests import ENV, config_map, workload

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "doc/source/howto/ci.rst"
BLOCK = re.compile(r"^\.\. code-block:: (\w+)\n\n((?:   .*\n|\n)+)", re.MULTILINE)
RUNNER = """\
set -e
pip() { printf 'pip %s\\n' "$*"; }
conftest() { jq --exit-status .steps "${!#}" > /dev/null; }
"""
"""The shell of a runner. It has the program already."""


def blocks() -> Iterator[tuple[str, str]]:
    """Yield the language and the text of each block of the page."""
    for language, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        yield language, textwrap.dedent(text)


def script() -> str:
    """Return what the page lets a shell run, in its order."""
    commands: list[str] = []
    for language, text in blocks():
        if language == "console":
            commands += re.findall(r"^\$ (.*)", text, re.MULTILINE)
        elif language == "yaml":
            commands += steps_of(yaml.safe_load(text))
    return "\n".join([RUNNER, *commands, ""])


def steps_of(pipeline: dict[str, Any]) -> Iterator[str]:
    """Yield the commands of the jobs of GitHub, or of GitLab."""
    for job in pipeline.get("jobs", {}).values():
        for step in job["steps"]:
            yield step.get("run", "")
            yield 'set -a; . "$GITHUB_ENV"; set +a'
    for job in (each for each in pipeline.values() if isinstance(each, dict)):
        yield from (*job.get("before_script", ()), *job.get("script", ()))


@needs.JQ
def test_a_shell_that_ends_at_the_first_failure_runs_the_whole_page_as_it_is_printed(
    cnf: Cnf, admin_kubeconfig: str, tmp_path: Path
) -> None:
    (tmp_path / "packages").mkdir()
    for name, image in (("running", "nginx:1.27"), ("new", "nginx:1.28")):
        files = {
            "c.yaml": config_map(setting=name),
            "w.yaml": workload("Deployment", "w", container=ENV, image=image),
        }
        Path(cnf.package(files)).rename(tmp_path / "packages" / name)
    old = str(tmp_path / "packages/running")
    install(old, cnf.admin, namespace=cnf.namespace, instance_id="upf", options=cnf.options)
    program = tmp_path / "bin/container-update"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m container_update "$@"\n')
    program.chmod(0o755)
    files = {name: str(tmp_path / name) for name in ("GITHUB_ENV", "GITHUB_STEP_SUMMARY")}
    for path in files.values():
        Path(path).touch()
    ran = subprocess.run(
        ["bash"],
        input=script().replace(" -n core", f" -n {cnf.namespace}"),
        cwd=tmp_path,
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith("CONTAINER_UPDATE_")},
            **files,
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "RUNNER_TEMP": str(tmp_path),
            "KUBECONFIG": admin_kubeconfig,
            "KUBECONFIG_TEXT": Path(admin_kubeconfig).read_text(encoding="utf-8"),
            "CONTAINER_UPDATE_NAMESPACE": cnf.namespace,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Plan: 1 to replace, 1 to restart" in ran.stdout
    assert "Saved in upf-1.3.plan." in ran.stdout
    assert "upf" in (tmp_path / "plan.md").read_text(encoding="utf-8")
    assert (tmp_path / "GITHUB_STEP_SUMMARY").stat().st_size > 0
    assert '"Outcome"' in (tmp_path / "events.jsonl").read_text(encoding="utf-8").splitlines()[-1]
