# SPDX-License-Identifier: Apache-2.0
"""The process of a package's script: it inherits nothing, and ends with all that it started.

It is started without a shell, with an environment of a few harmless variables and a pickled dict on
standard input. A :mod:`.supervisor` kills everything that it has started when it ends, also
processes in a session of their own, and when this process ends, even by kill -9: the supervisor
holds the other end of a pipe.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import pickle
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import IO, Any, TypeVar

from container_update.engine.goals.change_request import ScriptName
from container_update.engine.scripts import runner, supervisor
from container_update.model import programs

_KEPT_OUTPUT = 8 * 1024
_CHUNK = 64 * 1024

_END_SECONDS = 10.0
"""Time for the supervisor to end everything; a script could have stopped it."""

Started = TypeVar("Started", bound="Process")


class Process:
    """A running script; at the end of the ``with`` it is killed with all that it has started.

    :param command: the program and its arguments.
    :param values: the dict that it finds, pickled, on standard input.
    :param folder: its current folder.
    :param home: where it may write, as HOME and TMPDIR.
    :param variables: its environment beside the harmless ones that it inherits.
    :param answer_bytes: how much of its standard output is kept, apart from standard error; 0: both
        are one.
    :raises OSError: it cannot be started.
    """

    def __init__(  # noqa: PLR0913
        self,
        command: Sequence[str],
        values: Mapping[str, Any],
        *,
        folder: Path,
        home: Path,
        variables: Mapping[str, str] | None = None,
        answer_bytes: int = 0,
    ) -> None:
        places = {"HOME": str(home), "TMPDIR": str(home)}
        held, self._lifeline = os.pipe()
        # -S: nothing of the site is needed, and the supervisor starts in a few milliseconds
        supervised = [sys.executable, "-I", "-S", *_program(supervisor), str(held), *command]
        try:
            with tempfile.TemporaryFile() as stdin:
                stdin.write(pickle.dumps(values))
                stdin.seek(0)
                self._process = programs.start(
                    programs.SCRIPT,
                    supervised,
                    {**places, **(variables or {})},
                    stdin=stdin,
                    stdout=programs.PIPE,
                    stderr=programs.PIPE if answer_bytes else programs.STDOUT,
                    cwd=folder,
                    start_new_session=True,
                    pass_fds=[held],
                )
        except BaseException:
            os.close(self._lifeline)
            raise
        finally:
            os.close(held)
        self._answer = _Output(self._process.stdout, answer_bytes or _KEPT_OUTPUT)
        errors = self._process.stderr
        self._output = self._answer if errors is None else _Output(errors, _KEPT_OUTPUT)

    def wait(self, seconds: float) -> int | None:
        """Return the exit status, or 128 and its signal; None: it still runs."""
        with contextlib.suppress(programs.TimeoutExpired):
            return self._process.wait(seconds)
        return None

    def terminate(self) -> None:
        """Send it SIGTERM."""
        self._process.terminate()

    @property
    def is_answer_too_long(self) -> bool:
        """Whether it has written more to standard output than is kept."""
        return self._answer.is_cut

    def answer(self) -> bytes:
        """Return its standard output, or the end of it."""
        return self._answer.content()

    def output(self) -> str:
        """Return the end of its output, without control characters of a terminal."""
        text = self._output.content().decode("utf-8", "replace")
        shown = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)
        return ("[...]\n" if self._output.is_cut else "") + shown

    def __enter__(self: Started) -> Started:
        return self

    def __exit__(self, *_: object) -> None:
        """End what the script left running, and the script itself."""
        os.close(self._lifeline)
        if self.wait(_END_SECONDS) is None:
            self._process.kill()
            self._process.wait()


class Script(Process):
    """A coordination script that runs.

    :param script: its path in the package, and the class whose ``coordinate_vnf()`` is called, or
        None: it is run as a program.
    :param package: a copy of the package; the script may write here and in the folder around it.
    :param context: the dict that it finds, pickled, on standard input.
    :raises OSError: it cannot be started.
    """

    def __init__(self, script: ScriptName, package: Path, context: Mapping[str, Any]) -> None:
        arguments = [str(package / script.path), *filter(None, [script.class_name])]
        # -u: what it prints and why it ends are in one output, in that order
        command = [sys.executable, "-u", *_program(runner), *arguments]
        super().__init__(command, context, folder=package, home=package.parent)


class _Output:
    """The last bytes that a process writes, read while it runs so that it never waits."""

    def __init__(self, stream: IO[bytes] | None, most: int) -> None:
        assert stream is not None, "the process was started with a pipe"
        self._stream = stream
        self._most = most
        self._kept = bytearray()
        self.is_cut = False
        self._reader = threading.Thread(target=self._read, name="script output", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with self._stream as stream:
            while chunk := stream.read1(_CHUNK):  # type: ignore[attr-defined]
                self._kept += chunk
                if len(self._kept) > self._most:
                    self.is_cut = True
                    del self._kept[: -self._most]

    def content(self) -> bytes:
        """Return the kept output."""
        self._reader.join(timeout=5)
        return bytes(self._kept)


def _program(module: ModuleType) -> tuple[str, str]:
    """Return the arguments that have Python run a module, which in a bundle is no file."""
    return "-c", inspect.getsource(module)
