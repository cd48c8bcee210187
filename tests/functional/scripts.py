# SPDX-License-Identifier: Apache-2.0
"""Coordination scripts that end at once, for tests of what comes before and after them.

A real one is two processes of Python; thousands of them took a tenth of the time of all tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from tests.internals.core import ScriptName, coordination

GOOD, BAD = "print('ready')", "import sys; sys.exit('not ready')"
_ENDS = {GOOD: (0, "ready\n"), BAD: (1, "not ready\n")}
"""A script's text to its exit status and its output."""


class EndedScript:
    """Stands for a process that has run one of these scripts to its end."""

    def __init__(self, script: ScriptName, package: Path, _: Mapping[str, Any]) -> None:
        self._status, self._output = _ENDS[(package / script.path).read_text()]

    def __enter__(self) -> EndedScript:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def wait(self, _: float) -> int:
        """Return the exit status."""
        return self._status

    def output(self) -> str:
        """Return what the script prints."""
        return self._output


@contextmanager
def ended_at_once() -> Iterator[None]:
    """Have the scripts GOOD and BAD end at once while the block runs."""
    with mock.patch.object(coordination, "Script", EndedScript):
        yield
