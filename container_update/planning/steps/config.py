"""A step that writes the content of a ConfigMap or Secret."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from container_update.model.objects import Json
from container_update.model.plan import Stage
from container_update.planning import diff
from container_update.planning.steps import metadata
from container_update.planning.steps.base import ObjectStep

_CONTENT = ("data", "binaryData", "type", "immutable")


@dataclass(frozen=True)
class ConfigStep(ObjectStep):
    """Create, replace or recreate a ConfigMap or Secret."""

    content: Json = field(repr=False)
    """The manifest that takes effect."""
    dropped: metadata.Dropped = field(default=(), kw_only=True)
    with_metadata: bool = field(default=False, kw_only=True)
    """Labels and annotations count too, not only the content: in a change of the package."""

    @property
    def stage(self) -> Stage:
        """Before every workload."""
        return Stage.OBJECTS

    def desired(self, live: Json) -> Json:
        """Return the live object with the manifest's content; see :class:`ObjectStep`."""
        changed = copy.deepcopy(live)
        for name in _CONTENT:
            _copy_field(self.content, changed, name)
        if self.content.get("kind") == "Secret":
            _copy_field(self.content, changed, "stringData")  # the server lays it over data
        for name in metadata.FIELDS:
            values = metadata.merged(live, self.content, self.dropped, name)
            metadata.assign(changed["metadata"], name, values)
        return changed

    def restored(self, live: Json) -> Json:
        """Return the live object with its content, and the labels that were changed, as before."""
        assert self.before is not None, "what was created is deleted, not restored"
        changed = copy.deepcopy(live)
        for name in _CONTENT:
            _copy_field(self.before, changed, name)
        metadata.put_back(changed, self.before, self._written)
        return changed

    def is_applied(self, live: Json) -> bool:
        """See :class:`ObjectStep`."""
        return self._is_same(self.desired(live), live)

    def is_restored(self, live: Json) -> bool:
        """See :class:`ObjectStep`."""
        return self._is_same(self.restored(live), live)

    def is_untouched(self, live: Json) -> bool:
        """See :class:`ObjectStep`."""
        assert self.before is not None, "there was an object"
        same_object = self.before["metadata"]["uid"] == live["metadata"]["uid"]
        return same_object and self._is_same(self.before, live)

    @property
    def _written(self) -> list[tuple[str, str]]:
        return metadata.written(self.content, self.dropped)

    def _is_same(self, one: Json, other: Json) -> bool:
        if diff.content(one) != diff.content(other):
            return False
        return not self.with_metadata or all(
            metadata.value_of(one, *entry) == metadata.value_of(other, *entry)
            for entry in self._written
        )


def _copy_field(source: Mapping[str, Any], target: Json, name: str) -> None:
    if source.get(name) is None:
        target.pop(name, None)
    else:
        target[name] = copy.deepcopy(source[name])
