"""The CA certificate that a VIM connection carries as text."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def pem(text: str) -> str:
    """Return a PEM certificate (or several) whose line breaks may have become spaces."""
    words = text.replace(_BEGIN, " \0 ").replace(_END, " \1 ")
    lines = {"\0": _BEGIN, "\1": _END}
    return "\n".join(lines.get(word, word) for word in words.split()) + "\n"


def private_file(text: str) -> Path:
    """Return a file that only this user can read (mode 0600); the caller removes it."""
    handle, name = tempfile.mkstemp(prefix="container-update-", suffix=".pem")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    return Path(name)
