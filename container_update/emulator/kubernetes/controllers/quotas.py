# SPDX-License-Identifier: Apache-2.0
"""ResourceQuotas: their status says what is used.

Source: Kubernetes documentation, "Resource Quotas".
"""

from __future__ import annotations

from collections.abc import Mapping

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.controllers.base import Controller, Handler
from container_update.emulator.kubernetes.objects import key_of
from container_update.emulator.kubernetes.rules import quota


class Quotas(Controller):
    """Counts what the namespaces of quotas have."""

    resource = "resourcequotas"

    def handlers(self) -> Mapping[str, Handler]:
        """Handle every object that is created, changed or removed."""
        return {"*": self._take_event}

    def reconcile(self, obj: Json) -> None:
        """Write the status of a quota."""
        counted = quota.usage(obj, self.registry.catalogue, self.registry.list)
        status = {"hard": obj["spec"].get("hard", {}), "used": counted}
        if obj.get("status") != status:
            self.write_status(obj, status)

    def _take_event(self, _event: str, obj: Json, _previous: Json | None) -> None:
        for known in self.registry.list(self.resource, obj["metadata"].get("namespace", "")):
            self.queue.add(key_of(known))
