"""What every part of the service works with, made once at its start."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from container_update.model.options import Options
from container_update.vnfm.metrics import Metrics
from container_update.vnfm.settings import Settings
from container_update.vnfm.store.database import Database
from container_update.vnfm.store.liveness import ProcessLock
from container_update.vnfm.store.vault import Vault


@dataclass(frozen=True)
class ServiceContext:
    """The service's means."""

    settings: Settings
    options: Options
    """How updates behave."""
    database: Database
    vault: Vault
    process_lock: ProcessLock
    metrics: Metrics = field(default_factory=Metrics)
    ending: threading.Event = field(default_factory=threading.Event)
    """Set when the service is to end: nothing new is begun."""
