# SPDX-License-Identifier: Apache-2.0
"""Kustomizations: which folders are one, and a refusal of those that name what is on another host.

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
"""Fields whose texts name no files, in lower case."""
_PLUGINS = frozenset(("generators", "transformers", "validators"))
"""Fields whose files say what kubectl loads besides."""
_DATA = frozenset(("env", "envs", "files"))
"""Fields whose files are content, of a ConfigMap perhaps under a key: ``KEY=FILE``."""


def is_one(folder: Path) -> bool:
    """Tell whether a folder is a kustomization."""
    return any((folder / name).is_file() for name in FILES)


def refuse_remote(folder: Path, options: Options) -> None:
    """Raise PackageError where a kustomization, or one that it is made of, names a URL.

    :param folder: its own, without links.
    """
    seen, left = set[Path](), [(folder, False)]
    while left:
        here, is_plugin = left.pop()
        if here in seen:
            continue
        seen.add(here)
        file = here if here.is_file() else next(here / n for n in FILES if (here / n).is_file())
        parser = yaml11.Yaml11Parser(str(file), options, Reading())
        for document in parser.documents(yaml11.ended(_read(file, options))):
            for fields, text in _texts(document.value):
                configures = is_plugin or fields[0].lower() in _PLUGINS
                is_data = fields[-1].lower() in _DATA
                named = text.partition("=")[2] or text if is_data else text
                is_inline = configures and "\n" in text
                if _REMOTE.search(text) if is_inline else _REMOTE.match(named):
                    raise PackageError(
                        f"{file}: {'.'.join(fields)}: expected files and folders of the package, "
                        f"found {text!a:.200}: nothing is fetched for a kustomization: put a copy "
                        "of it into the package, or render it yourself: kubectl kustomize"
                    )
                path = _existing(file.parent, text)
                if path is None:
                    continue
                if path.is_dir() and is_one(path):
                    left.append((path, configures))
                elif configures and not is_data and path.is_file():
                    left.append((path, True))


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


def _texts(value: Any, fields: tuple[str, ...] = ("",)) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the texts of a value that may name files, each with the fields that lead to it."""
    if isinstance(value, dict):
        for name, below in value.items():
            if str(name).lower() not in _CONTENT:
                yield from _texts(below, (*filter(None, fields), str(name)))
    elif isinstance(value, list):
        for below in value:
            yield from _texts(below, fields)
    elif isinstance(value, str):
        yield fields, value
