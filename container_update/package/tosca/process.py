# SPDX-License-Identifier: Apache-2.0
"""Have the topologies of a VNFD parsed by toscaparser, in a child process with limits.

toscaparser cannot be trusted with a VNFD in a process that has other work. It runs the VNFD's own
regular expressions (``constraints: pattern``) with an engine that may take for ever and lets no
other thread run meanwhile, and it validates the defaults of data types within data types again for
each place where they are used. The child process has limits of processor time, time by the clock,
memory and output, and nothing of our environment.
"""

from __future__ import annotations

import hashlib
import json
import selectors
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from container_update.model import programs
from container_update.model.errors import PackageError
from container_update.model.objects import Json
from container_update.model.options import Options
from container_update.package.tosca import parser

_START = (
    "import sys; *paths, seconds, size = sys.argv[1:]; sys.path[:] = paths;"
    "from container_update.package.tosca.parser import main; main(float(seconds), int(size))"
)
_CLOCK = 20
"""How much longer it may take by the clock, where others use the processors too."""

_LONGEST_PROBLEM = 1000
_ADVICE = (
    "simplify its regular expressions (constraints: pattern) and the defaults of its data types, "
    "and build the package again, or raise the option"
)


class ReaderEndedError(PackageError):
    """The process that reads a package had to be ended, or ended without an answer."""


@dataclass(frozen=True)
class Node:
    """A node template."""

    name: str
    is_vnf: bool
    is_vdu: bool
    properties: Mapping[str, Any]
    """With the defaults of its type; None for what only the inputs of an instance determine."""
    template: Json
    """As the VNFD writes it."""


@dataclass(frozen=True)
class Topology:
    """A topology template that toscaparser accepts."""

    path: str
    """Its file."""
    mapped: Mapping[str, Any]
    """``substitution_mappings.properties``."""
    nodes: tuple[Node, ...]
    policies: Any
    """As the VNFD writes them."""


_KNOWN: dict[bytes, bytes] = {}
"""Answers by a digest of the request, the oldest first: a process takes a tenth of a second, and a
service reads the same VNFDs again for each operation."""
_MOST_KNOWN, _LARGEST_KNOWN = 16, 1024 * 1024
_WAITING: list[programs.Popen[bytes]] = []
"""The process that was started for VNFDs to come, once for each of them."""
_LOCK = threading.Lock()
"""Of the process that waits."""


def parse(
    top: Mapping[str, Json], nested: Mapping[str, Json], types: Json, options: Options
) -> tuple[Topology, ...]:
    """Return the nested topologies of a VNFD; those at the top if it has no nested ones.

    :raises ReaderEndedError: toscaparser used more time or memory than the options allow.
    :raises PackageError: toscaparser does not accept the VNFD.
    """
    request = json.dumps({"top": top, "nested": nested, "types": types}).encode()
    answer = json.loads(_answer(next(iter((*nested, *top)), ""), request, options))
    if "problem" in answer:
        problem = "".join(c if c.isprintable() else " " for c in answer["problem"])
        raise PackageError(
            f"{answer['path']}: toscaparser does not accept the VNFD: {problem[:_LONGEST_PROBLEM]}"
        )
    return tuple(
        Topology(**{**topology, "nodes": tuple(Node(**node) for node in topology["nodes"])})
        for topology in answer["topologies"]
    )


def _answer(path: str, request: bytes, options: Options) -> bytes:
    digest = hashlib.sha256(request).digest()
    answer = _KNOWN.get(digest)
    if answer is None:
        answer = _output(path, request, options)
        if len(answer) <= _LARGEST_KNOWN:
            _KNOWN[digest] = answer
            for oldest in list(_KNOWN)[:-_MOST_KNOWN]:
                _KNOWN.pop(oldest, None)
    return answer


def _output(path: str, request: bytes, options: Options) -> bytes:
    """Return what a process answers.

    :raises ReaderEndedError: it did not.
    """
    command = _command(options)
    with _LOCK:
        if _WAITING and _WAITING[-1].args != command:
            _end(_WAITING[-1])
        if _WAITING:
            return _ask(_WAITING.pop(), path, request, options)
    try:
        process = _start(command)
    except OSError as error:
        raise _ended_error(path, f"could not be started: {error}") from error
    return _ask(process, path, request, options)


def _ask(process: programs.Popen[bytes], path: str, request: bytes, options: Options) -> bytes:
    """Return the answer of a process; end it unless it waits for another VNFD."""
    seconds = options.vnfd_seconds * _CLOCK
    is_answered = False
    try:
        answer = _exchange(process, request, seconds)
        is_answered = answer.endswith(b"\n")
        status = 0 if is_answered else process.wait()
    except TimeoutError as error:
        problem = f"{seconds:g} s by the clock ({_CLOCK} times the option vnfd_seconds)"
        raise _ended_error(path, f"did not end in {problem}: {_ADVICE}") from error
    finally:
        if not is_answered or process not in _WAITING:
            _end(process)
    if is_answered:
        return answer
    if status == -signal.SIGPROF:
        fault = f"used more than {options.vnfd_seconds:g} s of processor time (option vnfd_seconds)"
    elif status == parser.OUT_OF_MEMORY:
        fault = f"used more than {options.vnfd_bytes} bytes of memory (option vnfd_bytes)"
    elif status == parser.TOO_LONG:
        fault = "answered with too many bytes"
    else:
        fault = f"ended with the status {status}"
    raise _ended_error(path, f"{fault}: {_ADVICE}")


def _exchange(process: programs.Popen[bytes], request: bytes, seconds: float) -> bytes:
    """Return the line that a process answers, less of it if it ends; TimeoutError if it is late."""
    assert process.stdin
    assert process.stdout
    with suppress(BrokenPipeError):  # it has ended: so does its output
        process.stdin.write(request + b"\n")
        process.stdin.flush()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if not selector.select(seconds):
            raise TimeoutError
    return process.stdout.readline()


def _end(process: programs.Popen[bytes]) -> None:
    """End a process, at once: it has nothing to save."""
    _WAITING[:] = (waiting for waiting in _WAITING if waiting is not process)
    with suppress(BrokenPipeError), process:  # it may have ended before it has read all
        process.kill()


def start(number: int, options: Options) -> None:
    """Start a process for the next VNFDs, so that it imports toscaparser before it has one.

    It ends with this process at the latest. Does nothing where VNFDs were parsed before: a program
    that goes on knows most of them.
    """
    if not number or _KNOWN or _WAITING:
        return
    with suppress(OSError):  # the error is raised where a VNFD is parsed
        _WAITING.extend([_start(_command(options))] * number)


def _command(options: Options) -> list[str]:
    limits = [str(options.vnfd_seconds), str(options.vnfd_bytes)]
    # where it finds this project and toscaparser; never its working folder
    root = str(Path(__file__).parents[3])
    paths = [*(path for path in sys.path if path not in ("", root)), root]
    return [sys.executable, "-I", "-S", "-B", "-c", _START, *paths, *limits]


def _start(command: list[str]) -> programs.Popen[bytes]:
    return programs.start(
        programs.VNFD_READER,
        command,
        {},
        stdin=programs.PIPE,
        stdout=programs.PIPE,
        stderr=programs.DEVNULL,
        cwd="/",
        start_new_session=True,  # a Ctrl-C is for us
    )


def _ended_error(path: str, problem: str) -> ReaderEndedError:
    return ReaderEndedError(f"{path}: the process that reads the VNFD {problem}")
