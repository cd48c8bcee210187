# SPDX-License-Identifier: Apache-2.0
"""Stored objects as JSON text, each encoded only once.

A stored object is never mutated, so its text can be kept: a list of 300 pods is then only joined.
In a list an object is written without its kind, elsewhere with it.
"""

from __future__ import annotations

from container_update.emulator.json_type import Json, compact

MAX_TEXTS = 10_000
"""How many texts are kept before all are dropped, so that memory stays bounded."""


class Encoder:
    """The texts of objects, kept by the object's identity."""

    def __init__(self) -> None:
        self._texts: dict[int, tuple[Json, str]] = {}

    def item(self, stored: Json) -> str:
        """Return the text of a stored object for a list: without kind and apiVersion."""
        cached = self._texts.get(id(stored))
        if cached is not None and cached[0] is stored:
            return cached[1]
        text = compact({key: stored[key] for key in stored if key not in ("kind", "apiVersion")})
        if len(self._texts) >= MAX_TEXTS:
            self._texts.clear()
        self._texts[id(stored)] = (stored, text)
        return text

    def single(self, stored: Json, api_version: str) -> str:
        """Return the text of a stored object with its kind and that version."""
        head = compact({"kind": stored["kind"], "apiVersion": api_version})
        return f"{head[:-1]},{self.item(stored)[1:]}"
