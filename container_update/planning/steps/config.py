# SPDX-License-Identifier: Apache-2.0
"""A step that writes the content of a ConfigMap or Secret, key by key."""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from container_update.model.objects import Json, Manifest
from container_update.model.plan import Action
from container_update.planning.comparison import diff
from container_update.planning.steps import metadata
from container_update.planning.steps.base import ObjectStep

_OTHER_CONTENT = ("type", "immutable")


@dataclass(frozen=True)
class ConfigStep(ObjectStep):
    """Create, replace or recreate a ConfigMap or Secret.

    Keys, labels and annotations that are neither in the manifest nor removed are another client's:
    they stay, on the way back too.
    """

    content: Json = field(repr=False)
    """The manifest that takes effect."""
    removed: tuple[str, ...] = field(default=(), kw_only=True)
    """The keys that only the old manifest has."""
    dropped: metadata.Dropped = field(default=(), kw_only=True)

    @property
    def after(self) -> Json:
        """The object after the step, where no other client writes it."""
        return self.content if self.before is None else self.with_change(self.before)

    @property
    def becomes_immutable(self) -> bool:
        """It becomes immutable, which comes last: an undo could only create it again."""
        before, is_replaced = self.before or {}, self.action is Action.REPLACE
        return bool(self.content.get("immutable")) and is_replaced and not before.get("immutable")

    def as_it_is(self, live: Json | None) -> ConfigStep:
        """Return the step for an object that is not immutable yet, or is so already."""
        if not self.becomes_immutable or (live or {}).get("immutable"):
            return self
        return replace(self, content={**self.content, "immutable": None})

    def with_change(self, live: Json) -> Json:
        """Return the live object with the manifest's content; see :class:`ObjectStep`."""
        changed = _with_content(live, self.content, self._keys)
        metadata.lay_over(changed, self.content, self.dropped)
        return changed

    def without_change(self, live: Json) -> Json:
        """Return the live object with the content and the labels that are written as before."""
        changed = _with_content(live, self.old, self._keys)
        metadata.restore(changed, self.old, self._labels)
        return changed

    def is_same(self, one: Json, other: Json) -> bool:
        """See :class:`ObjectStep`."""
        return self._content_of(one) == self._content_of(other) and all(
            metadata.value_of(one, *entry) == metadata.value_of(other, *entry)
            for entry in self._labels
        )

    def _content_of(self, body: Json) -> diff.Content:
        """Return what the step writes of an object's content."""
        whole, keys = diff.content(body), self._keys
        return replace(whole, data={key: whole.data[key] for key in keys & whole.data.keys()})

    @cached_property
    def _keys(self) -> frozenset[str]:
        """The keys whose values the step changes."""
        keys = diff.key_names(self.content).union(self.removed)
        if self.before is None:
            return keys
        was, then = diff.content(self.before).data, diff.content(self.content).data
        return frozenset(key for key in keys if was.get(key) != then.get(key))

    @property
    def _labels(self) -> list[tuple[str, str]]:
        return metadata.written_metadata(self.content, self.dropped, self.before)


def laid_over(old: Manifest | None, new: Manifest, live: Json | None) -> ConfigStep:
    """Return the step that lays the new manifest over the live object."""
    removed = diff.key_names(old.body) - diff.key_names(new.body) if old else ()
    return ConfigStep(
        new.key,
        Action.REPLACE,
        live,
        new.body,
        removed=tuple(sorted(removed)),
        dropped=metadata.dropped_metadata(old, new),
    )


def _with_content(live: Json, source: Mapping[str, Any], keys: Collection[str]) -> Json:
    """Return the live object with these keys as in *source*; it shares what stays."""
    changed = {**live, "metadata": dict(live["metadata"])}
    for name in _OTHER_CONTENT:
        if source.get(name) is None:
            changed.pop(name, None)
        else:
            changed[name] = source[name]
    for name in ("data", "binaryData"):
        kept = {key: value for key, value in (live.get(name) or {}).items() if key not in keys}
        given = {key: value for key, value in _texts(source, name).items() if key in keys}
        metadata.assign(changed, name, {**kept, **given})
    return changed


def _texts(body: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return ``data`` or ``binaryData`` as the server stores it: with ``stringData`` folded in."""
    is_secret = body.get("kind") == "Secret"
    if is_secret and name == "binaryData":
        return {}
    texts = {str(key): value or "" for key, value in (body.get(name) or {}).items()}
    plain = body.get("stringData") if is_secret else None
    for key, value in (plain or {}).items():
        texts[str(key)] = base64.b64encode((value or "").encode()).decode()
    return texts
