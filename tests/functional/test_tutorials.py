# SPDX-License-Identifier: Apache-2.0
"""The pages for a beginning: what they let the reader type is typed, and prints what they show.

A ``code-block`` with a ``:caption:`` is a file, one of the language ``console`` is typed; with the
class ``another-terminal`` its command runs until the end of the page, with the class ``by-hand`` it
is not typed. What is shown is looked for in the output: ``...`` stands for anything, and names and
times that differ from run to run do not count.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import needs

ROOT = Path(__file__).parents[2]
PAGES = ("start", "tutorials/your-own-manifests", "tutorials/two-folders")
BLOCK = re.compile(
    r"^\.\. code-block:: (\w+)\n((?:   :\w+: .*\n)*)\n((?:   .*\n|\n)+)", re.MULTILINE
)
VOLATILE = re.compile(
    r"(?<=-)[0-9a-f]{7,10}(-[b-z2-9]{5})?\b|(?<=-)[b-z2-9]{5}\b|127\.0\.0\.1:\d+"
    r"|\b\d+\.\d s\b|\b\d+s\b|(?<=sha256 )\w+"
)
SHELL = "exec 2>&1\nmark() { local status=$?; printf '\\036'; return $status; }\n"


def blocks(page: str) -> Iterator[tuple[str, str, str]]:
    """Yield language, options and text of each block of a page."""
    text = (ROOT / "doc/source" / f"{page}.rst").read_text(encoding="utf-8") + "\n"
    for language, options, content in BLOCK.findall(text):
        yield language, options, textwrap.dedent(content).strip("\n") + "\n"


def commands(text: str) -> list[tuple[str, list[str]]]:
    """Return each command of a console block with the lines that it is to print."""
    parts = re.split(r"^\$ ((?:.*\\\n)*.*)\n", text, flags=re.MULTILINE)
    return list(zip(parts[1::2], map(str.splitlines, parts[2::2]), strict=True))


def pattern(line: str) -> re.Pattern[str]:
    escaped = re.escape(plain(line)).replace(r"\.\.\.", ".*")
    return re.compile(escaped)


def plain(line: str) -> str:
    return " ".join(VOLATILE.sub("VOLATILE", line).split())


@needs.KUBECTL
@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_lets_you_type_prints_what_it_shows(page: str, tmp_path: Path) -> None:
    program = tmp_path / "bin/container-update"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m container_update "$@"\n')
    program.chmod(0o755)
    ours = re.compile("(CONTAINER_UPDATE_.*|KUBECONFIG)")
    environment = {name: text for name, text in os.environ.items() if not ours.fullmatch(name)} | {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYTHONUTF8": "1",
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    typed: list[tuple[str, list[str]]] = []
    with contextlib.ExitStack() as terminals:
        for language, options, text in blocks(page):
            if caption := re.search(r":caption: (\S+)", options):
                typed.append((f"cat > {caption[1]} <<'END'\n{text}END", []))
            elif "another-terminal" in options:
                (command,) = re.findall(r"^\$ (.*)", text)
                shell = subprocess.Popen(
                    shlex.split(command), cwd=tmp_path, env=environment, stdout=subprocess.PIPE
                )
                terminals.callback(shell.communicate)
                terminals.callback(shell.terminate)
                assert shell.stdout is not None
                assert shell.stdout.readline().startswith(b"Kubernetes API on")
            elif language == "console" and "by-hand" not in options:
                typed.extend(commands(text))
        script = SHELL + "".join(f"mark\n{command}\n" for command, _ in typed)
        completed = subprocess.run(
            ["bash"],
            input=script,
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
    outputs = completed.stdout.split("\x1e")[1:]
    for (command, shown), output in zip(typed, outputs, strict=True):
        lines = [plain(line) for line in output.splitlines()]
        missing = [line for line in shown if not any(map(pattern(line).fullmatch, lines or [""]))]
        assert not missing, f"$ {command}\n{output}"
        assert shown or not lines, f"the page shows no output of: {command}\n{output}"
