# SPDX-License-Identifier: Apache-2.0
"""The pictures of the documentation are of this code.

``python doc/pictures.py`` makes them anew: look at them before you commit them.
"""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.project.test_checks import ROOT

PICTURES = ROOT / "doc/source/pictures"
RECORDINGS = 3
"""At most: on a busy machine a row was missing once: of a step that ended as another one did."""


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    """The script."""
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "doc/pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def words(svg: str) -> list[str]:
    """Return the words of a picture; where its lines end may depend on the time a step took."""
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    return "".join(texts).replace("&#160;", " ").split()


@pytest.mark.thorough
def test_a_picture_of_a_terminal_has_the_words_that_it_shows_today(pictures: ModuleType) -> None:
    kept = {path.name: words(path.read_text("utf-8")) for path in PICTURES.glob("*.svg")}
    for _ in range(RECORDINGS):
        made = pictures.terminals()
        now = {name: words(svg) for name, svg in made.items()}
        if now == kept:
            break
    assert now == kept
    assert "$ container-update plan before after" in " ".join(words(made["plan.svg"]))


def test_a_photograph_is_of_the_page_as_it_is_today(pictures: ModuleType) -> None:
    today = pictures.sources()
    stale = [n for n, d in json.loads(pictures.SOURCES.read_text()).items() if today[n] != d]
    assert stale == [], "make them anew: python doc/pictures.py"
    assert {path.name for path in PICTURES.glob("*.png")} == today.keys()


@pytest.mark.parametrize("path", sorted(PICTURES.glob("*.svg")), ids=lambda path: path.name)
def test_a_picture_of_a_terminal_loads_nothing(path: Path) -> None:
    text = path.read_text("utf-8")
    assert "@font-face" not in text
    assert re.findall(r"""(?:src|href)=|url\((?!#)|@import""", text) == []
