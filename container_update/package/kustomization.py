# SPDX-License-Identifier: Apache-2.0
"""Kustomizations: which folders are one, and a refusal of those that name another host.

kubectl would fetch it: who only looks at a package would send requests that its author chooses, and
the package would be another one each time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from container_update.model.errors import PackageError
from container_update.model.options import Options
from container_update.package import yaml11
from container_update.package.findings import Reading

FILES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_REMOTE = re.compile(r"(?:git::)?[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_CONTENT = frozenset(
    (
        *("annotations", "buildmetadata", "commonannotations", "commonlabels", "generatoroptions"),
        *("images", "labels", "literals", "metadata", "nameprefix", "namespace", "namesuffix"),
        *("options", "patch", "replicas", "vars"),
    )
)
"""Fields whose texts name no files. As in Go's JSON, letters count as the same in all their cases,
also where Unicode has more than two of one."""
_PLUGINS = frozenset(("generators", "transformers", "validators"))
"""Fields with plugins, each a file or its content, which say what kubectl loads besides."""


def is_one(folder: Path) -> bool:
    """Tell whether a folder is a kustomization."""
    return any((folder / name).is_file() for name in FILES)


def refuse_remote(folder: Path, options: Options) -> None:
    """Raise PackageError where a kustomization, or one that it is made of, names a URL.

    :param folder: its own, without links.
    """
    seen, left = set[Path](), [folder]
    while left:
        here = left.pop()
        if here in seen:
            continue
        seen.add(here)
        file = next(here / name for name in FILES if (here / name).is_file())
        for fields, text in _texts_of(file, _read(file, options), options):
            _refuse_url(file, fields, text)
            path, is_plugin = _existing(here, text), fields[0].casefold() in _PLUGINS
            if is_plugin:
                _check_plugin(file, fields, text, path, options)
            elif path is not None and path.is_dir() and is_one(path):
                left.append(path)


def _check_plugin(
    file: Path, fields: tuple[str, ...], text: str, path: Path | None, options: Options
) -> None:
    """Raise PackageError where a plugin names a URL, or is a kustomization, which may make one."""
    if path is not None and path.is_dir():
        raise PackageError(
            f"{file}: {'.'.join(fields)}: expected files, found the folder {text!a:.200}: name the "
            "files in it, or render the kustomization yourself: kubectl kustomize"
        )
    plugins = [(file, text.encode()), *([(path, _read(path, options))] if path else [])]
    for place, content in plugins:
        for more, each in _texts_of(place, content, options):
            _refuse_url(place, (*fields, *filter(None, more)), each)


def _refuse_url(file: Path, fields: tuple[str, ...], text: str) -> None:
    """Raise PackageError for a text that is a URL, perhaps under a key: ``KEY=URL``."""
    if any(_REMOTE.match(each) for each in (text, text.partition("=")[2])):
        raise PackageError(
            f"{file}: {'.'.join(fields)}: expected files and folders of the package, found "
            f"{text!a:.200}: nothing is fetched for a kustomization: put a copy of it into the "
            "package, or render it yourself: kubectl kustomize"
        )


def _existing(folder: Path, text: str) -> Path | None:
    """Return the file or folder that a text names; None where there is none."""
    try:
        path = (folder / text).resolve()
        return path if path.exists() else None
    except (OSError, ValueError, RuntimeError):  # too long, with a NUL, a loop of links
        return None


def _read(file: Path, options: Options) -> bytes:
    try:
        with file.open("rb") as opened:
            text = opened.read(options.def_file_bytes + 1)
    except OSError as error:
        raise PackageError(f"{file} cannot be read: {error.strerror}") from error
    yaml11.check_size(len(text), str(file), options)
    return text


def _texts_of(
    file: Path, content: bytes, options: Options
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the texts in YAML that may name files, each with the fields that lead to it."""
    parser = yaml11.Yaml11Parser(str(file), options, Reading())
    for document in parser.documents(yaml11.with_line_ends(content)):
        yield from _texts(document.value)


def _texts(value: Any, fields: tuple[str, ...] = ("",)) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the texts of a value that may name files, each with the fields that lead to it."""
    if isinstance(value, dict):
        for name, below in value.items():
            if str(name).casefold() not in _CONTENT:
                yield from _texts(below, (*filter(None, fields), str(name)))
    elif isinstance(value, list):
        for below in value:
            yield from _texts(below, fields)
    elif isinstance(value, str):
        yield fields, value
