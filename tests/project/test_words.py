# SPDX-License-Identifier: Apache-2.0
"""Words that messages, comments and pages do without: a sentence has a subject that exists in the
system."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORDS = {
    r"(?i)some(body|one) else(?!_)": "another client, another user, another instance",
    r"(?i)\b(some|any|no)body\b": "a user, a client, a process: who it is",
    r"(?i)\bwhoever\b": "the account that ..., the client that ...",
    r"(?i)\b(is|are) borne\b": "is tolerated, the maximum number of",
    r"(?i)\bwithout a word\b": "silently",
}
"""Each with what to write in its place."""


def sources() -> Iterator[Path]:
    """Yield what users and maintainers read."""
    for pattern in ("*.py", "*.js", "*.html"):
        yield from (ROOT / "container_update").rglob(pattern)
    yield from (ROOT / "doc/source").rglob("*.rst")
    yield ROOT / "README.rst"


@pytest.mark.parametrize("word", WORDS)
def test_no_sentence_has_a_subject_that_is_not_there(word: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sources()
        if re.search(word, text := path.read_text(encoding="utf-8"))
        for number, line in enumerate(text.splitlines(), 1)
        if re.search(word, re.sub(r"``[^`]*::test_\w+``", "", line))  # names of tests
    ]
    assert not found, f"write {WORDS[word]}"
