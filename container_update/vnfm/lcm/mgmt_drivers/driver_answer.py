# SPDX-License-Identifier: Apache-2.0
"""The answer of a v2 Mgmt Driver: a pickled dict of plain values, from a program of a package.

The bytes of a pickle are instructions: a few may take gigabytes or hours, in which no other thread
would run, and shared values grow when they are written out. So they are followed in a child process
with limits, whose own answer is JSON.
"""

from __future__ import annotations

import io
import json
import pickle
import sys
from typing import NoReturn

from container_update.model import programs
from container_update.model.errors import ContainerUpdateError
from container_update.model.objects import Json

ANSWER_BYTES = 16 * 1024 * 1024
"""The most bytes of an answer, as a pickle and as JSON."""

_SECONDS = 60.0
"""For the process that reads an answer."""
_READ = (
    "import sys; sys.path[:] = sys.argv[1:];"
    "from container_update.vnfm.lcm.mgmt_drivers.driver_answer import main; main()"
)


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

    It is what JSON makes of it: a tuple becomes a list, a number as a key becomes text.

    :raises ScriptError: it holds more than plain values, or is too large for this service.
    """
    words = ["-I", "-S", "-B", "-c", _READ, *filter(None, sys.path)]
    try:
        done = programs.run(
            programs.ANSWER_READER, sys.executable, words, content=text, seconds=_SECONDS
        )
        done.check_returncode()
    except (OSError, programs.SubprocessError) as error:
        raise ScriptError(
            f"the script's answer cannot be read within {_SECONDS:g} s and "
            f"{programs.ANSWER_READER.memory} bytes of memory: expected a dict of plain values, "
            "with texts as keys"
        ) from error
    answer: Json = json.loads(done.stdout)
    if problem := answer.get("problem"):
        raise ScriptError(problem)
    return dict(answer["answer"])


def main() -> None:
    """Read the answer of a script from standard input, and write it as JSON."""
    try:
        text = _as_json({"answer": _load(sys.stdin.buffer.read())})
    except (MemoryError, RecursionError, TypeError, ValueError, ScriptError) as error:
        why = str(error) or type(error).__name__
        text = json.dumps({"problem": f"the script's answer cannot be written as JSON: {why}"})
    sys.stdout.write(text)


def _as_json(value: Json) -> str:
    """Return a value as JSON; ValueError for one too long, TypeError for what JSON has not."""
    text = io.StringIO()
    for part in json.JSONEncoder(allow_nan=False).iterencode(value):
        if text.tell() + len(part) > ANSWER_BYTES:
            raise ValueError(f"expected at most {ANSWER_BYTES} bytes")
        text.write(part)
    return text.getvalue()


def _load(text: bytes) -> Json:
    """Return the dict of a pickle, empty for another; ScriptError for more than plain values."""
    try:
        answer = _Plain(io.BytesIO(text)).load()
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
    return answer if isinstance(answer, dict) else {}
