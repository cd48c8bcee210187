# SPDX-License-Identifier: Apache-2.0
"""The context of the service: what every part works with, created once."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import partial

from container_update.model.options import Options
from container_update.vnfm.http.limits import Share
from container_update.vnfm.metrics import Metrics
from container_update.vnfm.settings import Settings
from container_update.vnfm.store.database import Database
from container_update.vnfm.store.liveness import ProcessLock
from container_update.vnfm.store.vault import Vault


@dataclass(frozen=True)
class ServiceContext:
    """The service's settings, storage and counters."""

    settings: Settings
    options: Options
    """The options of updates."""
    database: Database
    vault: Vault
    process_lock: ProcessLock
    metrics: Metrics = field(default_factory=Metrics)
    vim_requests: Share = field(
        default_factory=partial(Share, "requests that wait for a VIM", each=8, together=24, retry=5)
    )
    """In the 40 threads that answer requests."""
    callback_tests: Share = field(
        default_factory=partial(
            Share, "subscriptions whose callback is being tested", each=4, together=16, retry=5
        )
    )
    package_transfers: Share = field(
        default_factory=partial(
            Share, "packages that are being uploaded or fetched", each=4, together=16, retry=30
        )
    )
    """Each that is fetched has a thread."""
    viewers: Share = field(
        default_factory=partial(Share, "open streams of events", each=16, together=64, retry=10)
    )
    """Endless ones: each has a connection."""
    ending: threading.Event = field(default_factory=threading.Event)
    """Set when the service has to end: no operation is begun any more."""
