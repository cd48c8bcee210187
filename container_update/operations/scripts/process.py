"""The process of a coordination script: it inherits nothing and ends with this process.

It is started by our interpreter, without a shell, with an environment of a few harmless variables
and a pickled dict on standard input, in a process group that is killed with it. Where this process
ends, even by kill -9, so does the group: the runner holds the other end of a pipe.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from container_update.operations.change_request import ScriptName
from container_update.operations.scripts import runner

_ENVIRONMENT = ("LANG", "LC_ALL", "LC_CTYPE", "PATH", "SSL_CERT_DIR", "SSL_CERT_FILE", "TZ")
"""All that a script inherits of our environment."""

_KEPT_OUTPUT = 8 * 1024


class Script:
    """A running script; at the end of the ``with`` it is killed with all that it has started.

    :param script: its path in the package, and the class whose ``coordinate_vnf()`` is called, or
        None: it is run as a program.
    :param package: a copy of the package; the script may write here and in the folder around it.
    :param context: the dict that it finds, pickled, on standard input.
    :raises OSError: it cannot be started.
    """

    def __init__(self, script: ScriptName, package: Path, context: Mapping[str, Any]) -> None:
        held, self._lifeline = os.pipe()
        arguments = [str(held), str(package / script.path), *filter(None, [script.class_name])]
        try:
            with tempfile.TemporaryFile() as stdin:
                stdin.write(pickle.dumps(context))
                stdin.seek(0)
                self._process = subprocess.Popen(  # noqa: S603, what the operator asked for
                    [sys.executable, runner.__file__, *arguments],
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    cwd=package,
                    env=_environment(package.parent),
                    start_new_session=True,
                    pass_fds=[held],
                )
        except BaseException:
            os.close(self._lifeline)
            raise
        finally:
            os.close(held)
        self._output = _Output(self._process.stdout)

    def wait(self, seconds: float) -> int | None:
        """Return the exit status; None where the script still runs after so many seconds."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(seconds)
        return None

    def output(self) -> str:
        """Return the end of what it printed."""
        return self._output.text()

    def __enter__(self) -> Script:
        return self

    def __exit__(self, *_: object) -> None:
        """End what the script left running, and the script itself."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._lifeline)


class _Output:
    """The end of what a process prints, read while it runs so that it is never kept waiting."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        assert stream is not None, "the process was started with a pipe"
        self._stream = stream
        self._kept = b""
        self._cut = False
        self._reader = threading.Thread(target=self._read, name="script output", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with self._stream as stream:
            while chunk := stream.read1(_KEPT_OUTPUT):  # type: ignore[attr-defined]
                self._cut |= len(self._kept) + len(chunk) > _KEPT_OUTPUT
                self._kept = (self._kept + chunk)[-_KEPT_OUTPUT:]

    def text(self) -> str:
        """Return what was kept, without what a terminal would take for an order."""
        self._reader.join(timeout=5)
        text = self._kept.decode("utf-8", "replace")
        shown = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)
        return ("[...]\n" if self._cut else "") + shown


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    return {**kept, "HOME": str(folder), "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
