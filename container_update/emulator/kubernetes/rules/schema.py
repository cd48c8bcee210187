# SPDX-License-Identifier: Apache-2.0
"""The structures of the built-in kinds: which fields exist, what identifies the elements of a list.

A server decodes into them: it drops what is no field, and stores quantities in one form. What the
decoder says of a wrong type is in :mod:`shape`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.resources import Resource
from container_update.emulator.kubernetes.rules import quantity, structural

_TYPE = re.compile(r"(?P<open>[\[{]?)(?P<name>\w+)[\]}]?(?P<keys>[\w,]*)(?P<set>=?)(?P<whole>!?)")


@dataclass(frozen=True)
class Type:
    """The type of a field."""

    name: str
    """'text', 'bytes', 'number', 'flag', 'quantity', 'any', or the name of a structure."""
    is_list: bool = False
    is_map: bool = False
    keys: tuple[str, ...] = ()
    """The fields that identify the elements of a list; without any it has one owner."""
    is_set: bool = False
    """A list of texts, each with an owner of its own."""
    is_whole: bool = False
    """A map or a structure with one owner."""

    @functools.cached_property
    def element(self) -> Type:
        """The type of a list's elements or a map's values."""
        return Type(self.name, is_whole=self.name in _whole_structures())

    @functools.cached_property
    def fields(self) -> Mapping[str, Type] | None:
        """The fields of a structure; None for what has none."""
        return None if self.is_list or self.is_map else _structures().get(self.name)


def of_kind(kind: Resource, body: Json) -> Type | None:
    """Return the type of an object; None where it is not known: of custom and of old versions."""
    stated = body.get("apiVersion") or kind.api_version
    known = not kind.custom and kind.kind in _structures() and stated == kind.api_version
    return Type(kind.kind) if known else None


def stored_form(kind: Resource, body: Json) -> Json:
    """Return the object without unknown fields, its quantities as they are stored.

    :raises ApiError: 400 for a text that is no quantity.
    """
    root = of_kind(kind, body)
    if root is None:
        return body
    decoded: Json = _decode(root, body)
    return decoded


def unknown(kind: Resource, body: Json) -> list[str]:
    """Return the paths of the fields that the kind does not have."""
    if kind.custom:
        return structural.unknown(kind, body)
    root = of_kind(kind, body)
    return [] if root is None else list(_unknown(root, body, ""))


def _decode(kind: Type, value: Any) -> Any:
    if kind.is_list and isinstance(value, list):
        return [_decode(kind.element, entry) for entry in value]
    if kind.is_map and isinstance(value, dict):
        return {key: _decode(kind.element, entry) for key, entry in value.items()}
    fields = kind.fields
    if fields is not None and isinstance(value, dict):
        return {key: _decode(fields[key], each) for key, each in value.items() if key in fields}
    is_single = not kind.is_list and not kind.is_map
    return quantity.canonical(value) if is_single and kind.name == "quantity" else value


def _unknown(kind: Type, value: Any, path: str) -> Iterator[str]:
    if kind.is_list and isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _unknown(kind.element, entry, f"{path}[{index}]")
    elif kind.is_map and isinstance(value, dict):
        for key, entry in value.items():
            yield from _unknown(kind.element, entry, f"{path}.{key}")
    elif kind.fields is not None and isinstance(value, dict):
        for key, entry in value.items():
            place = f"{path}.{key}" if path else key
            if key in kind.fields:
                yield from _unknown(kind.fields[key], entry, place)
            else:
                yield place


@functools.cache
def _lines() -> tuple[tuple[str, ...], ...]:
    text = Path(__file__).with_name("fields.txt").read_text(encoding="utf-8")
    return tuple(tuple(line.split()) for line in text.splitlines() if not line.startswith("#"))


@functools.cache
def _whole_structures() -> frozenset[str]:
    return frozenset(name.rstrip("!") for name, *_ in _lines() if name.endswith("!"))


@functools.cache
def _structures() -> Mapping[str, Mapping[str, Type]]:
    return {name.rstrip("!"): dict(map(_field, fields)) for name, *fields in _lines()}


def _field(text: str) -> tuple[str, Type]:
    name, _, kind = text.partition(":")
    match = _TYPE.fullmatch(kind or "text")
    if match is None:
        raise ValueError(f"fields.txt: {text}")
    keys = tuple(match["keys"].split(",")) if match["keys"] else ()
    return name, Type(
        match["name"],
        is_list=match["open"] == "[",
        is_map=match["open"] == "{",
        keys=keys,
        is_set=bool(match["set"]),
        is_whole=bool(match["whole"])
        or (not match["open"] and match["name"] in _whole_structures()),
    )
