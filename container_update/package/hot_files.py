"""A package's HEAT templates: which files belong to the flavour. Pure but for the package itself.

Source: Tacker's user guide for VNF packages. They lie in ``BaseHOT/<flavour>/``, at the package's
root or in another folder of it: one top template, and what it nests beside it or in ``nested/``.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from typing import Protocol

from container_update.model.errors import PackageError
from container_update.package import hot
from container_update.package.hot import Body
from container_update.package.yaml11 import Limits

_ENDINGS = (".yaml", ".yml")


class Files(Protocol):
    """An opened package, as far as templates need it."""

    source: str

    def names(self) -> Iterable[str]:
        """The paths of all files."""

    def read(self, path: str) -> bytes:
        """The bytes of a file."""


def base_hot(package: Files, flavour_id: str, limits: Limits | None = None) -> Body:
    """The top template of a flavour, with the files that it uses; no parameters yet.

    :param limits: what a template may ask for; by default what any YAML may.
    :raises PackageError: there is none, there are two, or one is no template.
    """
    folder = _folder(package, flavour_id)
    texts = {
        name: package.read(name).decode()
        for name in sorted(package.names())
        if name.startswith(folder)
    }
    beside = {
        name: hot.parse(text, name, limits)
        for name, text in texts.items()
        if name.endswith(_ENDINGS) and "/" not in name[len(folder) :]
    }
    used = {kind for template in beside.values() for kind in _types(template)}
    tops = [name for name in beside if posixpath.basename(name) not in used]
    if len(tops) != 1:
        raise PackageError(
            f"{package.source}: expected one top template in {folder}, found "
            f"{', '.join(tops) or 'none'}: put nested ones into {folder}nested/"
        )
    files = {_as_used(name, folder, used): text for name, text in texts.items() if name != tops[0]}
    return Body(beside[tops[0]], files=files)


def _folder(package: Files, flavour_id: str) -> str:
    ending = f"BaseHOT/{flavour_id}/"
    found = {
        name[: name.index(ending) + len(ending)]
        for name in package.names()
        if name.startswith(ending) or f"/{ending}" in name
    }
    if len(found) != 1:
        raise PackageError(
            f"{package.source}: expected one folder {ending} with the flavour's HEAT templates, "
            f"found {', '.join(sorted(found)) or 'none'}"
        )
    return found.pop()


def _types(template: Mapping[str, object]) -> set[str]:
    """The nested templates that resources, or members of groups, are made from."""
    found: set[str] = set()
    waiting: list[object] = [template["resources"]]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            kind = value.get("type")
            found |= {kind} if isinstance(kind, str) and hot.is_nested(kind) else set()
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return found


def _as_used(name: str, folder: str, used: set[str]) -> str:
    """The name that templates call a file by: its base name, unless they say a path."""
    path = name[len(folder) :]
    return path if path in used else posixpath.basename(path)
