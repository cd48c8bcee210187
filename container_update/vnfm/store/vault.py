# SPDX-License-Identifier: Apache-2.0
"""Encrypts the secrets in the database with keys from a file outside of it.

The key file has one Fernet key per line. The first one encrypts, all of them decrypt: to rotate,
put a new key on top and remove the old one when nothing that it encrypted is left.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from container_update.cluster.private_file import private_text
from container_update.model.errors import ContainerUpdateError


class VaultError(ContainerUpdateError):
    """The key file has no keys, or none that decrypts a value of the database."""


class Vault:
    """Encrypts and decrypts JSON values.

    :param path: the key file, which is created with a new key if it does not exist.
    :raises ContainerUpdateError: it has no keys, or others than its owner can read it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        keys = private_text(path, Fernet.generate_key().decode() + "\n").split()
        if not keys:
            raise VaultError(f"{path}: expected Fernet keys, one a line, and it is empty")
        try:
            self._fernet = MultiFernet([Fernet(key) for key in keys])
        except ValueError:  # its message may quote the key
            raise VaultError(f"{path}: expected Fernet keys, one a line") from None

    def seal(self, value: Any) -> str:
        """Encrypt a value."""
        return self._fernet.encrypt(json.dumps(value).encode()).decode()

    def open(self, sealed: str) -> Any:
        """Decrypt a value; VaultError where none of the keys does."""
        try:
            return json.loads(self._fernet.decrypt(sealed))
        except (InvalidToken, ValueError):
            raise VaultError(
                f"{self._path}: none of its keys decrypts the credentials in the database: "
                "put back the key that was in use"
            ) from None
