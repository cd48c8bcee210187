# SPDX-License-Identifier: Apache-2.0
"""Requests without their credentials, errors without the paths of this host. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

HIDDEN = "***"
"""Replaces a credential."""

_CREDENTIAL = re.compile(
    r"passw(or)?d|passphrase|(^|_)pass$|bearer|private_?key|client_?secret|(^|_)token$|^secret$"
    r"|^(access_?info|auth_cred|authentication)$",
    re.IGNORECASE,
)
"""The names of attributes whose whole content is hidden."""


def without(request: Any, names: Collection[str] = ()) -> Any:
    """Return the request without credentials, which are known by their attributes' names.

    :param names: other attributes with credentials.
    """

    def redacted(value: Any, hidden: bool) -> Any:
        if isinstance(value, Mapping):
            return {
                name: redacted(
                    below, hidden or name in names or bool(_CREDENTIAL.search(str(name)))
                )
                for name, below in value.items()
            }
        if isinstance(value, list):
            return [redacted(below, hidden) for below in value]
        return HIDDEN if hidden and value is not None else value

    return redacted(request, False)


def without_folder(text: str, folder: Path) -> str:
    """Return a text for clients, in which paths begin in *folder*, not at the root of this host."""
    return text.replace(f"{folder}/", "")
