# SPDX-License-Identifier: Apache-2.0
"""The threat model, on two pages: every row of their tables names tests, all of which exist."""

from __future__ import annotations

import re

import pytest

from tests.project.test_conformance import functions, named_tests
from tests.project.test_repository import ROOT

PAGES = ("doc/source/security.rst", "doc/source/developers/threat-model.rst")


def rows(page: str) -> list[str]:
    """Return the rows of all its tables but their heads."""
    tables = (ROOT / page).read_text(encoding="utf-8").split(".. list-table::")[1:]
    bodies = (re.split(r"\n(?=\S)", table)[0] for table in tables)
    return [row for body in bodies for row in re.split(r"^   \* - ", body, flags=re.MULTILINE)[2:]]


@pytest.mark.parametrize("page", PAGES)
def test_every_row_names_tests_that_exist(page: str) -> None:
    assert rows(page)
    for row in rows(page):
        named = named_tests(row)
        assert named, row
        assert len(named) == row.count("::"), row
        missing = [f"{file}::{name}" for file, name in named if name not in functions(file)]
        assert not missing, "\n".join(missing)
