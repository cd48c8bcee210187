# SPDX-License-Identifier: Apache-2.0
"""The answer of a v2 Mgmt Driver: a pickled dict of plain values, from a program of a package.

The bytes of a pickle are instructions: a few may take gigabytes, and shared values grow when they
are written as JSON. So the instructions are counted before they are followed, and the values after.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from typing import Any, NoReturn

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

    :raises ScriptError: it holds more than plain values, or is too large for this service.
    """
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
