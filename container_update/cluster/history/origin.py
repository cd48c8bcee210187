# SPDX-License-Identifier: Apache-2.0
"""Who begins an operation: the login name and the host of this process."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Mapping
from types import MappingProxyType

from container_update.cluster.history.revision import Origin
from container_update.model.requests import PackageIdentity


def origin_of(
    kind: str,
    packages: tuple[PackageIdentity, ...],
    undoes: int | None = None,
    scripts: Mapping[str, str] = MappingProxyType({}),
) -> Origin:
    """Return the origin of an operation that this process begins."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # the account has no name
        user = str(os.getuid())
    return Origin(kind, user, socket.gethostname(), packages, undoes, dict(scripts))
