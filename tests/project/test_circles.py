# SPDX-License-Identifier: Apache-2.0
"""The circles of tests: no point is in none, and a run says what it left out."""

from __future__ import annotations

import itertools
from pathlib import Path

from tests import circles

ROOT = Path(__file__).parents[2]
MATRIX = [frozenset(point) for point in itertools.product("abc", "12345")]


def test_a_sample_has_each_value_once_and_is_always_the_same() -> None:
    chosen = circles.sample(MATRIX, 7)
    assert frozenset[str]().union(*(MATRIX[number] for number in chosen)) == set("abc12345")
    assert len(chosen) == 5
    assert chosen == circles.sample(MATRIX, 7)


def test_of_fixtures_alone_another_one_is_chosen_for_each_test() -> None:
    points = [frozenset[str]()] * 4
    assert [circles.sample(points, start) for start in range(4)] == [{0}, {1}, {2}, {3}]


def test_every_file_of_the_second_circle_exists() -> None:
    listed = [*circles.THOROUGH, *circles.ON_THE_LAB]
    assert [path for path in listed if not (ROOT / path).exists()] == []


def test_a_run_says_what_it_left_out_and_what_was_skipped_and_why() -> None:
    left_out = {"pytest -m thorough": 2, "pytest -m complete": 1}
    assert circles.what_was_not_run(left_out) == (
        "Not run: 1 tests of 'pytest -m complete', 2 tests of 'pytest -m thorough'."
    )
    assert circles.what_was_not_run({}) == ""
    assert circles.skipped(["no openssl", "no lab", "no lab"]) == [
        "Skipped: 2 tests: no lab",
        "Skipped: 1 test: no openssl",
    ]
