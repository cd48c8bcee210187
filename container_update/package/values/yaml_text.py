"""Set texts in a YAML file and leave the rest as it is: comments, order, indentation. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from container_update.model.errors import PackageError
from container_update.model.options import DEFAULTS
from container_update.package import hot, yaml11
from container_update.package.hot import Path
from container_update.package.values.scalars import scalar

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")


def with_texts(content: bytes, source: str, texts: Mapping[Path, str]) -> bytes:
    """Return a YAML file of one document with other texts at some paths.

    :param content: the file.
    :param source: its path, for messages.
    :param texts: path from the document's root to the text; there is one already.
    :raises PackageError: a text cannot be set without something else changing with it.
    """
    before = content.decode()
    root = yaml.compose(before, Loader=yaml.SafeLoader)
    after = before
    ends = {path: _span(root, path, source) for path in texts}
    for path, (start, end) in sorted(ends.items(), key=lambda item: item[1], reverse=True):
        after = after[:start] + _scalar(texts[path], before[start:end]) + after[end:]
    expected = _document(before, source)
    for path, text in texts.items():
        expected = hot.set_at(expected, path, text)
    if _document(after, source) != expected:
        raise _refused(source, next(iter(texts)))
    return after.encode()


def _document(text: str, source: str) -> dict[str, Any]:
    return yaml11.mapping(text.encode(), source, DEFAULTS, "a mapping")


def _span(root: Any, path: Path, source: str) -> tuple[int, int]:
    """Return where the scalar at a path begins and ends in the text."""
    node = root
    for step in path:
        if isinstance(node, yaml.MappingNode):
            node = next((value for key, value in node.value if key.value == str(step)), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            node = node.value[step]
        else:
            node = None
    is_on_one_line = node is not None and node.start_mark.line == node.end_mark.line
    if not isinstance(node, yaml.ScalarNode) or not is_on_one_line:
        raise _refused(source, path)
    return node.start_mark.index, node.end_mark.index


def _scalar(text: str, before: str) -> str:
    """Return a text as a YAML scalar, quoted if it has to be, or as the one before was."""
    is_plain = _PLAIN.fullmatch(text) is not None and scalar(text) == text
    if is_plain and before[:1] in ("'", '"'):
        return f"{before[0]}{text}{before[0]}"
    return text if is_plain else json.dumps(text, ensure_ascii=False)


def _refused(source: str, path: Path) -> PackageError:
    name = ".".join(map(str, path))
    return PackageError(
        f"{source}: expected a text on one line, without anchor or merge key, at {name}: write it "
        "so, or change it by hand"
    )
