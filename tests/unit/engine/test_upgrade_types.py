# SPDX-License-Identifier: Apache-2.0
"""Upgrade types: how they are spelled, and which strategy each leads to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from container_update.engine.goals import upgrade_types
from container_update.model.errors import ContainerUpdateError, PackageError
from container_update.planning.blue_green import BlueGreenPlanner
from container_update.planning.rolling import RollingPlanner
from tests import one_by_one, plugins

OURS = ["Blue-Green", "RollingUpdate"]


def test_ours_are_installed_for_both_kinds_of_vim() -> None:
    on_kubernetes = ["Blue-Green", "Canary", "RollingUpdate"]
    assert upgrade_types.installed_types() == {"kubernetes": on_kubernetes, "openstack": OURS}


@pytest.mark.parametrize("vim_type", ["kubernetes", "ETSINFV.KUBERNETES.V_1"])
def test_a_strategy_is_found_by_vim_and_type(vim_type: str) -> None:
    assert upgrade_types.find(vim_type, "blue green") is BlueGreenPlanner
    assert upgrade_types.find(vim_type, "RollingUpdate") is RollingPlanner


@pytest.mark.parametrize("text", ["Blue-Green", "blue_green", "bluegreen", "BLUE GREEN"])
def test_case_spaces_and_dashes_do_not_matter(text: str) -> None:
    assert upgrade_types.resolve(text, "kubernetes") == "Blue-Green"


@pytest.mark.parametrize("text", ["One-By-One", "Blue", "Green-Blue", "-", "rollin"])
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(PackageError, match=rf'upgrade_type: .*found "{text}"'):
        upgrade_types.resolve(text)


def test_a_strategy_of_one_vim_is_none_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_by_one.install(tmp_path, monkeypatch)
    assert upgrade_types.resolve("one by one") == "One-By-One"
    assert upgrade_types.find("kubernetes", "one by one").__name__ == "OneByOne"
    with pytest.raises(PackageError, match=r"\(openstack: Blue-Green, RollingUpdate\)"):
        upgrade_types.find("openstack", "one by one")


def test_for_a_vim_without_any_strategy_the_error_says_none() -> None:
    with pytest.raises(PackageError, match=r"\(docker: none\)"):
        upgrade_types.find("docker", "Blue-Green")


WRONG = {
    "docker-Canary = absent:Canary": r"docker-Canary cannot be loaded: No module named 'absent'",
    "docker-Canary = json:Canary": r"docker-Canary cannot be loaded: .*has no attribute 'Canary'",
    "kubernetes-Blue-Green = json:JSONDecoder": (
        "kubernetes-Blue-Green: expected one strategy of this name: uninstall one of them .*"
        "JSONDecoder"
    ),
}
"""An entry point, and what is said where it is needed."""


@pytest.mark.parametrize("entry_point", WRONG)
def test_a_strategy_that_cannot_be_used_is_named(
    entry_point: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = plugins.distribution(tmp_path, f"[{upgrade_types.NAMESPACE}]\n{entry_point}\n")
    monkeypatch.syspath_prepend(folder)
    plugins.search_anew(monkeypatch)
    vim_type, _, upgrade_type = entry_point.partition(" =")[0].partition("-")
    with pytest.raises(ContainerUpdateError, match=WRONG[entry_point]):
        upgrade_types.find(vim_type, upgrade_type)


def test_a_strategy_is_found_where_the_cache_of_entry_points_cannot_be_written() -> None:
    """As under an account of a service, whose home is not there."""
    program = """
from container_update.engine.goals import upgrade_types
upgrade_types.find("kubernetes", "Blue-Green")
"""
    environment = {**os.environ, "HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/cache"}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
