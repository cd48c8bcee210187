# SPDX-License-Identifier: Apache-2.0
"""What is noted of who begins an operation: this process, its host and its user."""

from __future__ import annotations

import getpass
import os
import socket
import uuid
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from container_update.cluster.operation import Origin
from container_update.model.requests import PackageIdentity


def new_identity(started: datetime, goal: str, instance_id: str | None) -> dict[str, Any]:
    """Return the first five attributes of the record of an operation that begins on this host."""
    return {
        "operation": str(uuid.uuid4()),
        "host": host_name(),
        "started": started.isoformat(timespec="seconds"),
        "goal": goal,
        "instance_id": instance_id,
    }


def host_name() -> str:
    """Return the name of this process in records and leases."""
    return f"{socket.gethostname()}.{os.getpid()}"


def origin_of(
    kind: str,
    packages: tuple[PackageIdentity, ...],
    undoes: int | None = None,
    scripts: Mapping[str, str] = MappingProxyType({}),
    why: str = "",
) -> Origin:
    """Return the origin of an operation that this process begins."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # the account has no name
        user = str(os.getuid())
    return Origin(kind, user, socket.gethostname(), packages, undoes, dict(scripts), why)
