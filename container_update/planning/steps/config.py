"""A step that writes the content of a ConfigMap or Secret."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from container_update.model.objects import Json
from container_update.model.plan import Stage
from container_update.planning.comparison import diff
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

    stage = Stage.OBJECTS

    def desired(self, live: Json) -> Json:
        """Return the live object with the manifest's content; see :class:`ObjectStep`."""
        changed = _with_content(live, self.content)
        if self.content.get("kind") == "Secret":
            _copy_field(self.content, changed, "stringData")  # the server lays it over data
        metadata.lay_over(changed, self.content, self.dropped)
        return changed

    def restored(self, live: Json) -> Json:
        """Return the live object with its content, and the labels that were changed, as before."""
        changed = _with_content(live, self.old)
        metadata.restore(changed, self.old, self._written)
        return changed

    def is_same(self, one: Json, other: Json) -> bool:
        """See :class:`ObjectStep`."""
        if diff.content(one) != diff.content(other):
            return False
        return not self.with_metadata or all(
            metadata.value_of(one, *entry) == metadata.value_of(other, *entry)
            for entry in self._written
        )

    @property
    def _written(self) -> list[tuple[str, str]]:
        return metadata.written(self.content, self.dropped)


def _with_content(live: Json, source: Mapping[str, Any]) -> Json:
    changed = copy.deepcopy(live)
    for name in _CONTENT:
        _copy_field(source, changed, name)
    return changed


def _copy_field(source: Mapping[str, Any], target: Json, name: str) -> None:
    if source.get(name) is None:
        target.pop(name, None)
    else:
        target[name] = copy.deepcopy(source[name])
