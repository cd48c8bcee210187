"""What is secret in the database: sealed with a key that lies outside of it, in a file of its own.

The key file has one Fernet key a line. The first one seals, all of them open: to rotate, put a new
key on top and remove the old one when nothing that it sealed is left.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from container_update.model.errors import ContainerUpdateError
from container_update.vnfm.store.private_file import private_text


class VaultError(ContainerUpdateError):
    """The key file holds no keys, or none that opens what is in the database."""


class Vault:
    """Seals and opens JSON values.

    :param path: the key file; made with a new key where there is none.
    :raises ContainerUpdateError: it holds no keys, or others than its owner may read it.
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
        """Return the value as a text that only :meth:`open` can read."""
        return self._fernet.encrypt(json.dumps(value).encode()).decode()

    def open(self, sealed: str) -> Any:
        """Return the value.

        :raises VaultError: none of the keys opens it.
        """
        try:
            return json.loads(self._fernet.decrypt(sealed))
        except (InvalidToken, ValueError):
            raise VaultError(
                f"{self._path}: none of its keys opens what is in the database: "
                "put back the key that was in use"
            ) from None

    def renew(self, sealed: str) -> str:
        """Return the same value, sealed with the first key.

        :raises VaultError: none of the keys opens it.
        """
        return self.seal(self.open(sealed))
