# SPDX-License-Identifier: Apache-2.0
"""``import container_update``: the names that it offers, what they cost, and their examples."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import container_update

NAMES = {
    *("connect", "install", "update", "change_package", "heal", "scale", "terminate", "uninstall"),
    *("plan_install", "plan_update", "plan_change", "plan_heal", "plan_scale", "plan_uninstall"),
    *("freeze", "unfreeze", "events", "plan_of", "save_plan", "apply_plan", "describe"),
    *("InstallRequest", "TerminateRequest", "UndoRequest", "ChangePackageRequest"),
    *("HealRequest", "ScaleRequest"),
    *("resume", "rollback", "promote", "abort", "status", "history", "undo", "plan_undo"),
    *("Options", "UpdateRequest", "ChangeRequest", "Plan", "Step", "Outcome", "Cluster"),
    "ReadOnlyCluster",
    *("CancelToken", "StepResult", "StepWait", "UndoStarted", "ResumeStarted", "Status"),
    *("ContainerUpdateError", "PackageError", "PlanError", "ClusterError", "UpdateFailedError"),
    *("UndoIncompleteError", "UpdateInProgressError", "UpdateInterruptedError", "LeaseLostError"),
    *("NextStep", "Revision", "__version__", "Strategy", "ScriptStep", "WorkloadKind"),
}


def test_these_names_are_public():
    assert set(container_update.__all__) == NAMES
    assert set(dir(container_update)) >= NAMES


def test_a_type_checker_sees_the_same_names():
    tree = ast.parse(Path(container_update.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and node.body[1:])
    imported = {
        (alias.asname or alias.name, f"{node.module}.{alias.name}")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == {
        (name, f"{value.__module__}.{value.__name__}")
        for name in NAMES - {"__version__"}
        for value in [getattr(container_update, name)]
    }


def test_the_version_is_that_of_the_distribution():
    assert container_update.__version__ == version("container-update")


def test_another_name_is_an_error():
    with pytest.raises(AttributeError, match="no attribute 'uptade'"):
        container_update.uptade  # noqa: B018


def test_the_commands_first_line_waits_for_no_other_module():
    """An interrupt before it ends in a traceback: it comes before typing and re are loaded."""
    root = Path(container_update.__file__).parents[1]
    program = (
        f"import sys; sys.path.append({str(root)!r}); "
        "import container_update.__main__; print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True
    )
    assert not {"typing", "re", "argparse"} & set(done.stdout.split())


def test_importing_it_loads_nothing_else():
    program = "import sys, container_update; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"kubernetes", "yaml", "urllib3", "oslo_config", "stevedore", "email"}
    assert [name for name in done.stdout.split() if name.startswith("container_update.")] == []


def test_the_version_is_shown_without_loading_a_command():
    program = """\
import sys
from container_update.cli.main import main
try:
    main(["--version"])
except SystemExit:
    print(*sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    shown, loaded = done.stdout.splitlines()
    assert shown == f"container-update {container_update.__version__}"
    ours = {name for name in loaded.split() if name.startswith("container_update.cli.commands.")}
    assert ours == {"container_update.cli.commands.completion"}
    assert "container_update.cli.terminal.output" not in loaded.split()


@pytest.mark.parametrize(
    "name", [*sorted(each for each in NAMES if each.startswith("plan_")), "status", "history"]
)
def test_what_plans_or_looks_takes_a_cluster_without_a_way_to_write(name: str) -> None:
    """That it calls nothing that writes, mypy proves."""
    parameters = inspect.signature(getattr(container_update, name)).parameters
    assert parameters["cluster"].annotation == "ReadOnlyCluster"


@pytest.mark.parametrize("name", sorted(NAMES - {"__version__"}))
def test_its_docstring_has_an_example_that_is_true(name: str) -> None:
    value = getattr(container_update, name)
    public = {each: getattr(container_update, each) for each in NAMES}
    finder = doctest.DocTestFinder(recurse=False)
    (found,) = finder.find(value, name, globs=public)
    assert found.examples, f"{name} has no example"
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(found)
    assert result.failed == 0


PACKAGE = Path(container_update.__file__).parent
FILES = [
    str(path.relative_to(PACKAGE.parent))
    for path in sorted(PACKAGE.rglob("*.py"))
    if ">>> " in path.read_text()
]


@pytest.mark.parametrize("file", FILES)
def test_the_examples_of_a_module_are_true(file: str) -> None:
    module = importlib.import_module(file.removesuffix(".py").replace("/", "."))
    public = {each: getattr(container_update, each) for each in NAMES}
    globs = {**public, **vars(module)}
    result = doctest.testmod(module, globs=globs, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0
