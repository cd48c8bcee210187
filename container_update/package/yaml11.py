# SPDX-License-Identifier: Apache-2.0
"""YAML text to JSON values, read the way ``kubectl`` reads it.

Kubernetes converts YAML to JSON with Go's YAML 1.1 parser (sigs.k8s.io/yaml), which reads unquoted
scalars differently from Python's parser: ``0o644`` is a number, ``08`` too, ``2026-01-01`` is text,
``1.0`` is sent as ``1``. A difference would look like a change of the object, so the values are
built here from the parser's events. Depth, number of values and length of texts are counted
meanwhile, with aliases expanded as JSON will have them, so that memory is limited too.

There are two exceptions, for what Tacker too reads otherwise when it creates the objects: ``y`` and
``n`` are text, and a key keeps its value where ``<<`` after it merges another one. (``yes``,
``no``, ``on`` and ``off`` are booleans to all of them.)

Of a key that is twice in one mapping the last one counts, and the reading has a warning. Where
``kubectl`` guesses, this is stricter: a key that is not text, number or boolean, and every tag
except YAML's own scalar tags are errors. ``test_yaml.py`` compares it with ``kubectl``, and has the
whole list of what is refused by only one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import chain
from typing import Any

import yaml

from container_update.model.errors import PackageError
from container_update.model.objects import FieldPath, Source
from container_update.model.options import Options, size_text
from container_update.model.schema import describe
from container_update.package.findings import Finding, Reading, Size

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_MERGE = object()
"""The key of an unquoted ``<<``."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_LONGEST_KEY = 1024
_TAGGED = "a tag that JSON has no value for: remove it, or quote the text if it begins with !"
"""Messages never show the names of tags, anchors and aliases: they may be unquoted passwords."""
_TEXT = ("str", "timestamp")
_TYPES: dict[str, tuple[type, ...]] = {
    "": (str, int, float, bool, type(None)),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "null": (type(None),),
}
"""The types that a scalar may have with each of YAML's own tags; '' is no tag."""


@dataclass(frozen=True)
class Document:
    """One YAML document."""

    value: Any
    """A JSON value: dict, list, str, int, float, bool or None."""
    line: int
    """The line where it begins, from 1."""
    lines: dict[int, int]
    """``id()`` of each mapping in *value* to the line where it begins."""
    flaw: PackageError | None = None
    """What JSON does not have is missing in *value*: the error that says what and where."""

    def line_of(self, value: object) -> int:
        """Return the line where a mapping of this document begins, or else that of the document."""
        return self.lines.get(id(value), self.line)


def check_size(size: int, path: str, options: Options) -> None:
    """Raise PackageError where a YAML file has more bytes than the options allow."""
    if size > options.def_file_bytes:
        raise PackageError(
            f"{path}: expected a YAML file of at most {size_text(options.def_file_bytes)} (option "
            f"def_file_bytes), found {size_text(size)}: split the file"
        )


def with_line_ends(text: bytes) -> bytes:
    """Return the text with LF at the end of each line, the last one too.

    ``kubectl`` parses what it has put together so out of single lines (YAMLReader of
    k8s.io/apimachinery); so a block scalar at the end of a file always ends with a line break.
    """
    lines = text.replace(b"\r\n", b"\n")
    return lines + b"\n" if lines and not lines.endswith(b"\n") else lines


def mapping(
    text: bytes, path: str, options: Options, content: str, reading: Reading | None = None
) -> dict[str, Any]:
    """Return the mapping that is the only document of a YAML text.

    :param reading: of the package, whose files have the limits on size in common.
    :raises PackageError: it is something else, invalid YAML, has a value that JSON does not have,
        or exceeds a limit; with path and line.
    """
    check_size(len(text), path, options)
    values = []
    for document in Yaml11Parser(path, options, reading or Reading()).documents(
        with_line_ends(text)
    ):
        if document.flaw:
            raise document.flaw
        values.append(document.value)
    if len(values) != 1 or not isinstance(values[0], dict):
        raise PackageError(f"{path}: expected one YAML document with {content}")
    return values[0]


def _as_in_file(error: yaml.MarkedYAMLError, text: bytes) -> yaml.MarkedYAMLError:
    """Return the mistake of a text if another document follows: not that it ends."""
    try:
        for _ in yaml.parse(text + b"---\n", Loader=LOADER):
            pass
    except yaml.MarkedYAMLError as in_file:
        return in_file
    return error


