# SPDX-License-Identifier: Apache-2.0
"""Find the package that has a coordination script: its own VNF's first, then the other one."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from container_update.engine.goals.change_request import ScriptName
from container_update.model.errors import PackageError
from container_update.package import csar


def package_with_script(
    script: ScriptName, which: str, packages: Mapping[str, csar.Csar]
) -> csar.Csar:
    """Return the package with a script and its class, the VNF's own first; refuse if none."""
    for package in sorted(packages.values(), key=lambda each: each is not packages.get(which)):
        if package.has(script.path):
            _check_class(script, package)
            return package
    sources = " or in ".join(package.source for package in packages.values())
    raise PackageError(
        f"{script.attribute or 'additionalParams'}: expected {script.path} in {sources}, found no "
        f"such file: put the script into the package of the {which} VNF, or correct the request"
    )


def _check_class(script: ScriptName, package: csar.Csar) -> None:
    """Refuse a script that does not define its class, before anything is done for it."""
    text = package.read(script.path)
    if script.class_name is None:
        return
    where = f"{script.path} in {package.source}"
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise PackageError(f"{where}: expected a Python file: {error}: correct it") from error
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    if not names & {script.class_name, "*"}:  # what * brings is known when the script runs
        classes = sorted(node.name for node in tree.body if isinstance(node, ast.ClassDef))
        raise PackageError(
            f"{where}: expected the class {script.class_name}, found {', '.join(classes) or 'none'}"
            ": correct the class in the request or the script"
        )
