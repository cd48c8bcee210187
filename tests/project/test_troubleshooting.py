# SPDX-License-Identifier: Apache-2.0
"""``doc/source/troubleshooting.rst``: an entry for all that a user may see, under its own words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.test_next_steps import every_class

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "doc/source/troubleshooting.rst").read_text(encoding="utf-8")
TITLES = re.findall(r"^(.+)\n-{3,}$", PAGE, re.MULTILINE)
STATUS = re.compile(r"Exit status (\d+): ")
BY_NAME = {"Other statuses"}
"""Titles that are no sentence of the program."""


def public_classes() -> list[type[Exception]]:
    """The classes whose exit status is not that of the class above."""
    return [
        kind for kind in every_class() if "exit_status" in vars(kind) and kind.__name__[0] != "_"
    ]


def sentences() -> Iterator[str]:
    """All texts of the package; of an f-string the pieces between its values."""
    for path in sorted((ROOT / "container_update").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


@pytest.mark.parametrize("kind", public_classes(), ids=lambda kind: kind.__name__)
def test_every_error_class_has_an_entry_under_its_exit_status(kind):
    _, _, after = PAGE.partition(f"\nExit status {kind.exit_status}: ")
    entry = re.split(r"\n\S.*\n-{3,}\n", after.partition("\n---")[2])[0]
    assert f"``{kind.__name__}``" in entry


def test_every_exit_status_of_the_reference_has_an_entry():
    table = (ROOT / "doc/source/reference/exit-status.rst").read_text(encoding="utf-8")
    documented = set(re.findall(r"^(\d+) {2,}\S", table, re.MULTILINE)) - {"0"}
    assert "13" in documented
    assert {match[1] for title in TITLES if (match := STATUS.match(title))} == documented


def test_every_other_title_is_a_sentence_of_the_program():
    """So a search for what is on the terminal finds the entry, also after a message has changed."""
    said = "\0".join(sentences())
    titles = [title for title in TITLES if not STATUS.match(title) and title not in BY_NAME]
    assert len(titles) > 30
    pieces = {title: [piece.strip() for piece in title.split("...")] for title in titles}
    assert [t for t in titles if not all(piece in said for piece in pieces[t])] == []
