"""YAML text to JSON values, read the way ``kubectl`` reads it.

Kubernetes turns YAML into JSON with Go's YAML 1.1 reader (sigs.k8s.io/yaml), and what that makes of
an unquoted scalar is not what Python's reader makes of it: ``0o644`` is a number, ``08`` too,
``2026-01-01`` stays text, ``1.0`` is sent as ``1``. A difference would show up as a change of the
object, so the values are built here, straight from the parser's events. That also keeps hostile
text in bounds: depth and the nodes that aliases stand for are counted on the way.

One word is read otherwise: ``y`` and ``n`` alone stay text, as Tacker reads them when it creates
the objects (and YAML 1.2 too), where ``kubectl`` makes booleans of them. ``yes``, ``no``, ``on``
and ``off`` are booleans to all of them.

Stricter than ``kubectl`` where it would guess: a key given twice, a key that is no text, number or
boolean, and every tag beyond YAML's own simple ones are errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from container_update.model.errors import PackageError

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_MERGE = object()
"""What a plain ``<<`` is as a key."""

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_INTEGER = re.compile(
    r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[oO]?([0-7]+)|0[bB]([01]+)|(0|[1-9]\d*))", re.ASCII
)
_BASES = (16, 8, 2, 10)
"""What each group of _INTEGER but its first, the sign, is written in."""
_FLOAT = re.compile(r"[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?", re.ASCII)
_NO_NUMBER_IN_JSON = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_LONGEST_KEY = 1024
_TAGGED = "this tag has no meaning in JSON: remove it, or quote a text with !"
"""Names of tags, anchors and aliases are not told: they may be passwords without quotes."""
_TEXT = ("str", "timestamp")
_TYPES: dict[str, tuple[type, ...]] = {
    "": (str, int, float, bool, type(None)),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "null": (type(None),),
}
"""What a scalar may turn out to be under each of YAML's own tags, '' being none."""
_NAMES = {dict: "a mapping", list: "a list", str: "text", bool: "a boolean", type(None): "nothing"}


@dataclass(frozen=True)
class Limits:
    """How much a YAML text may ask for before it is refused."""

    size: int = 8 * 1024 * 1024
    """Bytes of text."""
    depth: int = 100
    """Mappings and lists inside each other, aliases followed."""
    nodes: int = 500_000
    """Scalars, lists and mappings, each alias counted as all that it stands for."""


@dataclass(frozen=True)
class Document:
    """One YAML document."""

    value: Any
    """What JSON can say: dict, list, str, int, float, bool or None."""
    line: int
    """Where it begins, from 1."""
    lines: dict[int, int]
    """``id()`` of each mapping in *value* to the line where it begins."""

    def line_of(self, value: object) -> int:
        """Where a mapping of this document begins; else where the document does."""
        return self.lines.get(id(value), self.line)


