# SPDX-License-Identifier: Apache-2.0
"""Runs a command on a pseudo-terminal and returns what a person then sees."""

from __future__ import annotations

import fcntl
import functools
import os
import pty
import re
import struct
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyte

from tests.forks import Forks

_ROWS = 40
_VARYING = {
    r"\b\d+\.\d s\b": "N.N s",
    r"\b\d+ requests\b": "N requests",
    # the end of a pod's name; API reference, ObjectMeta.generateName
    r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b": "-XXXXX",
    r"(sha256\s+)[0-9a-f]{12}": r"\1HASH",
    r"127\.0\.0\.1:\d+": "127.0.0.1:PORT",
}


@dataclass(frozen=True)
class Recording:
    """What a command wrote to its terminal."""

    status: int
    raw: str
    columns: int

    @property
    def text(self) -> str:
        """What the terminal shows at the end, with all that has left it at the top; what differs
        from run to run is replaced."""
        screen = pyte.HistoryScreen(self.columns, _ROWS, history=10_000)
        pyte.Stream(screen).feed(self.raw)
        above = ["".join(line[i].data for i in range(self.columns)) for line in screen.history.top]
        text = "\n".join(line.rstrip() for line in [*above, *screen.display]).rstrip() + "\n"
        for pattern, word in _VARYING.items():
            text = re.sub(pattern, word, text)
        return text

    @property
    def words(self) -> str:
        """The same on one line."""
        return " ".join(self.text.split())


@functools.cache
def _commands() -> Forks:
    """Return the forks of ``container-update``."""
    own = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "NO_COLOR": ""}
    return Forks(
        "container_update.cli.main",
        "container_update.cli.commands.update",
        "container_update.cli.terminal.output",
        "container_update.engine.goals.update",
        environment=own,
    )


def record(
    arguments: Sequence[str],
    columns: int,
    answers: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Recording:
    """Run ``container-update`` with these arguments on a terminal of that width.

    :param answers: what is typed once a text is there.
    """
    terminal, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, columns, 0, 0))
    line = Path(os.ttyname(other))
    size = {"COLUMNS": str(columns), "LINES": str(_ROWS)}
    process = _commands().start(
        "container_update.cli.main:main",
        [*arguments],
        Path.cwd(),
        line,
        line,
        {**size, **(environment or {})},
        line,
    )
    raw, waiting = b"", dict(answers or {})
    while True:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:  # its other end is closed
            break
        if not raw:
            os.close(other)  # the command has it open
        raw += chunk
        for text in [text for text in waiting if text.encode() in raw]:
            os.write(terminal, waiting.pop(text).encode())
    os.close(terminal)
    return Recording(_commands().wait(process), raw.decode(), columns)
