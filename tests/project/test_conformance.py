# SPDX-License-Identifier: Apache-2.0
"""``doc/source/developers/conformance.rst``: every statement has a row with tests that exist."""

from __future__ import annotations

import ast
import re

from tests.project.test_repository import ROOT

STATEMENTS = {"de": 10, "v1": 39, "v2": 12, "cu": 37, "cp": 58}
"""How many each document has: the design, the two user guides, container update, change of the
package."""

PAGE = (ROOT / "doc/source/developers/conformance.rst").read_text(encoding="utf-8")
ROW = re.compile(r"^   \* - (\w+-\d+)\n     - (.+(?:\n+       .+)*)", re.MULTILINE)
REFERENCE = re.compile(r"``(tests/[\w/]+\.py)``|``::(test_\w+)``")
SHOWN = re.compile(r"^ +\| (?:(\w+): )?``(tests/[\w/]+\.py)``", re.MULTILINE)
DIFFERENCE = re.compile(r"\bD\d+\b")
IMPORTS_MAIN = re.compile(r"^from tests\.internals\.core import \(?[^)=]*?\bmain\b", re.MULTILINE)

ROWS: list[tuple[str, str]] = ROW.findall(PAGE)
"""Each row's id, and its requirement with the tests."""


def named_tests(text: str) -> list[tuple[str, str]]:
    """Return file and function of each test that a row names."""
    tests, file = [], ""
    for new_file, function in REFERENCE.findall(text):
        file = new_file or file
        if function:
            tests.append((file, function))
    return tests


def functions(file: str) -> set[str]:
    """Return the functions of a file; none if there is no such file."""
    path = ROOT / file
    body = ast.parse(path.read_text(encoding="utf-8")).body if path.is_file() else []
    return {node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_statement_has_one_row_in_the_order_of_its_document() -> None:
    expected = [f"{name}-{n + 1}" for name, count in STATEMENTS.items() for n in range(count)]
    assert [row for row, _ in ROWS] == expected


def test_every_row_names_a_test_or_says_why_there_is_none() -> None:
    reasons = re.compile(rf"{DIFFERENCE.pattern}|No test|Nothing to test")
    assert [row for row, text in ROWS if not named_tests(text) and not reasons.search(text)] == []


def test_every_name_is_written_so_that_it_is_found() -> None:
    assert [row for row, text in ROWS if len(named_tests(text)) != text.count("::")] == []


def test_every_test_that_is_named_exists() -> None:
    named = {test for _, text in ROWS for test in named_tests(text)}
    existing = {file: functions(file) for file, _ in named}
    missing = [f"{file}::{name}" for file, name in sorted(named) if name not in existing[file]]
    assert not missing, "\n".join(missing)


def test_every_row_says_how_it_is_shown() -> None:
    shown = {pair for _, text in ROWS for pair in SHOWN.findall(text)}
    assert {(word, file) for word, file in shown if word != how(file)} == set()


def how(file: str) -> str:
    """Return the word of the page for the way that the tests of a file take."""
    text = (ROOT / file).read_text(encoding="utf-8")
    if file.startswith("tests/tacker/"):
        return "conductor" if "tacker: Tacker" in text else "Tacker"
    if file.startswith("tests/functional/"):
        return "command" if IMPORTS_MAIN.search(text) else "cluster"
    return "service" if file.startswith("tests/vnfm/") else "unit"


def test_every_difference_is_described_and_referred_to() -> None:
    described = re.findall(r"^(D\d+): ", PAGE, re.MULTILINE)
    referred_to = {name for _, text in ROWS for name in DIFFERENCE.findall(text)}
    assert described == [f"D{n + 1}" for n in range(len(described))]
    assert referred_to == set(described)
