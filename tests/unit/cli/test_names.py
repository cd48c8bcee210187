# SPDX-License-Identifier: Apache-2.0
"""The names of the commands: grouped in the help, and those of the release before this one."""

from __future__ import annotations

import argparse
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from container_update.cli import main as command_line
from container_update.cli.arguments import option_arguments
from container_update.cli.main import root_parser

ROOT = Path(__file__).parents[3]
OLD_NAMES = {
    "change-vnfpkg a b": "change a b",
    "change-vnfpkg a b --stack vnf": "heat change a b --stack vnf",
    "status --stack=vnf": "heat status --stack=vnf",
    "rollback -n core --stack vnf": "heat rollback -n core --stack vnf",
    "show": "history --last",
    "show 14 -n core": "history --last 14 -n core",
    "diff": "history --last --diff",
    "watch -n core": "status --watch -n core",
    "demo": "try demo",
    "emulate --port 0": "try emulate --port 0",
    "samples rbac": "try samples rbac",
    "serve": "vnfm serve",
    "db upgrade": "vnfm db upgrade",
    "vim-config": "vnfm vim-config",
}


@pytest.mark.parametrize("old", OLD_NAMES)
def test_an_old_name_still_works_and_the_new_one_is_told(
    old: str, capsys: pytest.CaptureFixture[str]
) -> None:
    new = OLD_NAMES[old]
    assert command_line._with_present_name(old.split()) == new.split()
    told = capsys.readouterr().err
    assert f"'{old.split(maxsplit=1)[0]}' is called '" in told
    assert len(told.splitlines()) == 1


@pytest.mark.parametrize(
    "words", ["", "plan a b", "status", "heat status --stack vnf", "--version"]
)
def test_a_present_name_stays_as_it_is(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line._with_present_name(words.split()) == words.split()
    assert not capsys.readouterr().err


def test_an_old_name_does_what_the_new_one_does(capsys: pytest.CaptureFixture[str]) -> None:
    listed = []
    for words in (["samples"], ["try", "samples"]):
        out = io.StringIO()
        assert command_line.main(words, out) == 0
        listed.append(out.getvalue())
    assert listed[0] == listed[1]


def test_no_page_calls_a_command_by_a_former_name() -> None:
    former = "|".join(command_line._RENAMED.keys() - {"watch"})  # a right of Kubernetes too
    called = re.compile(rf"(?:``|container-update )({former})(?: [^`\n]+)?(?:``|$)", re.M)
    pages = (page for name in ("doc/source", "samples") for page in (ROOT / name).rglob("*.rst"))
    names = {str(page): called.findall(page.read_text("utf-8")) for page in pages}
    assert {page: used for page, used in names.items() if used} == {}


def helped(*words: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit):
        command_line.main(words)
    return capsys.readouterr().out


def test_the_help_lists_every_command_once_in_groups(capsys: pytest.CaptureFixture[str]) -> None:
    """And no name that is going to go."""
    text = helped("--help", capsys=capsys)
    titles = re.findall(r"^([a-z ]+):$", text, re.MULTILINE)
    assert titles[1:4] == ["every day", "when something is under way", "more"]
    root = command_line.root_parser()
    (commands,) = (a.choices for a in root._actions if a.dest == "==SUPPRESS==" and a.choices)
    assert sorted(re.findall(r"^  ([a-z]+) +[a-z]", text, re.MULTILINE)) == sorted(commands)


@pytest.mark.parametrize("module", command_line._MODULES)
def test_a_module_of_commands_adds_those_that_it_is_loaded_for(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    names = command_line._MODULES[module]
    for name in names:
        root = command_line.root_parser([name])
        (commands,) = (a.choices for a in root._actions if a.dest == "==SUPPRESS==" and a.choices)
        assert set(commands) == {*names, "completion"}


@pytest.mark.parametrize("command", ["apply", "change", "undo", "install", "resume"])
def test_what_carries_something_out_shows_its_settings_with_help_all_alone(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"--{name.replace('_', '-')}" for name in option_arguments.ALL]
    text = helped(command, "--help", capsys=capsys)
    assert [name for name in names if re.search(rf"^ +{name} ", text, re.M)] == []
    text = helped(command, "--help-all", capsys=capsys)
    assert [name for name in names if name not in text] == []


def parsers(command: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield the parser of a command, and of each below it."""
    yield command
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from parsers(below)


def test_the_help_of_every_command_fits_on_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = {each.prog: each.format_help().splitlines() for each in parsers(root_parser())}
    assert {"container-update", "container-update change", "container-update vnfm db"} < {*lines}
    assert {prog: len(text) for prog, text in lines.items() if len(text) > 40} == {}
    wide = {prog: [line for line in text if len(line) > 80] for prog, text in lines.items()}
    assert {prog: text for prog, text in wide.items() if text} == {}


@pytest.mark.parametrize("command", ["history", "status", "heat status"])
def test_what_only_reads_has_no_setting_of_a_restart(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = helped(*command.split(), "--help-all", capsys=capsys)
    assert "--retry-seconds" in text
    assert not re.search(r"--(timeout|grace-period|workers|drain-seconds|leave-on-signal)\b", text)


def test_a_change_of_a_stack_of_which_no_record_says_what_it_runs_from_needs_both_packages(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        command_line.main(["heat", "change", "new.zip", "--stack", "vnf"])
    assert "the following arguments are required: NEW" in capsys.readouterr().err
