# SPDX-License-Identifier: Apache-2.0
"""Folders of which a program makes manifests: a kustomization, a Helm chart.

The programs run on what is in the folder, so this is for folders that the user of the command line
names, not for packages that somebody uploads: see the option ``render``.
"""

from __future__ import annotations

import logging
import re
import subprocess
from functools import lru_cache
from pathlib import Path
from shutil import which
from threading import Lock
from typing import Any

import yaml

from container_update.model.errors import PackageError

LOG = logging.getLogger(__name__)

KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
CHART = "Chart.yaml"
_HOOK = "helm.sh/hook"
_SECONDS = 120.0
_SHOWN = 500
"""Characters of what a program says about an error."""
_RENDERING = Lock()


def rendered(source: str) -> bytes | None:
    """Return the manifests of a folder, the same each time; None where no program makes them.

    :raises PackageError: the program is missing, or it failed.
    """
    with _RENDERING:  # threads of an operation open the same package
        return _rendered(source)


@lru_cache(maxsize=8)
def _rendered(source: str) -> bytes | None:
    folder = Path(source)
    if any((folder / name).is_file() for name in KUSTOMIZATIONS):
        return _output(source, "kustomization", "kubectl", "kustomize", source)
    return _of_chart(source) if (folder / CHART).is_file() else None


def _of_chart(source: str) -> bytes:
    """Return the manifests of a chart without its hooks, which only Helm runs."""
    try:
        name = yaml.safe_load((Path(source) / CHART).read_bytes())["name"]
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise PackageError(f"{CHART} in {source}: expected a mapping with a name") from error
    words = ("template", str(name), source, "--include-crds")
    documents = re.split(rb"^---$", _output(source, "Helm chart", "helm", *words), flags=re.M)
    hooks = [hook for text in documents for hook in _hooks(text)]
    if hooks:
        LOG.warning("%s: left out, as only Helm runs hooks: %s", source, ", ".join(hooks))
    return b"---".join(text for text in documents if not _hooks(text))


def _hooks(document: bytes) -> list[str]:
    """Return the hook that a document of a chart is, if it is one."""
    try:
        body: Any = yaml.safe_load(document)
        metadata = body["metadata"]
        hook = metadata["annotations"][_HOOK]
    except (yaml.YAMLError, KeyError, TypeError):
        return []  # what is wrong with it is said where it is read for its objects
    return [f"{body.get('kind')} {metadata.get('name')} ({hook})"]


def _output(source: str, what: str, program: str, *words: str) -> bytes:
    path = which(program)
    if path is None:
        raise PackageError(
            f"{source} is a {what}, of which {program} makes manifests: expected that program in "
            f"PATH, found none: install {program}, or name a file with the manifests"
        )
    try:
        ran = subprocess.run(  # noqa: S603, what the user has installed, on what the user names
            [path, *words], capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PackageError(f"{source}: {program} {words[0]} does not work: {error}") from error
    if ran.returncode:
        said = " ".join(ran.stderr.decode(errors="replace").split())[:_SHOWN]
        raise PackageError(f"{source}: {program} {words[0]} made no manifests of it: {said}")
    return ran.stdout
