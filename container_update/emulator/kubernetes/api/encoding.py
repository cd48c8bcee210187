"""Objects to JSON text, each stored object only once.

A stored object is never mutated, so its text can be kept beside it; a list of 300 pods is then
mostly a matter of joining. In a list an object goes without its kind, elsewhere with it.
"""

from __future__ import annotations

from container_update.emulator.json_type import Json, compact

MOST_KEPT = 10_000
"""How many texts are kept before all are thrown away, so that memory stays bounded."""


class Encoder:
    """Texts of objects, remembered by the object's identity."""

    def __init__(self) -> None:
        self._texts: dict[int, tuple[Json, str]] = {}

    def item(self, stored: Json) -> str:
        """The text of a stored object without kind and apiVersion, as a list has it."""
        known = self._texts.get(id(stored))
        if known is not None and known[0] is stored:
            return known[1]
        text = compact({key: stored[key] for key in stored if key not in ("kind", "apiVersion")})
        if len(self._texts) >= MOST_KEPT:
            self._texts.clear()
        self._texts[id(stored)] = (stored, text)
        return text

    def whole(self, stored: Json, api_version: str) -> str:
        """The text of a stored object with its kind, in the asked-for version."""
        head = compact({"kind": stored["kind"], "apiVersion": api_version})
        return f"{head[:-1]},{self.item(stored)[1:]}"
