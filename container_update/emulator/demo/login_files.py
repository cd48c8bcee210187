# SPDX-License-Identifier: Apache-2.0
"""The files with logins that ``emulate`` writes: never in the place of another program's file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from container_update.model.errors import PackageError

_NAME = "embedded"
"""How the emulators call their cluster, user and cloud."""


def is_kubeconfig(content: Any) -> bool:
    """Tell whether a kubeconfig is about the embedded cluster only; a person may have edited it."""
    return all(
        {e["name"] for e in content[section]} == {_NAME} for section in ("clusters", "users")
    )


def is_clouds_yaml(content: Any) -> bool:
    """Tell whether a clouds.yaml is about the embedded cloud only."""
    return set(content["clouds"]) == {_NAME}


def is_balancer_login(content: Any) -> bool:
    """Tell whether a file is the login of the embedded cloud's load balancer."""
    return set(content) == {"external_lb_param"}


def write(path: Path, text: str, is_ours: Callable[[Any], bool]) -> Path:
    """Write a file that only its owner can read.

    :param is_ours: tells by the content of the file that is there whether it may be replaced; may
        raise whatever a content of another form leads to.
    :raises PackageError: the file is another program's, or cannot be written.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+b") as file:
            there = file.read()
            if there and not _is_ours(there, is_ours):
                raise PackageError(
                    f"{path} exists, and was not written by the emulator: it stays as it is; name "
                    "another file, or remove this one"
                )
            os.fchmod(descriptor, 0o600)
            file.seek(0)
            file.truncate()
            file.write(text.encode())
    except OSError as error:
        raise PackageError(f"{path} cannot be written: {error.strerror}: name another") from error
    return path


def _is_ours(content: bytes, is_ours: Callable[[Any], bool]) -> bool:
    try:
        return is_ours(yaml.safe_load(content))
    except (yaml.YAMLError, ValueError, LookupError, TypeError, RecursionError):
        return False
