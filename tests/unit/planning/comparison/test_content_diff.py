# SPDX-License-Identifier: Apache-2.0
"""What a step changes in a ConfigMap or Secret, as a reviewer reads it."""

from __future__ import annotations

import base64
import hashlib

import pytest

from container_update.model.objects import Json
from container_update.planning.comparison.diff import content_diff, printable
from tests.unit.build import config_map, secret

NUMBERS = "".join(f"{number}\n" for number in range(1, 11))


def hash_of(value: bytes) -> str:
    return hashlib.sha256(value).hexdigest()[:12]


DIFFS = {
    "a line among others has three lines of context": (
        {"f": NUMBERS}, {"f": NUMBERS.replace("5\n", "five\n")},
        ["key f: changed", "@@ -2,7 +2,7 @@", " 2", " 3", " 4", "-5", "+five", " 6", " 7", " 8"],
    ),
    "two changes far apart are two hunks": (
        {"f": "a\n" + NUMBERS + "b\n"}, {"f": "A\n" + NUMBERS + "B\n"},
        ["key f: changed", "@@ -1,4 +1,4 @@", "-a", "+A", " 1", " 2", " 3",
         "@@ -9,4 +9,4 @@", " 8", " 9", " 10", "-b", "+B"],
    ),
    "a key that is new": ({}, {"f": "a\n"}, ["key f: new", "@@ -0,0 +1 @@", "+a"]),
    "a key that is removed": ({"f": "a\n"}, {}, ["key f: removed", "@@ -1 +0,0 @@", "-a"]),
    "a line end that is missing": (
        {"f": "a\n"}, {"f": "a"},
        ["key f: changed", "@@ -1 +1 @@", "-a", "+a", "\\ No newline at end of file"],
    ),
    "a line end that is added": (
        {"f": "a"}, {"f": "a\n"},
        ["key f: changed", "@@ -1 +1 @@", "-a", "\\ No newline at end of file", "+a"],
    ),
    "a value of one line has no line end, which is no change": (
        {"f": "a", "n": "a\nb"}, {"f": "b", "g": "c", "n": "a\nc"},
        ["key f: changed", "@@ -1 +1 @@", "-a", "+b", "key g: new", "@@ -0,0 +1 @@", "+c",
         "key n: changed", "@@ -1,2 +1,2 @@", " a", "-b", "+c"],
    ),
    "what would control a terminal": (
        {"f": "a\n"}, {"f": "\x1b]0;x\x07\r\n"},
        ["key f: changed", "@@ -1 +1 @@", "-a", "+\\x1b]0;x\\x07\\r"],
    ),
    "keys in their order, without those that stay": (
        {"b": "1\n", "c": "1\n", "s": "1\n"}, {"a": "1\n", "b": "2\n", "s": "1\n"},
        ["key a: new", "@@ -0,0 +1 @@", "+1", "key b: changed", "@@ -1 +1 @@", "-1", "+2",
         "key c: removed", "@@ -1 +0,0 @@", "-1"],
    ),
}  # fmt: skip


def lines_of(before: Json | None, after: Json) -> list[str]:
    lines = []
    for diff in content_diff(before, after):
        lines += [" ".join(filter(None, (str(diff.change), diff.summary))), *diff.lines]
    return lines


@pytest.mark.parametrize(("before", "after", "expected"), DIFFS.values(), ids=DIFFS)
def test_the_text_of_a_config_map_is_compared_line_by_line(
    before: dict[str, str], after: dict[str, str], expected: list[str]
) -> None:
    assert lines_of(config_map(data=before), config_map(data=after)) == expected


def test_an_object_that_is_created_shows_all_of_its_text() -> None:
    assert lines_of(None, config_map(data={"a": "1\n"})) == ["key a: new", "@@ -0,0 +1 @@", "+1"]


BINARY = {"bytes that are no text": b"\xff\xfe", "a text with a zero byte": b"a\0b"}


@pytest.mark.parametrize("value", BINARY.values(), ids=BINARY)
def test_binary_content_is_told_by_its_size_and_hash(value: bytes) -> None:
    encoded = base64.b64encode(value).decode()
    after = config_map(data={}, binaryData={"b": encoded})
    assert lines_of(config_map(data={"b": "a"}), after) == [
        f"key b: changed binary, 1 bytes (sha256 {hash_of(b'a')}) -> "
        f"{len(value)} bytes (sha256 {hash_of(value)})"
    ]


def test_a_text_of_very_many_lines_is_not_compared() -> None:
    (line,) = lines_of(config_map(data={}), config_map(data={"f": "x\n" * 5001}))
    assert line.startswith("key f: new 0 -> 5001 lines, none -> 10002 bytes (sha256 ")


def test_of_a_secret_only_the_names_of_its_keys_are_told() -> None:
    before, after = secret(data={"p": "canary-1", "q": "x"}), secret(data={"p": "canary-22"})
    assert lines_of(before, after) == ["key p: changed", "key q: removed"]


def test_letters_of_all_languages_can_be_printed() -> None:
    assert printable("naïve 漢字\t") == "naïve 漢字\t"
    assert printable("\u202e\x9b1m") == "\\u202e\\x9b1m"
