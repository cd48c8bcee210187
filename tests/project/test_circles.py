# SPDX-License-Identifier: Apache-2.0
"""The circles of tests: no point is in none, and a run says what it left out."""

from __future__ import annotations

import itertools
import subprocess
import sys
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
    assert [path for path in circles.THOROUGH if not (ROOT / path).exists()] == []


def test_a_run_says_what_it_left_out_and_what_was_skipped_and_why() -> None:
    words = ["-n", "1", "tests/functional/test_two_clocks.py", "tests/vnfm/test_openstack_lab.py"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    left_out = "Not run: 2 tests of 'pytest -m complete', 2 tests of 'pytest -m thorough'."
    assert done.stdout.splitlines()[-2] == left_out
    assert "Skipped: 2 tests: " in done.stdout
