# SPDX-License-Identifier: Apache-2.0
"""The core alone: without the folders of the annexes, and without the libraries of the extras."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml

import container_update

ANNEXES = ("emulator", "openstack", "vnfm")
EXTRAS = ("alembic", "fastapi", "keystoneauth1", "openstack", "sqlalchemy", "uvicorn")
PROGRAM = f"""\
import sys
sys.modules |= dict.fromkeys({EXTRAS})
# an editable installation finds what the copy has not
sys.meta_path = [each for each in sys.meta_path if "editable" not in each.__module__]
from container_update.cli.main import main
sys.exit(main())
"""
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def core(admin_kubeconfig: str, namespace: str, tmp_path: Path) -> Run:
    """Run a command on a copy of the product that has no annexes."""
    product = Path(container_update.__file__).parent
    gone = shutil.ignore_patterns(*ANNEXES, "__pycache__")
    shutil.copytree(product, tmp_path / "core" / product.name, ignore=gone)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "core")}

    target = ("-n", namespace, "--kubeconfig", admin_kubeconfig)

    def run(*words: str, where: Sequence[str] = target) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", PROGRAM, *words, *where],
            cwd=tmp_path, env=environment, check=False, capture_output=True, text=True, timeout=120,
        )  # fmt: skip

    return run


def package(folder: Path, text: str) -> str:
    folder.mkdir()
    pod = {"containers": [{"name": "main", "image": "nginx", "envFrom": [
        {"configMapRef": {"name": "config"}}]}]}  # fmt: skip
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    objects = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config"},
         "data": {"text": text}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec},
    ]  # fmt: skip
    (folder / "all.yaml").write_text(yaml.safe_dump_all(objects))
    return str(folder)


def test_the_core_installs_plans_updates_and_undoes_without_an_annex(
    core: Run, tmp_path: Path
) -> None:
    old, new = package(tmp_path / "old", "1"), package(tmp_path / "new", "2")
    for words, status in (
        (("install", old, "--yes", "--instance-id", "cnf"), 0),
        (("plan", old, new), 3),
        (("apply", old, new, "--yes"), 0),
        (("undo", "--yes"), 0),
        (("status",), 2),
        (("uninstall", "--yes"), 0),
    ):
        ran = core(*words)
        assert ran.returncode == status, ran.stdout + ran.stderr


def test_a_command_of_an_annex_that_is_not_there_is_told(core: Run) -> None:
    ran = core("vnfm", "serve", where=())
    assert ran.returncode == 64
    assert "the commands vnfm cannot be loaded" in ran.stderr
