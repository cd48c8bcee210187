# SPDX-License-Identifier: Apache-2.0
"""Processes that start fast: forked from one that has already imported their modules.

The service, Tacker and the ``openstack`` client take seconds to import their libraries, and the
tests start them a hundred times. A fork is a process like any other: it runs the program's own main
function, and can be killed.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Forks:
    """Programs whose modules are already imported.

    :param modules: the modules that are imported before the first program starts.
    :param python: the interpreter.
    :param environment: variables that all programs have in addition.
    """

    def __init__(
        self, *modules: str, python: str = sys.executable, environment: Mapping[str, str] = {}
    ) -> None:
        self._parent = subprocess.Popen(
            [python, __file__, *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **environment},
            text=True,
        )
        atexit.register(self.close)

    def start(
        self,
        main: str,
        arguments: list[str],
        cwd: Path,
        out: Path,
        err: Path,
        environment: Mapping[str, str] = {},
        given: Path | str = os.devnull,
    ) -> int:
        """Run a program and return its process id.

        :param main: ``module:function``, which gets the arguments, or the path of a script.
        :param environment: variables that it has in addition.
        :param given: what it reads from standard input.
        """
        files = {"cwd": str(cwd), "out": str(out), "err": str(err), "given": str(given)}
        command = {"main": main, "arguments": arguments, "environment": dict(environment)}
        return int(self._send(**command, **files))

    def run(
        self,
        main: str,
        arguments: list[str],
        cwd: Path,
        environment: Mapping[str, str] = {},
        given: bytes = b"",
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a program to its end, as :meth:`start`, and return its result."""
        with tempfile.TemporaryDirectory() as folder:
            out, err, read = (Path(folder, name) for name in ("out", "err", "given"))
            read.write_bytes(given)
            status = self.wait(self.start(main, arguments, cwd, out, err, environment, read))
            return subprocess.CompletedProcess(
                arguments, status, out.read_bytes(), err.read_bytes()
            )

    def wait(self, process: int) -> int:
        """Wait for a process and return its exit status, negative for the signal that ended it."""
        return int(self._send(wait=process))

    def has_ended(self, process: int) -> bool:
        """Return whether a process has ended; this consumes its exit status."""
        return bool(self._send(ended=process))

    def close(self) -> None:
        """End the parent process."""
        self._parent.kill()
        self._parent.wait()

    def _send(self, **command: Any) -> Any:
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        self._parent.stdin.write(json.dumps(command) + "\n")
        self._parent.stdin.flush()
        return json.loads(self._parent.stdout.readline())


@functools.cache
def services() -> Forks:
    """Return the forks of ``container-update serve``."""
    return Forks("container_update.cli.main", "container_update.vnfm.commands.serve",
                 "container_update.vnfm.service", "uvicorn.protocols.http.auto",
                 "container_update.engine.goals.update",
                 "container_update.vnfm.lcm.infrastructure.openstack")  # fmt: skip


@functools.cache
def clients() -> Forks:
    """Return the forks of ``openstack``."""
    return Forks("openstackclient.shell", "tackerclient.osc.plugin", "tackerclient.v1_0.client")


def context() -> Any:
    """Return what starts processes of the tests' own code; all of them have one parent."""
    forking = multiprocessing.get_context("forkserver")
    forking.set_forkserver_preload(
        ["kubernetes.client", "tests.functional.matrix", "tests.functional.stacks.matrix"]
    )
    return forking


# --- in the parent of the forks -----------------------------------------------------------------


def _answer(command: dict[str, Any]) -> Any:
    if "main" in command:
        process = os.fork()
        if process == 0:
            _become(**command)
        return process
    if "wait" in command:
        return os.waitstatus_to_exitcode(os.waitpid(command["wait"], 0)[1])
    return os.waitpid(command["ended"], os.WNOHANG)[0] != 0


def _become(
    main: str,
    arguments: list[str],
    environment: dict[str, str],
    cwd: str,
    out: str,
    err: str,
    given: str,
) -> None:
    """Turn this process into the program."""
    status = 70
    try:
        os.setsid()
        os.environ.update(environment)
        tempfile.tempdir = None  # what TMPDIR says now
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(cwd)
        for path, descriptor in ((given, 0), (out, 1), (err, 2)):
            flags = os.O_RDONLY if descriptor == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            os.dup2(os.open(path, flags, 0o600), descriptor)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        status = _call(main, arguments)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001, any error goes to the program's own log
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _call(main: str, arguments: list[str]) -> int:
    module, _, function = main.partition(":")
    sys.argv = [function or main, *arguments]
    if not function:
        runpy.run_path(main, run_name="__main__")
        return 0
    return getattr(importlib.import_module(module), function)(arguments) or 0


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file
    gc.disable()
    for name in sys.argv[1:]:
        importlib.import_module(name)
    gc.enable()
    gc.freeze()  # a fork's collections leave the pages alone that it shares
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line))), flush=True)
