"""YAML text to JSON values, read the way ``kubectl`` reads it.

Kubernetes converts YAML to JSON with Go's YAML 1.1 parser (sigs.k8s.io/yaml), which reads unquoted
scalars differently from Python's parser: ``0o644`` is a number, ``08`` too, ``2026-01-01`` is text,
``1.0`` is sent as ``1``. A difference would look like a change of the object, so the values are
built here from the parser's events. Depth, number of values and length of texts are counted
meanwhile, with aliases expanded as JSON will have them, so that memory is limited too.

There are two exceptions, for what Tacker too reads otherwise when it creates the objects: ``y`` and
``n`` are text, and a key keeps its value where ``<<`` after it merges another one. (``yes``,
``no``, ``on`` and ``off`` are booleans to all of them.)

Where ``kubectl`` guesses, this is stricter: a key that occurs twice, a key that is not text, number
or boolean, and every tag except YAML's own scalar tags are errors. ``test_yaml.py`` compares it
with ``kubectl``, and has the whole list of what is refused by only one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import yaml

from container_update.model.errors import PackageError
from container_update.model.options import Options

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_MERGE = object()
"""The key of an unquoted ``<<``."""

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
_NAMES = {dict: "a mapping", list: "a list", str: "text", bool: "a boolean", type(None): "nothing"}


@dataclass(frozen=True)
class Document:
    """One YAML document."""

    value: Any
    """A JSON value: dict, list, str, int, float, bool or None."""
    line: int
    """The line where it begins, from 1."""
    lines: dict[int, int]
    """``id()`` of each mapping in *value* to the line where it begins."""

    def line_of(self, value: object) -> int:
        """Return the line where a mapping of this document begins, or else that of the document."""
        return self.lines.get(id(value), self.line)


class Usage:
    """How much the YAML files of one package hold; a file that is read again counts once."""

    def __init__(self) -> None:
        self.values = self.characters = 0
        self._files: dict[str, tuple[int, int]] = {}

    def record(self, path: str, values: int = 0, characters: int = 0) -> None:
        """Record what a file holds, instead of what was recorded for it before."""
        before = self._files.get(path, (0, 0))
        self._files[path] = values, characters
        self.values += values - before[0]
        self.characters += characters - before[1]


def documents(
    text: bytes,
    path: str,
    options: Options,
    *,
    usage: Usage | None = None,
    ends_last_line: bool = True,
) -> Iterator[Document]:
    """Yield each document of a YAML text, empty ones too.

    :param path: the file, for messages.
    :param usage: of the files that have the limits on size in common with this one.
    :param ends_last_line: give the last line a line end, as ``kubectl`` does, if it has none.
    :raises PackageError: invalid YAML, a value that JSON does not have, or a limit exceeded; with
        path and line.
    """
    if len(text) > options.def_file_bytes:
        raise PackageError(
            f"{path}: expected a YAML file of at most {options.def_file_bytes} bytes (option "
            f"def_file_bytes), found {len(text)}: split the file"
        )
    usage = usage or Usage()
    usage.record(path)  # it may be read for the second time
    builder = _Builder(path, options, usage)
    try:
        yield from builder.run(_lines(text) if ends_last_line else text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        location = f"{path}:{_line(mark)}" if mark else path
        problem = ", ".join(filter(None, (error.context, error.problem)))
        # not from the error, whose text may show a secret
        raise PackageError(f"{location}: invalid YAML: {problem}") from None
    except (yaml.YAMLError, UnicodeError):
        raise PackageError(
            f"{path}: invalid YAML: the file must be text in UTF-8 without control characters"
        ) from None
    finally:
        usage.record(path, builder.nodes, builder.characters)


def _lines(text: bytes) -> bytes:
    """Return the text with LF at the end of each line, the last one too.

    ``kubectl`` parses what it has put together so out of single lines (YAMLReader of
    k8s.io/apimachinery); so a block scalar at the end of a file always ends with a line break.
    """
    lines = text.replace(b"\r\n", b"\n")
    return lines + b"\n" if lines and not lines.endswith(b"\n") else lines


def mapping(
    text: bytes, path: str, options: Options, content: str, usage: Usage | None = None
) -> dict[str, Any]:
    """Return the mapping that is the only document of a YAML text.

    :param path: the file, for messages.
    :param content: what the mapping should be, for messages.
    :param usage: as in :func:`documents`.
    :raises PackageError: it is something else, or as :func:`documents`.
    """
    values = [document.value for document in documents(text, path, options, usage=usage)]
    if len(values) != 1 or not isinstance(values[0], dict):
        raise PackageError(f"{path}: expected one YAML document with {content}")
    return values[0]


def _line(mark: Any) -> int:
    return int(mark.line) + 1


def describe(value: object) -> str:
    """Return the kind of a value in words, for messages; never the value itself."""
    return _NAMES.get(type(value), "a number")


def scalar(text: str) -> Any:
    """Return the value of an unquoted YAML scalar, as ``kubectl`` reads it.

    An integer that does not fit into 64 bits with a sign is a float.

    :raises ValueError: a number that JSON does not have.
    """
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
    merged: list[Any] = field(default_factory=list)


class _Builder:
    """Builds values out of parser events, without recursion."""

    def __init__(self, path: str, options: Options, usage: Usage) -> None:
        self.path = path
        self.options = options
        self.usage = usage
        self.nodes = self.characters = 0
        self.line = 1
        """Where the scalar or collection begins that is being added, for messages."""
        self._reset()

    def _reset(self) -> None:
        self.stack: list[_Collection] = []
        self.anchors: dict[str, _Value | None] = {}
        self.lines: dict[int, int] = {}
        self.root = _Value(None, self.line)

    def run(self, text: bytes) -> Iterator[Document]:
        for event in yaml.parse(text, Loader=LOADER):
            self.line = _line(event.start_mark)
            if isinstance(event, yaml.DocumentStartEvent):
                self._reset()
            elif isinstance(event, yaml.DocumentEndEvent):
                yield Document(self.root.value, self.root.line, self.lines)
            elif isinstance(event, yaml.ScalarEvent):
                length = len(event.value)
                self._count(1, length, 0)
                self._add(_Value(self._scalar(event), self.line, 1, length), event.anchor)
            elif isinstance(event, yaml.AliasEvent):
                self._add(self._alias(str(event.anchor)), None)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._open(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._close()

    def _error(self, problem: str) -> PackageError:
        return PackageError(f"{self.path}:{self.line}: {problem}")

    def _count(self, nodes: int, characters: int, height: int) -> None:
        self.nodes += nodes
        self.characters += characters
        self._limit(self.usage.values + self.nodes, "yaml_values", "values")
        self._limit(self.usage.characters + self.characters, "yaml_characters", "characters")
        if len(self.stack) + height > self.options.yaml_depth:
            raise self._error(
                f"mappings and lists nested more than {self.options.yaml_depth} levels deep "
                "(option yaml_depth)"
            )

    def _limit(self, found: int, option: str, unit: str) -> None:
        limit = getattr(self.options, option)
        if found > limit:
            where = "in the YAML files of one package, with aliases expanded"
            raise self._error(f"more than {limit} {unit} {where} (option {option})")

    def _open(self, event: Any) -> None:
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", _TAG + ("map" if is_mapping else "seq")):
            raise self._error(_TAGGED)
        self._count(1, 0, 1)
        if event.anchor:
            self.anchors[event.anchor] = None
        self.stack.append(_Collection({} if is_mapping else [], self.line, anchor=event.anchor))

    def _close(self) -> None:
        frame = self.stack.pop()
        self.line = frame.line
        for source in frame.merged:
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
        frame.merged = [*sources, *frame.merged]

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
            raise self._error(f"a key must be text, found {describe(key)}: quote it")
        if len(key) > _LONGEST_KEY or _CONTROL.search(key):
            raise self._error(
                f"expected a key of at most {_LONGEST_KEY} characters without control characters"
            )
        if key in frame.value:
            raise self._error(f'the key "{key}" is twice in one mapping: remove one of them')
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
        value = event.value if kind in _TEXT else self._typed(kind, event.value)
        return value if is_key else _as_sent(value)

    def _typed(self, kind: str, text: str) -> Any:
        if kind == "binary":
            raise self._error(
                "!!binary cannot be sent as JSON: write the base64 text under binaryData"
            )
        if kind not in _TYPES:
            raise self._error(_TAGGED)
        try:
            value = scalar(text)
        except ValueError as error:
            raise self._error(str(error)) from error
        if type(value) not in _TYPES[kind]:
            raise self._error(
                f"expected a value that fits the tag !!{kind}, found {describe(value)}"
            )
        return value
