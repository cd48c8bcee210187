"""Texts set in a YAML file: everything else keeps its bytes."""

from __future__ import annotations

import pytest

from container_update.model.errors import PackageError
from container_update.package.values.yaml_text import with_texts

FILE = """\
# of the vendor
b:   &old
  name: front-1.0   # the image
a: {name: 'front-1.0', "x": [one, two]}
"""
SET = [
    (("b", "name"), "front-2.0", "front-1.0   #", "front-2.0   #"),
    (("a", "name"), "front-2.0", "'front-1.0'", "'front-2.0'"),
    (("a", "x", 1), "three", "two", "three"),
    (("b", "name"), "1.0", "front-1.0   #", '"1.0"   #'),
    (("b", "name"), "yes", "front-1.0   #", '"yes"   #'),
    (("b", "name"), "a: #b", "front-1.0   #", '"a: #b"   #'),
    (("a", "name"), 'it\'s "ü"', "'front-1.0'", '"it\'s \\"ü\\""'),
]


@pytest.mark.parametrize(("path", "text", "old", "new"), SET)
def test_only_the_text_changes(path: tuple[str | int, ...], text: str, old: str, new: str) -> None:
    assert FILE.count(old) == 1
    assert with_texts(FILE.encode(), "f.yaml", {path: text}) == FILE.replace(old, new).encode()


def test_several_texts_are_set_at_once_and_line_ends_stay() -> None:
    file = b"x: one\r\n\r\ny: two # 2\r\n"
    wanted = b"x: longer\r\n\r\ny: three # 2\r\n"
    assert with_texts(file, "f.yaml", {("x",): "longer", ("y",): "three"}) == wanted


REFUSED = {
    "of an alias": "x: &n one\ny: *n\n",
    "with an anchor in use": "y: &n one\nx: *n\n",
    "in merged mappings": "x: &m {y: one}\nz: {<<: *m}\ny: {<<: *m}\n",
    "on several lines": "y: |\n  one\n",
    "no text": "y: [one]\n",
    "missing": "x: one\n",
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_a_text_that_cannot_be_set_alone_is_refused(text: str) -> None:
    with pytest.raises(PackageError, match=r"f\.yaml"):
        with_texts(text.encode(), "f.yaml", {("y",): "two"})


def test_a_text_that_others_take_by_an_alias_is_refused() -> None:
    text = b"x: {name: &n one}\ny: {name: *n}\n"
    with pytest.raises(PackageError, match="anchor"):
        with_texts(text, "f.yaml", {("y", "name"): "two"})