@dataclass
class _Value:
    """A complete value, with its size, which counts again for each alias."""

    value: Any
    line: int
    nodes: int = 1
    """Number of scalars, lists and mappings; ``characters`` is the length of the scalars."""
    characters: int = 0
    height: int = 0
    """Nesting levels."""


@dataclass
class _Collection(_Value):
    """A mapping or list under construction."""

    height: int = 1
    anchor: str | None = None
    key: Any = None
    awaits_value: bool = False
    merged: list[list[Any]] = field(default_factory=list)


class Yaml11Parser:
    """Parses a file, as a whole or part by part: builds values out of events, without recursion."""

    def __init__(self, path: str, options: Options, reading: Reading) -> None:
        self.path = path
        self.options = options
        self.reading = reading
        self.nodes = self.characters = 0
        self.lines_before = 0
        """The number of lines before the text that is parsed next."""
        self.line = 1
        """Where the scalar or collection begins that is being added, for messages."""
        reading.record(path)  # it may be read for the second time
        self.most_values = options.yaml_values - reading.values
        self.most_characters = options.yaml_characters - reading.characters
        self._reset()

    def _reset(self) -> None:
        self.stack: list[_Collection] = []
        self.anchors: dict[str, _Value | None] = {}
        self.lines: dict[int, int] = {}
        self.flaw: PackageError | None = None
        self.root = _Value(None, self.line)

    def documents(self, text: bytes, *, ends_before_another: bool = False) -> Iterator[Document]:
        """Yield the documents of the file's next part.

        :param ends_before_another: a line that begins another document follows.
        :raises PackageError: as :func:`mapping`.
        """
        try:
            yield from self._run(text)
        except yaml.MarkedYAMLError as error:
            in_file = _as_in_file(error, text) if ends_before_another else error
            raise self._invalid(in_file) from None
        except (yaml.YAMLError, UnicodeError):
            raise PackageError(
                f"{self.path}: invalid YAML: the file must be text in UTF-8 without control "
                "characters"
            ) from None
        finally:
            self.reading.record(self.path, self.nodes, self.characters)

    def take(self, size: Size) -> bool:
        """Count a part that need not be parsed; tell whether that keeps within the limits."""
        values, characters = self.nodes + size.values, self.characters + size.characters
        if values > self.most_values or characters > self.most_characters:
            return False
        self.nodes, self.characters = values, characters
        self.lines_before += size.lines
        self.reading.record(self.path, values, characters)
        return True

    def _invalid(self, error: yaml.MarkedYAMLError) -> PackageError:
        mark = error.problem_mark or error.context_mark
        location = f"{self.path}:{self._line(mark)}" if mark else self.path
        problem = ", ".join(filter(None, (error.context, error.problem)))
        # not from the error, whose text may show a secret
        return PackageError(f"{location}: invalid YAML: {problem}")

    def _line(self, mark: Any) -> int:
        return self.lines_before + int(mark.line) + 1

    def _run(self, text: bytes) -> Iterator[Document]:
        event: Any
        for event in yaml.parse(text, Loader=LOADER):
            self.line = self._line(event.start_mark)
            kind = type(event)
            if kind is yaml.ScalarEvent:
                length = len(event.value)
                self._count(1, length, 0)
                self._add(_Value(self._scalar(event), self.line, 1, length), event.anchor)
            elif kind in (yaml.MappingEndEvent, yaml.SequenceEndEvent):
                self._close()
            elif kind in (yaml.MappingStartEvent, yaml.SequenceStartEvent):
                self._open(event)
            elif kind is yaml.AliasEvent:
                self._add(self._alias(str(event.anchor)), None)
            elif kind is yaml.DocumentStartEvent:
                self._reset()
            elif kind is yaml.DocumentEndEvent:
                yield Document(self.root.value, self.root.line, self.lines, self.flaw)
            elif kind is yaml.StreamEndEvent:
                self.lines_before += event.start_mark.line

    def _error(self, problem: str) -> PackageError:
        return PackageError(f"{self.path}:{self.line}: {problem}")

    def _record_flaw(self, problem: str) -> None:
        """Record that the document has a value or a key that JSON does not have; the first one."""
        self.flaw = self.flaw or self._error(problem)

    def _count(self, nodes: int, characters: int, height: int) -> None:
        self.nodes += nodes
        self.characters += characters
        if self.nodes > self.most_values:
            raise self._limit_error("yaml_values", "values")
        if self.characters > self.most_characters:
            raise self._limit_error("yaml_characters", "characters")
        if len(self.stack) + height > self.options.yaml_depth:
            raise self._error(
                f"mappings and lists nested more than {self.options.yaml_depth} levels deep "
                "(option yaml_depth)"
            )

    def _limit_error(self, option: str, unit: str) -> PackageError:
        where = "in the YAML files of one package, with aliases expanded"
        return self._error(
            f"more than {getattr(self.options, option)} {unit} {where} (option {option})"
        )

    def _open(self, event: Any) -> None:
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", _TAG + ("map" if is_mapping else "seq")):
            self._record_flaw(_TAGGED)
        self._count(1, 0, 1)
        if event.anchor:
            self.anchors[event.anchor] = None
        self.stack.append(_Collection({} if is_mapping else [], self.line, anchor=event.anchor))

    def _close(self) -> None:
        frame = self.stack.pop()
        self.line = frame.line
        for source in chain.from_iterable(reversed(frame.merged)):  # the last "<<" counts first
            for key, value in source.items():
                frame.value.setdefault(key, value)
        if isinstance(frame.value, dict):
            self.lines[id(frame.value)] = frame.line
        self._add(frame, frame.anchor)

    def _add(self, item: _Value, anchor: str | None) -> None:
        if anchor:
            self.anchors[anchor] = item
        if not self.stack:
            self.root = item
            return
        frame = self.stack[-1]
        frame.nodes += item.nodes
        frame.characters += item.characters
        frame.height = max(frame.height, item.height + 1)
        if isinstance(frame.value, list):
            frame.value.append(item.value)
        elif frame.awaits_value:
            self._set(frame, item)
            frame.awaits_value = False
        else:
            frame.key = self._key(frame, item.value)
            frame.awaits_value = True

    def _set(self, frame: _Collection, item: _Value) -> None:
        if frame.key is not _MERGE:
            frame.value[frame.key] = item.value
            return
        sources = item.value if isinstance(item.value, list) else [item.value]
        for source in sources:
            if not isinstance(source, dict):
                raise self._error(
                    f"<< expects a mapping or a list of mappings, found {describe(source)}"
                )
        frame.merged.append(sources)

    def _key(self, frame: _Collection, key: Any) -> Any:
        if key is _MERGE:
            return key
        if isinstance(key, bool):
            key = str(key).lower()
        elif isinstance(key, int):
            key = str(key)
        elif isinstance(key, float) and key.is_integer() and abs(key) < 1e6:
            key = f"{key:g}"  # Go writes others with an exponent or in 32 bits
        elif not isinstance(key, str):
            self._record_flaw(f"a key must be text, found {describe(key)}: quote it")
            return ""
        if len(key) > _LONGEST_KEY or _CONTROL.search(key):
            raise self._error(
                f"expected a key of at most {_LONGEST_KEY} characters without control characters"
            )
        if key in frame.value:
            self.reading.note(
                Finding.warning(
                    Source(self.path, self.line),
                    f'the key "{key}" is twice in one mapping: the last one counts',
                    "remove one of them",
                )
            )
        return key

    def _alias(self, name: str) -> _Value:
        if name not in self.anchors:
            raise self._error("an alias without an anchor before it: quote text that begins with *")
        target = self.anchors[name]
        if target is None:
            raise self._error("an anchor contains itself")
        self._count(target.nodes, target.characters, target.height)
        copied = self._copy(target.value)
        return _Value(copied, self.line, target.nodes, target.characters, target.height)

    def _copy(self, value: Any) -> Any:
        """Copy a value for an alias, so that a change of one object does not change another."""
        if isinstance(value, list):
            return [self._copy(item) for item in value]
        if not isinstance(value, dict):
            return value
        copied = {key: self._copy(item) for key, item in value.items()}
        self.lines[id(copied)] = self.lines[id(value)]
        return copied

    def _scalar(self, event: Any) -> Any:
        quoted = event.tag is None and not event.implicit[0]
        if quoted or event.tag == "!":
            return event.value
        kind = (event.tag or "").removeprefix(_TAG)
        frame = self.stack[-1] if self.stack else None
        is_key = frame and isinstance(frame.value, dict) and not frame.awaits_value
        if is_key and (kind == "merge" or (kind == "" and event.value == "<<")):
            return _MERGE
        value = event.value if kind in _TEXT else self._type_scalar(kind, event.value)
        if isinstance(value, str):
            return self.reading.share(value)
        return value if is_key else _as_sent(value)

    def _type_scalar(self, kind: str, text: str) -> Any:
        """Return the value of an unquoted scalar; None for one that JSON does not have."""
        if kind == "binary":
            return self._record_flaw(
                "!!binary cannot be sent as JSON: write the base64 text under binaryData"
            )
        if kind not in _TYPES:
            return self._record_flaw(_TAGGED)
        try:
            value = _read_unquoted(text)
        except ValueError as error:
            return self._record_flaw(str(error))
        if type(value) not in _TYPES[kind]:
            return self._record_flaw(
                f"expected a value that fits the tag !!{kind}, found {describe(value)}"
            )
        return value


