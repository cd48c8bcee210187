# SPDX-License-Identifier: Apache-2.0
"""Random small changes of the rules: the tests of the first two circles have to find them.

::

    tox -e mutants -- --number 200 --seed 1

Each mutant is one change in one module, in a copy of the checkout. The unit and functional tests of
the first two circles run once, to learn which of them execute which line. Of these the ones run
that execute the change, the nearest and fastest first, until one fails. A mutant that survives is
printed: it is equivalent, or a test is missing.

Two things make the share too small rather than too large: what processes execute that tests start
is not seen, and tried with the unit tests of its folder; what many tests execute is tried with as
many as BUDGET allows.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from coverage import CoverageData

ROOT = Path(__file__).parents[1]
FOLDERS = ("planning", "workloads", "engine", "cluster")
AT_ONCE = 2
"""How many mutants are tried at the same time."""
BUDGET = 90.0
"""How many seconds the tests of a mutant may take in all."""
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
    lines: range | None
    """Where it is executed; None: when the module is imported."""
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


class Candidates(ast.NodeVisitor):
    """Collects the mutants of a module."""

    def __init__(self, module: Path) -> None:
        self.module, self.found = module, list[Mutant]()
        self._is_in_function = False
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
        lines = range(node.lineno, (node.end_lineno or 0) + 1) if self._is_in_function else None
        self.found.append(Mutant(self.module, self._source, lines, node.lineno, start, end, new))

    def _text(self, node: ast.expr) -> str:
        start = self._place(node.lineno, node.col_offset)
        return self._source[start : self._place(node.end_lineno, node.end_col_offset)].decode()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Tell what is executed by a call from what is executed once."""
        outer = self._is_in_function
        self._is_in_function = True
        for statement in node.body:
            self.visit(statement)
        self._is_in_function = outer
        self.visit(node.args)
        for decorator in node.decorator_list:
            self.visit(decorator)

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


@dataclass(frozen=True)
class Measured:
    """What the tests execute, and how long they take."""

    tests: Mapping[Path, Mapping[int, Set[str]]]
    """By module and line; '' where an import executes it."""
    seconds: Mapping[str, float]

    @classmethod
    def read(cls, checkout: Path) -> Measured:
        """Read what a run with coverage has left."""
        told = Path(checkout, "told").read_text()
        failing = set(re.findall(r"^FAILED (.+?)(?: - .*)?$", told, re.MULTILINE))
        for test in sorted(failing):  # it says nothing about a mutant
            print(f"fails without a mutant: {test}", flush=True)
        data = CoverageData(str(checkout / ".coverage"))
        data.read()
        tests = {
            Path(path).relative_to(checkout): {
                line: {name.rpartition("|")[0] for name in names} - failing
                for line, names in data.contexts_by_lineno(path).items()
            }
            for path in data.measured_files()
        }
        seconds = dict[str, float]()
        for number, test in re.findall(r"^([\d.]+)s \w+ +(.+)$", told, re.MULTILINE):
            seconds[test] = seconds.get(test, 0.0) + float(number)
        return cls(tests, {test: seconds[test] for test in seconds.keys() - failing})

    def tests_of(self, mutant: Mutant) -> dict[str, float]:
        """Return the tests that execute a mutant, the nearest first; the fastest of BUDGET."""
        lines = self.tests.get(mutant.module, {})
        executed = [lines.get(line, set()) for line in mutant.lines or ()]
        if mutant.lines is None or any("" in tests for tests in executed):
            executed = list(lines.values())  # what comes of an import concerns the whole module
        folder = f"tests/unit/{mutant.module.parts[1]}/"
        tests = set[str]().union(*executed) - {""}
        if not tests:  # a process that a test starts may execute it
            tests = {test for test in self.seconds if test.startswith(folder)}

        def order(test: str) -> tuple[int, float, str]:
            distance = 2 - test.startswith("tests/unit/") - test.startswith(folder)
            return distance, self.seconds.get(test, 0), test

        chosen, left = dict[str, float](), BUDGET
        for test in sorted(tests, key=order):
            chosen[test] = self.seconds.get(test, 0)
            left -= chosen[test]
            if left < 0:
                break
        # the tests of a file share what takes long to start
        by_file = sorted(chosen, key=lambda test: (order(test)[0], test.partition("::")[0]))
        return {test: chosen[test] for test in by_file}


def run_tests(checkout: Path, *words: str, limit: float | None = None) -> int:
    """Run tests of a copy of the checkout, which write into its file 'told'; return the status."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}  # before what is installed
    with (
        Path(checkout, "told").open("w") as told,
        subprocess.Popen(
            command, cwd=checkout, env=environment, stdout=told, stderr=told, start_new_session=True
        ) as process,
    ):
        try:
            return process.wait(limit)
        finally:
            with contextlib.suppress(ProcessLookupError):  # it left none behind
                os.killpg(process.pid, signal.SIGKILL)


def measure(checkout: Path) -> Measured:
    """Run the unit and functional tests once."""
    covered = [f"--cov=container_update/{folder}" for folder in FOLDERS]
    options = ["--cov-context=test", "--cov-report=", "--durations=0"]
    circles = ["-m", "not complete"]  # a real cluster has some of the second one in its first
    run_tests(checkout, *covered, *options, *circles, "tests/unit", "tests/functional")
    return Measured.read(checkout)


def is_killed(mutant: Mutant, tests: Mapping[str, float], checkout: Path) -> bool:
    """Return whether one of these tests fails with the mutant."""
    if not tests:
        return False
    module = checkout / mutant.module
    module.write_bytes(mutant.text)
    try:
        limit = 60 + 4 * sum(tests.values())
        # without -m the sample of a matrix would be made of these points only
        return run_tests(checkout, "-x", "-n", "0", "-m", "", *tests, limit=limit) != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        module.write_bytes(mutant.source)


def main() -> None:
    """Make mutants, try them, and print the share that was killed and those that were not."""
    parser = argparse.ArgumentParser(description="Make random mutants and try them.")
    parser.add_argument("--number", type=int, default=200, help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (default: %(default)s)")
    arguments = parser.parse_args()
    chosen = random.Random(arguments.seed).sample(candidates(), arguments.number)
    free, survivors = queue.SimpleQueue[Path](), []
    with tempfile.TemporaryDirectory(prefix="container-update-mutants-") as folder:
        left_out = shutil.ignore_patterns(".*", "*.egg-info", "__pycache__")
        for number in range(AT_ONCE):
            free.put(shutil.copytree(ROOT, Path(folder, str(number)), ignore=left_out))
        measured = measure(Path(folder, "0"))

        def try_one(mutant: Mutant) -> bool:
            checkout = free.get()
            try:
                return is_killed(mutant, measured.tests_of(mutant), checkout)
            finally:
                free.put(checkout)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            results = zip(chosen, pool.map(try_one, chosen), strict=True)
            for number, (mutant, killed) in enumerate(results, 1):
                print(f"{number}: {'killed' if killed else 'SURVIVED'}: {mutant}", flush=True)
                survivors += [] if killed else [mutant]
    share = 1 - len(survivors) / len(chosen)
    print(f"{len(chosen)} mutants, seed {arguments.seed}: {share:.0%} killed")
    print(*survivors, sep="\n")


if __name__ == "__main__":
    main()
