# SPDX-License-Identifier: Apache-2.0
"""Hostile packages: each is refused in bounds with an error of ours, and nothing is written."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from container_update.model import errors
from container_update.model.options import Options
from container_update.package.tosca.process import ReaderEndedError
from tests import hostile

ROOT = Path(__file__).parents[3]
SEED = 20_240_607
PROCESSES = 2
"""How many try packages, at the same time."""
OURS = {
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.ContainerUpdateError)
} | {ReaderEndedError.__name__}

Tries = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> list[hostile.Hostile]:
    return hostile.packages(tmp_path_factory.mktemp("hostile"), SEED)


@pytest.fixture(scope="module")
def tries(packages: list[hostile.Hostile], tmp_path_factory: pytest.TempPathFactory) -> Tries:
    """What became of each package, read and updated to; by its path."""
    old = hostile.good_package(tmp_path_factory.mktemp("good") / "package")
    sources = [package.source for package in packages]
    shares = [sources[start::PROCESSES] for start in range(PROCESSES)]
    found: Tries = {}
    with ThreadPoolExecutor(PROCESSES) as pool:
        for lines in pool.map(functools.partial(outcomes, old), shares):
            for line in lines:
                answer = json.loads(line)
                found.setdefault(answer["source"], []).append(answer)
    return found


def outcomes(old: str, sources: list[str]) -> list[str]:
    """Try packages in a process and return its lines."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile", old],
        input="\n".join(sources),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, f"over a bound, or dead: {done.stderr[-4000:]}"
    return done.stdout.splitlines()


def test_each_is_tried_in_each_way(packages, tries):
    ways = [[answer["way"] for answer in tries[package.source]] for package in packages]
    assert ways == [["read", "update"]] * len(packages)


def test_there_are_hundreds_and_each_is_another(packages):
    assert len({package.what for package in packages}) == len(packages) > 400


def wrong(packages, tries, is_wrong) -> list[str]:
    return [
        f"{package.what}: {answer['way']}: {answer['error']}: {answer['message'][:300]}"
        f" ({answer['seconds']:.2f} s, {answer['memory'] // 1_000_000} MB)"
        for package in packages
        for answer in tries[package.source]
        if is_wrong(answer)
    ]


def test_each_is_read_in_little_time_and_memory(packages, tries):
    def is_wrong(answer: dict[str, Any]) -> bool:
        over = answer["seconds"] > hostile.READ_SECONDS or answer["memory"] > hostile.READ_MEMORY
        return answer["way"] == "read" and over

    assert wrong(packages, tries, is_wrong) == []


def test_none_is_updated_to(packages, tries):
    found = wrong(packages, tries, lambda a: a["way"] != "read" and not a["error"])
    assert not found, "\n".join(found)


def test_none_gives_another_error_than_ours(packages, tries):
    found = wrong(packages, tries, lambda a: a["error"] and a["error"] not in OURS)
    assert not found, "\n".join(found)


def test_messages_fit_a_screen_and_hold_nothing_that_moves_the_cursor(packages, tries):
    def is_wrong(answer: dict[str, Any]) -> bool:
        message = answer["message"]
        return len(message) > 2_000 or any(ord(sign) < 32 or ord(sign) == 127 for sign in message)

    assert wrong(packages, tries, is_wrong) == []


def test_the_good_package_is_good(tmp_path):
    old = hostile.good_package(tmp_path / "package")
    for use in (hostile._read, hostile._update):
        use(old, old, Options())
