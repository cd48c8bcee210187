# SPDX-License-Identifier: Apache-2.0
"""Folders of which a program makes manifests: a kustomization, a Helm chart.

The programs run on what is in the folder, so this is for folders that the user of the command line
names, not for packages that users upload: see the option ``render``.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from shutil import which
from threading import Lock
from typing import Any

from container_update.model import programs
from container_update.model.errors import PackageError
from container_update.model.options import ChartOptions, Options, Release, size_text
from container_update.package import yaml11
from container_update.package.findings import Reading

LOG = logging.getLogger(__name__)

CHART = "Chart.yaml"
_HOOK = "helm.sh/hook"
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,51}[a-z0-9])?")
"""Of a release, to Helm; a word that begins with ``-`` would be an option."""
_SECONDS = 120.0
_SHOWN = 500
"""Characters of what a program says about an error."""
_RENDERING = Lock()


def is_chart(folder: Path) -> bool:
    """Tell whether a folder is a Helm chart; a kustomization may have one in it."""
    return (folder / CHART).is_file() and not _is_kustomization(folder)


def rendered(source: str, options: Options) -> bytes | None:
    """Return the manifests of a folder, the same each time; None where no program makes them.

    :param source: the folder; no link in a chart leads out of it.
    :raises PackageError: the program is missing, or it failed.
    """
    with _RENDERING:  # threads of an operation open the same package
        return _rendered(source, options)


@lru_cache(maxsize=8)
def _rendered(source: str, options: Options) -> bytes | None:
    folder = Path(source)
    if _is_kustomization(folder):
        whole = folder.resolve()
        _refuse_remote(whole, options)
        words, operands = ["kustomize"], [str(whole)]
        return _output(
            source, "kustomization", programs.KUSTOMIZE, words, operands, options=options
        )
    return _of_chart(source, options) if is_chart(folder) else None


def _of_chart(source: str, options: Options) -> bytes:
    """Return the manifests of a chart without its hooks, which only Helm runs."""
    chart = name_of(source, options)
    release = options.release if isinstance(options, ChartOptions) else Release()
    # a schema of values may name files of this host and URLs, which Helm reads
    words = ["template", "--include-crds", "--skip-schema-validation"]
    words += [f"--namespace={release.namespace}"]
    words += [f"--kube-version={release.kube_version}"] if release.kube_version else []
    words += [f"--api-versions={each}" for each in release.api_versions]
    operands = [
        _check_release(release.name or chart, "the VNF instance"),
        str(Path(source).resolve()),
    ]
    output = _output(source, "Helm chart", programs.HELM, words, operands, options=options)
    documents = [(text, _hooks(text, options)) for text in re.split(rb"^---$", output, flags=re.M)]
    hooks = [hook for _, hooks in documents for hook in hooks]
    if hooks:
        LOG.warning("%s: left out, as only Helm runs hooks: %s", source, ", ".join(hooks))
    return b"---".join(text for text, hooks in documents if not hooks)


def name_of(source: str, options: Options) -> str:
    """Return the name of a chart; PackageError where no release may have it."""
    file = Path(source) / CHART
    try:
        text = file.read_bytes()
    except OSError as error:
        raise PackageError(f"{file} cannot be read: {error.strerror}") from error
    name = yaml11.mapping(text, str(file), options, "the name of a chart").get("name")
    return _check_release(name, f"{file}: name")


def _check_release(name: object, what: str) -> str:
    """Return a name that a release may have; PackageError for another."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise PackageError(
            f"{what}: expected a name that Helm accepts for a release, of at most 53 lower-case "
            f"letters, digits, - and ., found {name!a:.80}: choose another name, or render the "
            "chart yourself: helm template"
        )
    return name


def _hooks(document: bytes, options: Options) -> list[str]:
    """Return the hook that a document of a chart is, if it is one."""
    try:
        parser = yaml11.Yaml11Parser(CHART, options, Reading())
        body = next(parser.documents(yaml11.with_line_ends(document))).value
        metadata = body["metadata"]
        hook = metadata["annotations"][_HOOK]
    except (PackageError, StopIteration, KeyError, TypeError):
        return []  # its mistakes are reported where it is read for its objects
    return [f"{body.get('kind')} {metadata.get('name')} ({hook})"]


def _output(  # noqa: PLR0913
    source: str,
    what: str,
    program: programs.Program,
    words: list[str],
    operands: list[str],
    *,
    options: Options,
) -> bytes:
    path, most = which(program.name), options.def_file_bytes
    if path is None:
        raise PackageError(
            f"{source} is a {what}, of which {program.name} makes manifests: expected that program "
            f"in PATH, found none: install {program.name}, or name a file with the manifests"
        )
    command = f"{program.name} {words[0]}"
    try:
        ran = programs.run(program, path, words, operands, seconds=_SECONDS, most=most)
    except programs.TooMuchError as error:
        raise PackageError(
            f"{source}: {command}: expected at most {size_text(most)} (option def_file_bytes), "
            "found more"
        ) from error
    except programs.TimeoutExpired:
        text = f"{source}: {command}: expected its end within {_SECONDS:g} s, found that it goes on"
        raise PackageError(text) from None
    except OSError as error:
        raise PackageError(f"{source}: {command} does not work: {error}") from error
    if ran.returncode:
        said = " ".join(ran.stderr.decode(errors="replace").split())[:_SHOWN]
        raise PackageError(f"{source}: {command} made no manifests of it: {said}")
    return ran.stdout


# --- kustomizations: a refusal of those that name another host -----------------------------------
# kubectl would fetch it: who only looks at a package would send requests that its author chooses,
# and the package would be another one each time.

_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
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


def _is_kustomization(folder: Path) -> bool:
    """Tell whether a folder is a kustomization."""
    return any((folder / name).is_file() for name in _KUSTOMIZATIONS)


def _refuse_remote(folder: Path, options: Options) -> None:
    """Raise PackageError where a kustomization, or one that it is made of, names a URL.

    :param folder: its own, without links.
    """
    seen, left = set[Path](), [folder]
    while left:
        here = left.pop()
        if here in seen:
            continue
        seen.add(here)
        file = next(here / name for name in _KUSTOMIZATIONS if (here / name).is_file())
        for fields, text in _texts_of(file, _read(file, options), options):
            _refuse_url(file, fields, text)
            path, is_plugin = _existing(here, text), fields[0].casefold() in _PLUGINS
            if is_plugin:
                _check_plugin(file, fields, text, path, options)
            elif path is not None and path.is_dir() and _is_kustomization(path):
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