# --- unquoted scalars ---------------------------------------------------------------------------

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_INTEGER = re.compile(
    r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[oO]?([0-7]+)|0[bB]([01]+)|(?<![-+])0b([-+][01]+)"
    r"|(0|[1-9]\d*))",
    re.ASCII,
)
_BASES = (16, 8, 2, 2, 10)
"""The base of each group of _INTEGER after the first one, the sign."""
_FLOAT = re.compile(r"[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?", re.ASCII)
_NO_NUMBER_IN_JSON = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


def _read_unquoted(text: str) -> Any:
    """Return an unquoted scalar as ``kubectl`` reads it; ValueError where JSON has none of it."""
    if text in _WORDS:
        return _WORDS[text]
    if _NO_NUMBER_IN_JSON.fullmatch(text):
        raise ValueError("JSON has no infinity and no NaN: quote the value")
    digits = text.replace("_", "") if text[:1] in "+-0123456789" else text
    integer = _INTEGER.fullmatch(digits)
    if integer and len(digits) <= 70:  # 64 bits, even in base 2
        base, group = next((b, g) for b, g in zip(_BASES, integer.groups()[1:], strict=True) if g)
        number = int(integer[1] + group, base)
        if -(2**63) <= number < 2**64:
            return number if number < 2**63 else float(number)
    if _FLOAT.fullmatch(digits) and abs(value := float(digits)) != float("inf"):
        return value
    return text


