"""What must not be shown of a request. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

HIDDEN = "***"
"""What is shown in place of a credential."""

_NAME = re.compile(
    r"passw(or)?d|passphrase|(^|_)pass$|bearer|private_?key|client_?secret|(^|_)token$|^secret$",
    re.IGNORECASE,
)
_WHOLE = frozenset({"accessinfo", "access_info", "auth_cred", "authentication"})
"""Attributes below which everything is hidden."""


def without(request: Any, names: Collection[str] = ()) -> Any:
    """Return the request without the values of attributes for credentials.

    :param names: other attributes for credentials.
    """

    def shown(value: Any, hidden: bool) -> Any:
        if isinstance(value, Mapping):
            return {
                name: shown(below, hidden or name in names or _is_credential(str(name)))
                for name, below in value.items()
            }
        if isinstance(value, list):
            return [shown(below, hidden) for below in value]
        return HIDDEN if hidden and value is not None else value

    return shown(request, False)


def _is_credential(name: str) -> bool:
    return name.lower() in _WHOLE or _NAME.search(name) is not None
