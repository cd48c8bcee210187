# SPDX-License-Identifier: Apache-2.0
"""Stands in for Barbican: Tacker registers a Kubernetes VIM only with a key manager at hand.

The keys are in files below Tacker's state folder, which the tests delete.
"""

import types
import uuid
from pathlib import Path

from oslo_config import cfg
from tacker.keymgr.key_manager import KeyManager


class Keys(KeyManager):
    """A file for each key."""

    def __init__(self, auth_url):
        """Tacker passes an address that is not needed here."""
        self.folder = Path(cfg.CONF.state_path, "keys")
        self.folder.mkdir(mode=0o700, exist_ok=True)

    def store(self, context, managed_object, expiration=None):
        """Store a key and return its id."""
        name = str(uuid.uuid4())
        (self.folder / name).write_bytes(managed_object)
        return name

    def get(self, context, managed_object_id, metadata_only=False):
        """Return an object whose payload is the key."""
        return types.SimpleNamespace(payload=(self.folder / managed_object_id).read_bytes())

    def delete(self, context, managed_object_id):
        """Delete a key."""
        (self.folder / managed_object_id).unlink()
