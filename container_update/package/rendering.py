# SPDX-License-Identifier: Apache-2.0
"""Folders of which a program makes manifests: a kustomization, a Helm chart.

The programs run on what is in the folder, so this is for folders that the user of the command line
names, not for packages that users upload: see the option ``render``.
"""

from __future__ import annotations

import logging
import re
from functools import lru_cache
from pathlib import Path
from shutil import which
from threading import Lock

from container_update.model import programs
from container_update.model.errors import PackageError
from container_update.model.options import ChartOptions, Options, Release, size_text
from container_update.package import kustomization, yaml11
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
    return (folder / CHART).is_file() and not kustomization.is_one(folder)


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
    if kustomization.is_one(folder):
        whole = folder.resolve()
        kustomization.refuse_remote(whole, options)
        words, operands = ["kustomize"], [str(whole)]
        most = options.def_file_bytes
        return _output(source, "kustomization", programs.KUSTOMIZE, words, operands, most=most)
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
    most = options.def_file_bytes
    output = _output(source, "Helm chart", programs.HELM, words, operands, most=most)
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
    most: int,
) -> bytes:
    path = which(program.name)
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
    except (OSError, programs.TimeoutExpired) as error:
        raise PackageError(f"{source}: {command} does not work: {error}") from error
    if ran.returncode:
        said = " ".join(ran.stderr.decode(errors="replace").split())[:_SHOWN]
        raise PackageError(f"{source}: {command} made no manifests of it: {said}")
    return ran.stdout
