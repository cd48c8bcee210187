# SPDX-License-Identifier: Apache-2.0
"""Values with something wrong in them: a part that is missing, of another type, endless or deep.

A mutation is plain data, so that one which once went wrong is kept as a line of a file.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path as File
from typing import Any

from hypothesis import strategies as st

Path = tuple[str | int, ...]
Mutation = tuple[Path, str]
"""A place, and the name of what is done there."""

CORPUS = File(__file__).parent / "corpus"


def _deep() -> Any:
    value: Any = "x"
    for _ in range(80):
        value = [{"a": value}]
    return value


VALUES: Mapping[str, Callable[[], Any]] = {
    "null": lambda: None,
    "zero": lambda: 0,
    "minus one": lambda: -1,
    "a fraction": lambda: 2.5,
    "a huge number": lambda: 10**30,
    "infinity": lambda: float("inf"),
    "true": lambda: True,
    "no text": lambda: "",
    "a text": lambda: "text",
    "a text with a line end": lambda: "a\nb",
    "a text with a zero": lambda: "a\0b",
    "a text with an escape": lambda: "\x1b[2J",
    "half a letter": lambda: "\ud800",
    "a way out": lambda: "../../x",
    "a long text": lambda: "x" * 100_000,
    "the beginning of a list": lambda: "[" * 100_000,
    "no list": lambda: [],
    "a list of a number": lambda: [5],
    "a list of null": lambda: [None],
    "a list of lists": lambda: [[]],
    "a long list": lambda: ["x"] * 10_000,
    "no mapping": lambda: {},
    "a mapping": lambda: {"a": 5},
    "depth": _deep,
}
"""What may be in the place of anything, as JSON has it."""
PYTHONS: Mapping[str, Callable[[], Any]] = {
    **VALUES,
    "bytes": lambda: b"bytes",
    "a set": set,
    "a tuple": lambda: (1, 2),
    "a number as a name": lambda: {5: "a"},
}
"""What a pickle may have there too."""


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield every place in a value: names of mappings, indexes of lists."""
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for name, part in parts:
        yield (*path, name)
        if isinstance(part, dict | list):
            yield from places(part, (*path, name))


def mutated(value: Any, *mutations: Mutation) -> Any:
    """Return a copy of a value with these mutations; one whose place is gone by then has none."""
    changed = copy.deepcopy(value)
    for (*holders, last), what in mutations:
        holder: Any = changed
        try:
            for name in holders:
                holder = holder[name]
            if what == "dropped":
                del holder[last]
            elif what == "renamed":
                holder[f"{last}x"] = holder.pop(last)
            else:
                holder[last] = PYTHONS[what]()
        except (LookupError, TypeError, AttributeError):
            continue
    return changed


def mutations(value: Any, values: Mapping[str, Any] = VALUES) -> st.SearchStrategy[list[Mutation]]:
    """Return one or two mutations of a value, drawn at random."""
    what = st.sampled_from(["dropped", "renamed", *values])
    return st.lists(st.tuples(st.sampled_from([*places(value)]), what), min_size=1, max_size=2)


def stored(name: str) -> list[Any]:
    """Return the inputs of one kind that once went wrong: a file of the corpus, a line for each."""
    lines = (CORPUS / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]
