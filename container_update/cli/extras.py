# SPDX-License-Identifier: Apache-2.0
"""The extras of this package: what a command needs that is not always installed."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata, util
from pathlib import Path
from urllib.parse import unquote, urlsplit

from container_update.model.errors import ContainerUpdateError, NextStep

_NAME = "container-update"


@contextmanager
def needed_by(
    what: str, extras: str, failure: type[ContainerUpdateError] = ContainerUpdateError
) -> Iterator[None]:
    """Turn an ImportError in the ``with`` block into an error that says what to install.

    :param what: the subject of the message.
    """
    try:
        yield
    except ImportError as error:
        raise failure(
            f"{what} needs the Python package {error.name}: install it with {install(extras)}",
            next_step=NextStep.FIX_TARGET,
        ) from error


def install(extras: str) -> str:
    """Return the command that adds extras to this installation, from where that came from."""
    pip = [sys.executable, "-m", "pip", "install"]
    if util.find_spec("pip") is None:  # uvx, uv tool
        pip = ["uv", "pip", "install", "--python", sys.executable]
    return shlex.join([*pip, *_source(extras)])


def _source(extras: str) -> tuple[str, ...]:
    """Return what pip has to install, from where this installation came (PEP 610)."""
    try:
        direct_url = metadata.distribution(_NAME).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        direct_url = None
    if direct_url is None:
        return (f"{_NAME}[{extras}]",)
    origin = json.loads(direct_url)
    url = str(origin["url"])
    if "dir_info" in origin:
        folder = f"{Path(unquote(urlsplit(url).path))}[{extras}]"
        return ("-e", folder) if origin["dir_info"].get("editable") else (folder,)
    vcs = origin.get("vcs_info")
    place = f"{vcs['vcs']}+{url}@{vcs['commit_id']}" if vcs else url
    return (f"{_NAME}[{extras}] @ {place}",)