def _as_sent(value: Any) -> Any:
    """Return a scalar as Go writes it in JSON: a whole number below 1e21 without a fraction."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return int(Decimal(repr(value)))
    return value


# --- the line of each field ---------------------------------------------------------------------

_NONE: dict[str | int, _FieldLine] = {}
"""The fields in a scalar."""


@dataclass(slots=True)
class _FieldLine:
    """A field: the line of its key or list entry, and the fields in it."""

    line: int
    parts: dict[str | int, _FieldLine]


class FieldLines:
    """The lines of the fields in a YAML text that was accepted, for messages.

    Most fields of a package are never named in one. So the file is read a second time, and only as
    far as the document with the field, when a line is first asked for; until then its text is kept.
    """

    def __init__(self, text: bytes, lines_before: int = 0) -> None:
        """Keep a part of a file, below so many lines, to read it when a line is asked for."""
        self._text, self._lines_before = text, lines_before
        self._documents: list[_FieldLine] = []

    @cached_property
    def _rest(self) -> Iterator[_FieldLine]:
        return _documents(self._text)

    def line(self, document: int, path: FieldPath) -> int:
        """Return the line of a field, from 1; that of the nearest field around it if it is absent.

        :param document: the number of its document, from 0; empty ones count.
        """
        while len(self._documents) <= document:
            self._documents.append(next(self._rest))
        node = self._documents[document]
        for step in path:
            if step not in node.parts:
                break
            node = node.parts[step]
        return self._lines_before + node.line


def _documents(text: bytes) -> Iterator[_FieldLine]:
    events = iter(yaml.parse(text, Loader=LOADER))
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            yield _field(next(events), events, {})


def _field(event: Any, events: Iterator[Any], anchors: dict[str, _FieldLine]) -> _FieldLine:
    """Return the value that begins with this event, with the lines of all that is in it."""
    read = _FieldLine(event.start_mark.line + 1, _NONE)
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


def _mapping(events: Iterator[Any], anchors: dict[str, _FieldLine]) -> dict[str | int, _FieldLine]:
    parts: dict[str | int, _FieldLine] = {}
    for key in _until(yaml.MappingEndEvent, events):
        value = _field(next(events), events, anchors)
        parts[getattr(key, "value", "")] = _FieldLine(key.start_mark.line + 1, value.parts)
    merged = parts.pop(
        "<<", _FieldLine(0, _NONE)
    ).parts  # a mapping, or a list: its first ones count
    sources = [entry.parts for entry in merged.values()] if 0 in merged else [merged]
    for key, field_line in ((key, value) for source in sources for key, value in source.items()):
        parts.setdefault(key, field_line)
    return parts


def _until(end: type, events: Iterator[Any]) -> Iterator[Any]:
    for event in events:
        if isinstance(event, end):
            return
        yield event
