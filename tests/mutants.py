# SPDX-License-Identifier: Apache-2.0
"""Random small changes of the rules: the tests of the first circle have to find them.

::

    tox -e mutants -- --number 200 --seed 1

Each mutant is one change in one module, in a copy of the checkout. The tests run until one fails:
the unit tests of the module's folder, all unit tests, the functional ones. A mutant that survives
is printed: it is equivalent, or a test is missing.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("planning", "workloads", "cluster")
SECONDS = 1_800
"""After which a stage that has not ended has found the mutant: it never ends."""
COMPARISONS = {
    ast.Eq: "!=", ast.NotEq: "==", ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A piece of a module, and what is in its place."""

    module: Path
    """Below the checkout."""
    source: bytes = field(repr=False)
    line: int
    start: int
    """In bytes from the beginning of the file."""
    end: int
    new: str

    def __str__(self) -> str:
        old = self.source[self.start : self.end].decode()
        return f"{self.module}:{self.line}: {old!r} -> {self.new!r}"

    @property
    def text(self) -> bytes:
        """The module with the change."""
        return self.source[: self.start] + self.new.encode() + self.source[self.end :]

    @property
    def folder(self) -> str:
        """The folder with the unit tests of the module."""
        folder = Path("tests/unit", *self.module.parent.parts[1:])
        return str(next(path for path in (folder, *folder.parents) if (ROOT / path).exists()))


class Candidates(ast.NodeVisitor):
    """Collects the mutants of a module."""

    def __init__(self, module: Path) -> None:
        self.module, self.found = module, list[Mutant]()
        source = (ROOT / module).read_bytes()
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._source = source
        self.visit(ast.parse(source))

    def _place(self, line: int | None, column: int | None) -> int:
        assert line is not None
        assert column is not None
        return self._lines[line - 1] + column

    def _replace(self, node: ast.expr | ast.stmt, new: str) -> None:
        start = self._place(node.lineno, node.col_offset)
        end = self._place(node.end_lineno, node.end_col_offset)
        self.found.append(Mutant(self.module, self._source, node.lineno, start, end, new))

    def _text(self, node: ast.expr) -> str:
        start = self._place(node.lineno, node.col_offset)
        return self._source[start : self._place(node.end_lineno, node.end_col_offset)].decode()

    def visit_Compare(self, node: ast.Compare) -> None:
        """Compare otherwise."""
        if len(node.ops) == 1:
            left, right = self._text(node.left), self._text(node.comparators[0])
            self._replace(node, f"{left} {COMPARISONS[type(node.ops[0])]} {right}")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Take 'or' for 'and', and 'and' for 'or'."""
        other = " or " if isinstance(node.op, ast.And) else " and "
        self._replace(node, f"({other.join(f'({self._text(value)})' for value in node.values)})")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Leave a 'not' out."""
        if isinstance(node.op, ast.Not):
            self._replace(node, f"bool({self._text(node.operand)})")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        """Do always what is done sometimes."""
        self._replace(node.test, "True")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        """Return nothing."""
        if node.value and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self._replace(node.value, "None")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Take another number, or the other truth."""
        if isinstance(node.value, bool):
            self._replace(node, str(not node.value))
        elif isinstance(node.value, int):
            self._replace(node, str(node.value + 1))

    def visit_Expr(self, node: ast.Expr) -> None:
        """Leave a call out, but for a line in a log."""
        if isinstance(node.value, ast.Call) and not self._text(node.value).startswith("LOG."):
            self._replace(node, "pass")
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Visit the value only: nothing reads a local annotation."""
        if node.value:
            self.visit(node.value)

    def visit_arguments(self, node: ast.arguments) -> None:
        """Visit the default values only."""
        for value in (*node.defaults, *filter(None, node.kw_defaults)):
            self.visit(value)


def candidates() -> list[Mutant]:
    """Return all mutants, in a fixed order."""
    folders = (ROOT / "container_update" / folder for folder in FOLDERS)
    modules = sorted(path.relative_to(ROOT) for folder in folders for path in folder.rglob("*.py"))
    return [mutant for module in modules for mutant in Candidates(module).found]


@dataclass
class Checkout:
    """A copy of the checkout."""

    folder: Path
    failing: list[str] = field(default_factory=list)
    """Tests that fail without a mutant: they say nothing."""

    def kills(self, mutant: Mutant, stages: list[list[str]]) -> bool:
        """Return whether a test fails with the mutant."""
        module = self.folder / mutant.module
        module.write_bytes(mutant.text)
        try:
            return any(self.run("-x", *stage).returncode for stage in stages)
        except subprocess.TimeoutExpired:
            return True
        finally:
            module.write_bytes(mutant.source)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run tests."""
        known = [word for test in self.failing for word in ("--deselect", test)]
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *known, *words],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder)},  # before what is installed
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )


def main() -> None:
    """Make mutants, try them, and print the share that was killed and those that were not."""
    parser = argparse.ArgumentParser(description="Make random mutants and try them.")
    parser.add_argument("--number", type=int, default=200, help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (default: %(default)s)")
    parser.add_argument("--unit", action="store_true", help="try them with the unit tests only")
    arguments = parser.parse_args()
    chosen = random.Random(arguments.seed).sample(candidates(), arguments.number)
    last = [["tests/unit"]] if arguments.unit else [["tests/unit"], ["tests/functional"]]
    survivors = []
    with tempfile.TemporaryDirectory(prefix="container-update-mutants-") as folder:
        checkout = Checkout(Path(folder, "checkout"))
        left_out = shutil.ignore_patterns(".*", "*.egg-info", "__pycache__")
        shutil.copytree(ROOT, checkout.folder, ignore=left_out)
        for stage in last:
            told = checkout.run(*stage).stdout
            checkout.failing += re.findall(r"^FAILED (\S+)", told, re.MULTILINE)
        for test in checkout.failing:
            print(f"fails without a mutant: {test}", flush=True)
        for number, mutant in enumerate(chosen, 1):
            killed = checkout.kills(mutant, [["-n", "0", mutant.folder], *last])
            print(f"{number}: {'killed' if killed else 'SURVIVED'}: {mutant}", flush=True)
            survivors += [] if killed else [mutant]
    share = 1 - len(survivors) / len(chosen)
    print(f"{len(chosen)} mutants, seed {arguments.seed}: {share:.0%} killed")
    print(*survivors, sep="\n")


if __name__ == "__main__":
    main()
