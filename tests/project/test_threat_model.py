# SPDX-License-Identifier: Apache-2.0
"""The threat model in ``doc/source/security.rst``: every row names tests, all of which exist."""

from __future__ import annotations

import re

from tests.project.test_conformance import functions, named_tests
from tests.project.test_repository import ROOT

PAGE = (ROOT / "doc/source/security.rst").read_text(encoding="utf-8")
TABLE = re.split(r"\n(?=\S.*\n===)", PAGE.partition(".. list-table::")[2])[0]
ROWS = re.split(r"^   \* - ", TABLE, flags=re.MULTILINE)[2:]


def test_every_row_names_tests_that_exist() -> None:
    assert ROWS
    for row in ROWS:
        named = named_tests(row)
        assert named, row
        assert len(named) == row.count("::"), row
        missing = [f"{file}::{name}" for file, name in named if name not in functions(file)]
        assert not missing, "\n".join(missing)
