# SPDX-License-Identifier: Apache-2.0
"""The completion of commands and options in a shell, and the plugin of kubectl."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from container_update.cli import main as command_line

PROGRAM = "import sys; sys.argv[0] = {!r}; from container_update.cli.main import main; main()"


def completions(line: str, folder: Path) -> list[str]:
    """Return what a shell offers at the end of a line."""
    answer = folder / "answer"
    asked = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    command = [sys.executable, "-c", PROGRAM.format("container-update")]
    subprocess.run(command, env={**os.environ, **asked}, check=True, timeout=120)
    return [word.strip() for word in answer.read_text().split("\n")]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("container-update ap", ["apply"]),
        ("container-update apply --undo-t", ["--undo-timeout"]),
        ("container-update plan a b -o j", ["json"]),
        ("container-update csar b", ["build", "bundle"]),
    ],
)
def test_a_shell_is_told_what_can_follow(tmp_path: Path, line: str, words: list[str]) -> None:
    assert sorted(completions(line, tmp_path)) == words


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(shell: str) -> None:
    out = io.StringIO()
    assert command_line.main(["completion", shell], out) == 0
    assert "container-update" in out.getvalue()


def test_without_the_extra_it_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "argcomplete.shell_integration", None)
    assert command_line.main(["completion", "bash"], io.StringIO()) == 1
    assert "[completion]" in capsys.readouterr().err


def test_as_a_plugin_it_is_called_as_the_user_calls_it(tmp_path: Path) -> None:
    config = tmp_path / "nothing"
    arguments = ["status", "--kubeconfig", str(config)]
    command = [sys.executable, "-c", PROGRAM.format("/bin/kubectl-cnf"), *arguments, "--kubeconf"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert "kubectl cnf status: there is no option --kubeconf" in done.stderr
    assert "did you mean --kubeconfig" in done.stderr
