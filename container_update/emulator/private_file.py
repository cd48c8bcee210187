# SPDX-License-Identifier: Apache-2.0
"""Files with credentials for the emulated APIs."""

from __future__ import annotations

import os
from pathlib import Path


def write(path: str | os.PathLike[str], text: str) -> Path:
    """Write a text file that only its owner can read, and return its path."""
    target = Path(path)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(descriptor, 0o600)  # the file may have existed
        file.write(text)
    return target
