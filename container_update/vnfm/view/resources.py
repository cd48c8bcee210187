# SPDX-License-Identifier: Apache-2.0
"""The live resources of the VNF instances that somebody looks at."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from container_update.vnfm.lcm.live.resources import resources_of
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.service_context import ServiceContext

PACE_SECONDS = 1.0
"""The least time between two readings of the same instance, for all viewers together."""
_KEPT = 256
"""The number of instances whose last reading is kept."""


@dataclass
class _Reading:
    lock: threading.Lock = field(default_factory=threading.Lock)
    text: str = "null"
    next: float = -math.inf


class LiveResources:
    """The last reading of each instance."""

    def __init__(
        self, service: ServiceContext, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._service, self._clock = service, clock
        self._lock = threading.Lock()
        self._readings: dict[str, _Reading] = {}

    def read(self, instance_id: str) -> str:
        """Return the resources of an instance, or the 'problem', as JSON."""
        with self._lock:
            reading = self._readings.pop(instance_id, None) or _Reading()
            self._readings[instance_id] = reading
            if len(self._readings) > _KEPT:
                del self._readings[next(iter(self._readings))]
        with reading.lock:
            if self._clock() >= reading.next:
                reading.text = self._text(instance_id)
                reading.next = self._clock() + PACE_SECONDS
            return reading.text

    def _text(self, instance_id: str) -> str:
        try:
            found = resources_of(self._service, instance_id)
        except ProblemError as error:
            found = {"problem": error.detail, "vdus": []}
        return json.dumps({"id": instance_id, **found})
