# SPDX-License-Identifier: Apache-2.0
"""The line of each field of a YAML file, for messages.

Most fields of a package are never named in a message. So the file is read a second time, and only
as far as the document with the field, when a line is first asked for; until then its text is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from container_update.model.objects import FieldPath
from container_update.package import yaml11

_NONE: dict[str | int, _Field] = {}
"""The fields in a scalar."""


@dataclass(slots=True)
class _Field:
    """A field: the line of its key or list entry, and the fields in it."""

    line: int
    parts: dict[str | int, _Field]


class FieldLines:
    """The lines of a YAML text that :mod:`container_update.package.yaml11` accepts."""

    def __init__(self, text: bytes, lines_before: int = 0) -> None:
        """Keep a text to read it when a line is asked for.

        :param lines_before: the number of lines of the file before the text, which is a part of it.
        """
        self._lines_before = lines_before
        self._documents: list[_Field] = []
        self._rest = _documents(text)

    def line(self, document: int, path: FieldPath) -> int:
        """Return the line of a field, from 1; that of the nearest field around it if it is absent.

        :param document: the number of its document, from 0; empty ones count.
        """
        while len(self._documents) <= document:
            self._documents.append(next(self._rest))
        found = self._documents[document]
        for step in path:
            if step not in found.parts:
                break
            found = found.parts[step]
        return self._lines_before + found.line


def _documents(text: bytes) -> Iterator[_Field]:
    events = iter(yaml.parse(text, Loader=yaml11.LOADER))
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            yield _field(next(events), events, {})


def _field(event: Any, events: Iterator[Any], anchors: dict[str, _Field]) -> _Field:
    """Return the value that begins with this event, with the lines of all that is in it."""
    read = _Field(event.start_mark.line + 1, _NONE)
    if isinstance(event, yaml.AliasEvent):
        read.parts = anchors[str(event.anchor)].parts
        return read
    if isinstance(event, yaml.SequenceStartEvent):
        entries = enumerate(_until(yaml.SequenceEndEvent, events))
        read.parts = {index: _field(entry, events, anchors) for index, entry in entries}
    elif isinstance(event, yaml.MappingStartEvent):
        read.parts = _mapping(events, anchors)
    if event.anchor:
        anchors[event.anchor] = read
    return read


def _mapping(events: Iterator[Any], anchors: dict[str, _Field]) -> dict[str | int, _Field]:
    parts: dict[str | int, _Field] = {}
    for key in _until(yaml.MappingEndEvent, events):
        value = _field(next(events), events, anchors)
        parts[getattr(key, "value", "")] = _Field(key.start_mark.line + 1, value.parts)
    merged = parts.pop("<<", _Field(0, _NONE)).parts  # a mapping, or a list: its first ones count
    sources = [entry.parts for entry in merged.values()] if 0 in merged else [merged]
    for source in sources:
        parts = {**source, **parts}
    return parts


def _until(end: type, events: Iterator[Any]) -> Iterator[Any]:
    for event in events:
        if isinstance(event, end):
            return
        yield event