def documents(text: bytes, path: str, limits: Limits) -> Iterator[Document]:
    """Each document of a YAML text, empty ones too.

    PackageError, with *path* and line, for text that is no YAML, that ``kubectl`` could not turn
    into JSON, or that goes over the limits.
    """
    if len(text) > limits.size:
        raise PackageError(
            f"{path}: a YAML file of at most {limits.size} bytes was expected, "
            f"this one has {len(text)}: divide it"
        )
    try:
        yield from _Builder(path, limits).run(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{_line(mark)}" if mark else path
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        raise PackageError(f"{where}: no valid YAML: {problem}") from None  # it may quote
    except (yaml.YAMLError, UnicodeError):
        raise PackageError(
            f"{path}: no valid YAML: the file must be text in UTF-8 without control characters"
        ) from None


def _line(mark: Any) -> int:
    return int(mark.line) + 1


def describe(value: object) -> str:
    """What kind of value this is, for messages; never the value itself."""
    return _NAMES.get(type(value), "a number")


def scalar(text: str) -> Any:
    """What an unquoted YAML scalar means to ``kubectl``.

    ValueError for the numbers that JSON does not have.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _NO_NUMBER_IN_JSON.fullmatch(text):
        raise ValueError("infinity and NaN are numbers that JSON does not have: quote them")
    digits = text.replace("_", "") if text[:1] in "+-0123456789" else text
    integer = _INTEGER.fullmatch(digits)
    if integer and len(digits) <= 70:  # 64 bits, even in base 2
        base, figures = next((b, g) for b, g in zip(_BASES, integer.groups()[1:], strict=True) if g)
        number = int(integer[1] + figures, base)
        if -(2**63) <= number < 2**64:
            return number
    if _FLOAT.fullmatch(digits) and abs(value := float(digits)) != float("inf"):
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    return text


@dataclass
class _Value:
    """A finished value: with what it weighs when an alias repeats it."""

    value: Any
    line: int
    nodes: int = 1
    height: int = 0


@dataclass
class _Frame:
    """A mapping or list under construction."""

    value: Any
    line: int
    anchor: str | None
    nodes: int = 1
    height: int = 1
    key: Any = None
    awaits_value: bool = False
    merged: list[Any] = field(default_factory=list)


class _Builder:
    """Builds values out of parser events, without recursion."""

    def __init__(self, path: str, limits: Limits) -> None:
        self.path = path
        self.limits = limits
        self.nodes = 0
        self._reset(1)

    def _reset(self, line: int) -> None:
        self.stack: list[_Frame] = []
        self.anchors: dict[str, _Value | None] = {}
        self.lines: dict[int, int] = {}
        self.root = _Value(None, line)

    def run(self, text: bytes) -> Iterator[Document]:
        for event in yaml.parse(text, Loader=_LOADER):
            line = _line(event.start_mark)
            if isinstance(event, yaml.DocumentStartEvent):
                self._reset(line)
            elif isinstance(event, yaml.DocumentEndEvent):
                yield Document(self.root.value, self.root.line, self.lines)
            elif isinstance(event, yaml.ScalarEvent):
                self._count(1, 0, line)
                self._add(_Value(self._scalar(event, line), line), event.anchor)
            elif isinstance(event, yaml.AliasEvent):
                self._add(self._alias(str(event.anchor), line), None)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._open(event, line)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._close()

    def _fail(self, line: int, problem: str) -> PackageError:
        return PackageError(f"{self.path}:{line}: {problem}")

    def _count(self, nodes: int, height: int, line: int) -> None:
        self.nodes += nodes
        if self.nodes > self.limits.nodes:
            raise self._fail(
                line, f"more than {self.limits.nodes} values, with aliases written out: divide it"
            )
        if len(self.stack) + height > self.limits.depth:
            raise self._fail(
                line, f"mappings and lists more than {self.limits.depth} deep inside each other"
            )

    def _open(self, event: Any, line: int) -> None:
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        allowed = _TAG + ("map" if is_mapping else "seq")
        if event.tag not in (None, "!", allowed):
            raise self._fail(line, _TAGGED)
        self._count(1, 1, line)
        if event.anchor:
            self.anchors[event.anchor] = None
        self.stack.append(_Frame({} if is_mapping else [], line, event.anchor))

    def _close(self) -> None:
        frame = self.stack.pop()
        for source in frame.merged:
            for key, value in source.items():
                frame.value.setdefault(key, value)
        if isinstance(frame.value, dict):
            self.lines[id(frame.value)] = frame.line
        self._add(_Value(frame.value, frame.line, frame.nodes, frame.height), frame.anchor)

    def _add(self, made: _Value, anchor: str | None) -> None:
        if anchor:
            self.anchors[anchor] = made
        if not self.stack:
            self.root = made
            return
        frame = self.stack[-1]
        frame.nodes += made.nodes
        frame.height = max(frame.height, made.height + 1)
        if isinstance(frame.value, list):
            frame.value.append(made.value)
        elif frame.awaits_value:
            self._set(frame, made)
            frame.awaits_value = False
        else:
            frame.key = self._key(frame, made)
            frame.awaits_value = True

    def _set(self, frame: _Frame, made: _Value) -> None:
        if frame.key is not _MERGE:
            frame.value[frame.key] = made.value
            return
        sources = made.value if isinstance(made.value, list) else [made.value]
        for source in sources:
            if not isinstance(source, dict):
                raise self._fail(
                    made.line, f"<< merges a mapping or a list of them, found {describe(source)}"
                )
        frame.merged.extend(sources)

    def _key(self, frame: _Frame, made: _Value) -> Any:
        key = made.value
        if key is _MERGE:
            return key
        if isinstance(key, bool):
            key = "true" if key else "false"
        elif isinstance(key, int):
            key = str(key)
        elif not isinstance(key, str):
            raise self._fail(made.line, f"a key must be text, found {describe(key)}: quote it")
        if len(key) > _LONGEST_KEY or _CONTROL.search(key):
            raise self._fail(
                made.line,
                f"a key is text of at most {_LONGEST_KEY} characters without control characters",
            )
        if key in frame.value:
            raise self._fail(
                made.line, f'the key "{key}" is given twice in one mapping: remove one of them'
            )
        return key

    def _alias(self, name: str, line: int) -> _Value:
        if name not in self.anchors:
            raise self._fail(line, "an alias refers to no anchor before it: quote a text with *")
        target = self.anchors[name]
        if target is None:
            raise self._fail(line, "an anchor contains itself")
        self._count(target.nodes, target.height, line)
        return _Value(self._copy(target.value), line, target.nodes, target.height)

    def _copy(self, value: Any) -> Any:
        """Each alias gets values of its own: a change of one object must not show in another."""
        if isinstance(value, list):
            return [self._copy(item) for item in value]
        if not isinstance(value, dict):
            return value
        copied = {key: self._copy(item) for key, item in value.items()}
        self.lines[id(copied)] = self.lines[id(value)]
        return copied

    def _scalar(self, event: Any, line: int) -> Any:
        quoted = event.tag is None and not event.implicit[0]
        if quoted or event.tag == "!":
            return event.value
        kind = (event.tag or "").removeprefix(_TAG)
        if self._at_key() and (kind == "merge" or (kind == "" and event.value == "<<")):
            return _MERGE
        return event.value if kind in _TEXT else self._typed(kind, event.value, line)

    def _at_key(self) -> bool:
        if not self.stack:
            return False
        frame = self.stack[-1]
        return isinstance(frame.value, dict) and not frame.awaits_value

    def _typed(self, kind: str, text: str, line: int) -> Any:
        if kind == "binary":
            raise self._fail(
                line, "!!binary cannot be sent as JSON: write the base64 text, under binaryData"
            )
        if kind not in _TYPES:
            raise self._fail(line, _TAGGED)
        try:
            value = scalar(text)
        except ValueError as error:
            raise self._fail(line, str(error)) from error
        if type(value) not in _TYPES[kind]:
            raise self._fail(line, f"the tag !!{kind} is on {describe(value)}")
        return value
