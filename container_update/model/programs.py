# SPDX-License-Identifier: Apache-2.0
"""Every program that is started, and what reaches it: command line, environment and folder.

Most of them work on what others have written: a chart, a signature, a script. So none inherits more
of our environment than its entry in this table says, each is started without a shell, and the names
of files and other operands come after ``--`` where the program knows that.
"""

from __future__ import annotations

import math
import os
import resource
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from subprocess import DEVNULL, PIPE, STDOUT, Popen, SubprocessError, TimeoutExpired
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Any

__all__ = [
    "DEVNULL",
    "PIPE",
    "STDOUT",
    "Popen",
    "Program",
    "SubprocessError",
    "TimeoutExpired",
    "TooMuchError",
    "read_output",
    "run",
    "start",
]

_AUTHORITIES = ("SSL_CERT_DIR", "SSL_CERT_FILE")
_HOMES = ("HOME", "TMPDIR", "PATH")
"""What names the folder of a program that has one of its own: it finds no other programs either."""


@dataclass(frozen=True)
class Program:
    """A program that is started."""

    name: str
    inherits: tuple[str, ...] | None
    """The variables of our environment that reach it; None: all, as its user has configured it."""
    sets: Mapping[str, str] = field(default_factory=dict)
    has_folder: bool = True
    """It runs in an empty folder of its own, which is deleted after it."""
    memory: int = 0
    """How many bytes it may use, where the system can limit that; 0: as many as we."""

    def environment(self, folder: str = "") -> dict[str, str]:
        """Return its environment, with a *folder* of its own if it has one."""
        names = os.environ if self.inherits is None else self.inherits
        kept = {name: os.environ[name] for name in names if name in os.environ}
        return {**kept, **(dict.fromkeys(_HOMES, folder) if folder else {}), **self.sets}


_MOST_PRINTED = 2**28
"""Bytes of each stream, where a caller says no other number."""
_NO_CLUSTER = {"KUBECONFIG": os.devnull}
_MEMORY = 2**30
"""Of a program that renders a chart or reads a pickle: its input can ask for any length."""
_NOWHERE = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:1")
"""The proxy of a program that is to reach no host."""
_RENDERS: Mapping[str, str] = {**_NO_CLUSTER, **_NOWHERE}
HELM = Program("helm", (), _RENDERS, memory=_MEMORY)
KUSTOMIZE = Program("kubectl", (), _RENDERS, memory=_MEMORY)
_NO_AUTHORITIES = {"SSL_CERT_DIR": ".", "SSL_CERT_FILE": os.devnull}
"""Those of the system count no more than others: OpenSSL 3 asks them beside a -CAfile."""
OPENSSL = Program("openssl", ("LD_LIBRARY_PATH",), _NO_AUTHORITIES)
DOCKER_CREDENTIAL = Program("docker-credential-*", None, has_folder=False)
EXEC_PLUGIN = Program("the exec plugin of a kubeconfig", None, has_folder=False)
SCRIPT = Program(
    "a script of a package",
    ("LANG", "LC_ALL", "LC_CTYPE", "PATH", *_AUTHORITIES, "TZ"),
    {"PYTHONDONTWRITEBYTECODE": "1"},
    has_folder=False,  # that of the package's copy
)
VNFD_READER = Program("toscaparser", ("LD_LIBRARY_PATH", "PATH"), has_folder=False)
ANSWER_READER = Program("the reader of a driver's answer", ("LD_LIBRARY_PATH",), memory=_MEMORY)

PROGRAMS = (
    *(HELM, KUSTOMIZE, OPENSSL, DOCKER_CREDENTIAL, EXEC_PLUGIN, SCRIPT),
    *(VNFD_READER, ANSWER_READER),
)


class TooMuchError(SubprocessError, ValueError):
    """A program has printed more than it may."""


def run(  # noqa: PLR0913
    program: Program,
    path: str,
    options: Sequence[str],
    operands: Sequence[str] = (),
    *,
    content: bytes = b"",
    seconds: float,
    most: int = _MOST_PRINTED,
) -> subprocess.CompletedProcess[bytes]:
    """Run a program to its end.

    :param path: its file.
    :param options: no word of these is written by others, but as the value in ``--option=value``.
    :param operands: what others may have written.
    :param content: its standard input.
    :param most: bytes that it may print, and say about errors.
    :raises OSError: it cannot be started.
    :raises TimeoutExpired: it did not end in time, and was killed.
    :raises TooMuchError: it prints more, and was killed.
    """
    command = [path, *options, *(("--", *operands) if operands else ())]
    end = time.monotonic() + seconds
    with TemporaryDirectory(prefix="container-update-") as folder, TemporaryFile() as given:
        given.write(content)
        given.seek(0)
        its_folder = folder if program.has_folder else None
        with Popen(  # noqa: S603, without a shell
            command,
            stdin=given,
            stdout=PIPE,
            stderr=PIPE,
            cwd=its_folder,
            env=program.environment(its_folder or ""),
        ) as process:
            try:
                _limit(process.pid, program.memory, seconds)
                output, errors = read_output((process.stdout, process.stderr), end, most)
                process.wait(max(0.0, end - time.monotonic()))
            except TimeoutError:
                process.kill()
                raise TimeoutExpired(command, seconds) from None
            except BaseException:
                process.kill()
                raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def read_output(streams: Sequence[IO[bytes] | None], end: float, most: int) -> tuple[bytes, ...]:
    """Return all of each stream, of None nothing.

    :param end: until when, by ``time.monotonic()``.
    :param most: bytes of each.
    :raises TimeoutError: that is not at its end in time.
    :raises TooMuchError: it is more.
    """
    read = [bytearray() for _ in streams]
    with selectors.DefaultSelector() as selector:
        for stream, content in zip(streams, read, strict=True):
            if stream:
                selector.register(stream, selectors.EVENT_READ, content)
        while selector.get_map():
            left = end - time.monotonic()
            ready = selector.select(left) if left > 0 else []
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                if chunk := os.read(key.fd, 65536):
                    key.data.extend(chunk)
                else:
                    selector.unregister(key.fileobj)
            if max(map(len, read)) > most:
                raise TooMuchError(f"expected at most {most} bytes")
    return tuple(map(bytes, read))


def _limit(process: int, memory: int, seconds: float) -> None:
    """Limit memory and processor time of a process, where the system can: prlimit(2)."""
    wanted = {resource.RLIMIT_DATA: memory, resource.RLIMIT_CPU: math.ceil(seconds) + 1}
    for what, most in wanted.items() if hasattr(resource, "prlimit") else ():
        ours = resource.getrlimit(what)[1]
        if most and (ours == resource.RLIM_INFINITY or most < ours):  # none may raise its own
            with suppress(ProcessLookupError):  # it has ended
                resource.prlimit(process, what, (most, most))


def start(
    program: Program, command: Sequence[str], variables: Mapping[str, str], **where: Any
) -> Popen[bytes]:
    """Start a program that goes on.

    :param variables: of its environment, beside those of its entry in the table.
    :param where: of ``Popen``: its streams, folder and session.
    :raises OSError: it cannot be started.
    """
    environment = {**program.environment(), **variables}
    return subprocess.Popen(command, env=environment, **where)  # noqa: S603, without a shell
