# SPDX-License-Identifier: Apache-2.0
"""The names of the commands, and the help that lists them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from container_update.cli import main as command_line
from container_update.cli.arguments import option_arguments

ROOT = Path(__file__).parents[3]


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
def test_what_carries_something_out_shows_six_settings_and_with_help_all_every_one(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"--{name.replace('_', '-')}" for name in option_arguments.ALL]
    text = helped(command, "--help", capsys=capsys)
    assert sum(bool(re.search(rf"{name} ", text)) for name in names) == 6
    text = helped(command, "--help-all", capsys=capsys)
    assert [name for name in names if name not in text] == []


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
