# SPDX-License-Identifier: Apache-2.0
"""The reference is of this program: its commands, also as a man page, and its exit statuses."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import container_update.model.errors
from container_update.cli import main
from container_update.cli.arguments import parser
from container_update.cli.terminal import approval, output
from container_update.model.errors import ContainerUpdateError
from tests.project.test_checks import ROOT, run

STATUSES = ROOT / "doc/source/reference/exit-status.rst"


@pytest.fixture(scope="module")
def man_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The man page's text, without what only troff needs."""
    folder = tmp_path_factory.mktemp("man")
    run("sphinx-build", "-q", "-W", "--keep-going", "-b", "man", "doc/source", str(folder))
    text = (folder / "container-update.1").read_text(encoding="utf-8")
    return re.sub(r"\\f[BIPR]", "", text).replace("\\-", "-").replace("\\(aq", "'")


def commands(root: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    for action in root._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                if command.get_default("run"):
                    yield command
                yield from commands(command)


def sections(page: str) -> dict[str, str]:
    """Return the text below each heading of a man page."""
    return dict(re.findall(r'^\.S[HS] "?(.+?)"?\n(.*?)(?=^\.S[HS]|\Z)', page, re.M | re.S))


def test_the_man_page_has_every_command_with_each_of_its_arguments(man_page: str) -> None:
    text = sections(man_page)
    names_of_sections = {"SYNOPSIS", "OVERVIEW", "COMMON OPTIONS", "SETTINGS", "EXIT STATUS"}
    assert names_of_sections <= text.keys()
    missing = []
    for command in commands(main.root_parser()):
        section = text[command.prog]
        if "all settings" in section:
            section += text["SETTINGS"]
        for action in command._actions:
            names = action.option_strings[-1:] or action.choices or [action.metavar]
            if action.dest not in {"help", "help_all", "verbose"}:
                missing += [f"{command.prog}: {n}" for n in names if n not in section]
    assert missing == []


def test_the_man_page_has_each_help_and_default_in_words(man_page: str) -> None:
    assert "Maximum time for one workload to restart. Default: 10m." in man_page
    assert "container-update plan v1.csar v2.csar -o markdown > change.md" in man_page
    assert not re.search(r"%\(|\(default|==SUPPRESS==|\bNone\b", man_page)


def errors() -> Iterator[type[ContainerUpdateError]]:
    """Yield those with an exit status of their own."""
    yield approval.NotApprovedError
    for value in vars(container_update.model.errors).values():
        is_error = isinstance(value, type) and issubclass(value, ContainerUpdateError)
        if is_error and "exit_status" in vars(value):
            yield value


def test_the_table_of_exit_statuses_has_each_class_of_error_and_nothing_else() -> None:
    rows = re.findall(r"^(\d+) +\S.*?(?:``(\w+Error)``)?$", STATUSES.read_text("utf-8"), re.M)
    found = {int(status): name for status, name in rows}
    expected = {error.exit_status: error.__name__ for error in errors()}
    own = (output.DONE, output.NOTHING_TO_DO, output.CHANGES_PENDING, parser.USAGE)
    assert found == {**expected, **dict.fromkeys(own, "")}


def test_there_is_one_table_of_exit_statuses() -> None:
    pages = [ROOT / "README.rst", *Path(ROOT, "doc/source").rglob("*.rst")]
    tables = [page for page in pages if re.search(r"^64 +[Ww]rong", page.read_text("utf-8"), re.M)]
    assert tables == [STATUSES]
