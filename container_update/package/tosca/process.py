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
import signal
import sys
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
"""The processes that were started for VNFDs to come."""


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
    """Return what the process answers; ReaderEndedError where it did not."""
    seconds = options.vnfd_seconds * _CLOCK
    try:
        process = _take_or_start(options)
    except OSError as error:
        raise _ended_error(path, f"could not be started: {error}") from error
    with process:
        try:
            answer, _ = process.communicate(request, timeout=seconds)
        except programs.TimeoutExpired as error:
            problem = f"{seconds:g} s by the clock ({_CLOCK} times the option vnfd_seconds)"
            raise _ended_error(path, f"did not end in {problem}: {_ADVICE}") from error
        finally:
            process.kill()
    if process.returncode == 0:
        return answer
    if process.returncode == -signal.SIGPROF:
        fault = f"used more than {options.vnfd_seconds:g} s of processor time (option vnfd_seconds)"
    elif process.returncode == parser.OUT_OF_MEMORY:
        fault = f"used more than {options.vnfd_bytes} bytes of memory (option vnfd_bytes)"
    elif process.returncode == parser.TOO_LONG:
        fault = "answered with too many bytes"
    else:
        fault = f"ended with the status {process.returncode}"
    raise _ended_error(path, f"{fault}: {_ADVICE}")


def start(number: int, options: Options) -> None:
    """Start processes for the next VNFDs, so that each imports toscaparser before it has one.

    They end with this process at the latest. Does nothing where VNFDs were parsed before: a program
    that goes on knows most of them.
    """
    if _KNOWN or _WAITING:
        return
    with suppress(OSError):  # the error is raised where a VNFD is parsed
        _WAITING.extend([_start(_command(options)) for _ in range(number)])


def _take_or_start(options: Options) -> programs.Popen[bytes]:
    """Return a process that waits for a VNFD, a new one if none is waiting."""
    command = _command(options)
    with suppress(IndexError):
        waiting = _WAITING.pop()
        if waiting.args == command:
            return waiting
        waiting.kill()
    return _start(command)


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
