# SPDX-License-Identifier: Apache-2.0
"""What a filter finds nothing without, in the text of a JSON document: seen without parsing it.

Everything here leaves out documents only. What is not left out has to be judged by the filter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from container_update.vnfm.api.queries.query_filters import KEYS, Filter, is_word

_VALUE = r'\s*:\s*("(?:[^"\\]|\\.)*"|[^\s,\]}"]+)'
"""A scalar after its name, or the beginning of an array or an object."""


def required_texts(part: Filter) -> Iterator[list[str]]:
    """Yield texts of which one is in each document that satisfies a part of a filter: the names on
    the way to each attribute, and values that equal only themselves."""
    for name, below in part.branches.items():
        if _is_named(name):
            yield [f'"{name}"']
        yield from required_texts(below)
    for condition in part.conditions:
        if not all(map(_is_plain, condition.values)):
            continue
        if condition.op == "cont":
            yield list(condition.values)
        elif condition.op in ("eq", "in") and all(map(is_word, condition.values)):
            yield [f'"{value}"' for value in condition.values]


def may_match(part: Filter) -> Callable[[str], bool]:
    """Return a function that returns False for texts of documents that do not satisfy a part of a
    filter: no attribute with the name of a condition has a value that satisfies it."""
    judges = [
        (re.compile(f'"{re.escape(name)}"{_VALUE}').findall, _judge(branch))
        for name, branch in _leaves(part)
    ]
    return lambda text: all(any(map(judge, values(text))) for values, judge in judges)


def _leaves(part: Filter) -> Iterator[tuple[str, Filter]]:
    for name, branch in part.branches.items():
        if _is_named(name) and branch.conditions:
            yield name, branch
        yield from _leaves(branch)


def _judge(branch: Filter) -> Callable[[str], bool]:
    """Return a function that judges a value as it is written; arrays and objects may match."""
    return lru_cache(maxsize=256)(
        lambda text: text.startswith(("[", "{")) or branch.matches(json.loads(text))
    )


def _is_named(name: str) -> bool:
    return name != KEYS and _is_plain(name)


def _is_plain(text: str) -> bool:
    """Return whether a text is written in JSON as it is, whoever wrote it."""
    return text.isascii() and text.isprintable() and not set(text) & set('"\\/')
