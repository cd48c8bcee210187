# SPDX-License-Identifier: Apache-2.0
"""The answer of a v2 Mgmt Driver: a pickled dict of plain values, from a program of a package.

The bytes of a pickle are instructions: a few may take gigabytes, and shared values grow when they
are written as JSON. So the instructions are counted before they are followed, and the values after.
They are followed in a child process with limits: keys with equal hashes take hours, in which no
other thread would run.
"""

from __future__ import annotations

import io
import json
import pickle
import pickletools
import resource
import sys
from typing import Any, NoReturn

from container_update.model import programs
from container_update.model.errors import ContainerUpdateError
from container_update.model.objects import Json

ANSWER_BYTES = 16 * 1024 * 1024
"""The most bytes of a pickled answer, and of all its texts as JSON."""

_VALUES = 1_000_000
"""The most instructions of a pickle, each of which makes at most one value, and the most values as
JSON."""

_DEPTH, _NUMBER_BITS = 100, 64
_TOO_LARGE = (
    f"the script's answer, where each value is written out: expected at most {_VALUES} values, "
    f"{ANSWER_BYTES} bytes of text and a depth of {_DEPTH}"
)
_SECONDS, _CLOCK = 20, 300.0
"""For the process that reads an answer: of processor time, and by the clock."""
_MEMORY = 2 * 1024 * 1024 * 1024
_READ = (
    "import sys; sys.path[:] = sys.argv[1:];"
    "from container_update.vnfm.lcm.mgmt_drivers.driver_answer import main; main()"
)
_STORES = frozenset({"PUT", "BINPUT", "LONG_BINPUT"})
"""Instructions with an index of a table, which grows to that size."""


class ScriptError(ContainerUpdateError):
    """A script ended with an error, or its answer cannot be used."""


class _Plain(pickle.Unpickler):
    """Reads plain values only. A script may run any code, but in a process of its own."""

    def find_class(self, module: str, name: str) -> NoReturn:
        """Refuse every class and function."""
        raise ScriptError(
            f"the script's answer holds {module}.{name}: expected dicts, lists, texts and numbers"
        )


def plain_answer(text: bytes) -> Json:
    """Return the dict that a script wrote to standard output; empty if it is not a pickled dict.

    A tuple in it becomes a list.

    :raises ScriptError: it holds more than plain values, or is too large for this service.
    """
    words = ["-I", "-S", "-B", "-c", _READ, *filter(None, sys.path)]
    try:
        done = programs.run(
            programs.ANSWER_READER, sys.executable, words, content=text, seconds=_CLOCK
        )
        done.check_returncode()
    except (OSError, programs.SubprocessError) as error:
        raise ScriptError(
            f"the script's answer cannot be read within {_SECONDS} s of processor time and "
            f"{_MEMORY} bytes of memory: expected a dict of plain values, with texts as keys"
        ) from error
    answer: Json = json.loads(done.stdout)
    if problem := answer.get("problem"):
        raise ScriptError(problem)
    return dict(answer["answer"])


def main() -> None:
    """Read the answer of a script from standard input, and write it as JSON."""
    for what, most in ((resource.RLIMIT_CPU, _SECONDS), (resource.RLIMIT_AS, _MEMORY)):
        _, hard = resource.getrlimit(what)
        is_less = 0 <= hard < most  # it is negative where there is none
        resource.setrlimit(what, (hard if is_less else most, hard))
    try:
        result: Json = {"answer": _loaded(sys.stdin.buffer.read())}
    except ScriptError as error:
        result = {"problem": str(error)}
    json.dump(result, sys.stdout)


def _loaded(text: bytes) -> Json:
    try:
        _count_instructions(text)
        answer: Any = _Plain(io.BytesIO(text)).load()
    except (
        ArithmeticError,
        AttributeError,
        EOFError,
        LookupError,
        pickle.UnpicklingError,
        TypeError,
        ValueError,
    ):
        return {}
    if not isinstance(answer, dict):
        return {}
    _refuse_unwritable(answer)
    return answer


def _count_instructions(text: bytes) -> None:
    """Refuse a pickle that takes much more memory than its bytes.

    :raises ValueError: it is no pickle, or an instruction needs more bytes than there are.
    """
    for number, (opcode, argument, _) in enumerate(pickletools.genops(text)):
        place = argument if opcode.name in _STORES else 0
        if number >= _VALUES or not isinstance(place, int) or place >= _VALUES:
            raise ScriptError(_TOO_LARGE)


def _refuse_unwritable(answer: Json) -> None:
    """Refuse what is too large or too deep as JSON, or has none."""
    values, size, left = 1, 0, [(answer, 0)]
    while left:
        value, depth = left.pop()
        parts = _parts(value)
        values += len(parts)
        size += len(value) if isinstance(value, str) else 0
        if values > _VALUES or size > ANSWER_BYTES or depth > _DEPTH:
            raise ScriptError(_TOO_LARGE)
        left += [(part, depth + 1) for part in parts]


def _parts(value: Any) -> tuple[Any, ...]:
    """Return what a value consists of; nothing for a text, a number, true, false or null."""
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return (*value, *value.values())
    if isinstance(value, (list, tuple)):
        return tuple(value)
    is_small = not isinstance(value, int) or value.bit_length() <= _NUMBER_BITS
    if isinstance(value, (str, int, float, type(None))) and is_small:
        return ()
    raise ScriptError(
        f"the script's answer holds a value of type {type(value).__name__} that JSON does not have:"
        f" expected dicts with texts as keys, lists, texts and numbers of {_NUMBER_BITS} bits"
    )
