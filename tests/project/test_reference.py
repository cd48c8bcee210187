# SPDX-License-Identifier: Apache-2.0
"""The reference is of this program: its commands, also as a man page, and its exit statuses."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

from container_update import ContainerUpdateError
from tests.internals.core import approval, errors, man, output, parser, root_parser
from tests.project.test_checks import ROOT

STATUSES = ROOT / "doc/source/reference/exit-status.rst"


@pytest.fixture(scope="module")
def man_page() -> str:
    """The man page's text, without what only troff needs."""
    return man.page().replace("\\&", "").replace("\\-", "-")


def sections(page: str) -> dict[str, str]:
    """Return the text below each heading of a man page."""
    return dict(re.findall(r'^\.S[HS] "?(.+?)"?\n(.*?)(?=^\.S[HS]|\Z)', page, re.M | re.S))


def test_the_man_page_has_every_command_with_each_of_its_arguments(man_page: str) -> None:
    text = sections(man_page)
    assert {"NAME", "SYNOPSIS", "SETTINGS", "EXIT STATUS"} <= text.keys()
    missing = []
    for command, _ in man.commands(root_parser()):
        section = text[command.prog] + text["SETTINGS"]
        for action in man.list_arguments(command):
            names = action.option_strings[-1:] or action.choices or [action.metavar]
            missing += [f"{command.prog}: {n}" for n in names if n not in section]
    assert missing == []


def test_the_man_page_is_one_to_groff_too() -> None:
    if which("groff") is None:
        pytest.skip("no groff: apt-get install groff-base")
    words = ["groff", "-man", "-Tutf8", "-ww"]
    done = subprocess.run(words, input=man.page(), capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "container-update plan v1.csar v2.csar -n core" in done.stdout.replace("\u2010", "-")


def test_the_man_page_has_each_help_and_default_in_words(man_page: str) -> None:
    assert "maximum time for one workload to restart (default: 10m)" in man_page
    assert "container-update plan v1.csar v2.csar -o markdown > change.md" in man_page
    assert not re.search(r"%\(|==SUPPRESS==|\bNone\b", man_page)


def error_classes() -> Iterator[type[ContainerUpdateError]]:
    """Yield those with an exit status of their own."""
    yield approval.NotApprovedError
    for value in vars(errors).values():
        is_error = isinstance(value, type) and issubclass(value, ContainerUpdateError)
        if is_error and "exit_status" in vars(value):
            yield value


def test_the_table_of_exit_statuses_has_each_class_of_error_and_nothing_else() -> None:
    rows = re.findall(r"^(\d+) +\S.*?(?:``(\w+Error)``)?$", STATUSES.read_text("utf-8"), re.M)
    found = {int(status): name for status, name in rows}
    expected = {error.exit_status: error.__name__ for error in error_classes()}
    own = (output.DONE, output.NOTHING_TO_DO, output.CHANGES_PENDING, parser.USAGE)
    assert found == {**expected, **dict.fromkeys(own, "")}


def test_every_next_step_is_listed() -> None:
    listed = (
        (ROOT / "doc/source/reference/json.rst").read_text("utf-8").partition("``nextStep`` is")
    )
    assert set(re.findall(r"``(.+?)``", listed[2])) == {step.value for step in errors.NextStep}


def test_there_is_one_table_of_exit_statuses() -> None:
    pages = [ROOT / "README.rst", *Path(ROOT, "doc/source").rglob("*.rst")]
    tables = [page for page in pages if re.search(r"^64 +[Ww]rong", page.read_text("utf-8"), re.M)]
    assert tables == [STATUSES]
