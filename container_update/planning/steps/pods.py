# SPDX-License-Identifier: Apache-2.0
"""A step that replaces single pods of a workload, and changes nothing in the workload itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from container_update.model.objects import Json
from container_update.planning.steps.base import ObjectStep


@dataclass(frozen=True)
class PodsStep(ObjectStep):
    """Delete pods, so that their controller creates them anew. There is nothing to be undone."""

    pods: tuple[tuple[str, str], ...] = field(default=(), kw_only=True)
    """Name and UID of each."""

    def desired(self, live: Json) -> Json:
        """Return the workload as it is."""
        return live

    def restored(self, live: Json) -> Json:
        """Return the workload as it is."""
        return live

    def is_same(self, one: Json, other: Json) -> bool:  # noqa: ARG002
        """Return True: the step writes nothing in the workload."""
        return True
