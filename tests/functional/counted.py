# SPDX-License-Identifier: Apache-2.0
"""A cluster that counts what its lists send, and what of it an operation keeps."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.internals.core import Collection, Json, Keep, Listing


class Counted:
    """A cluster, and for each kind how many lists it was asked for, and how many objects these have
    sent and the operation kept."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.lists: Counter[str] = Counter()
        self.sent: Counter[str] = Counter()
        self.kept: Counter[str] = Counter()
        self.names: set[str] = set()
        """Of the objects that were kept."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def list(self, collection: Collection, keep: Keep | None = None) -> Listing:
        self.lists[collection.kind] += 1

        def count(body: Json) -> Json | None:
            self.sent[collection.kind] += 1
            kept = keep(body) if keep else body
            self.kept[collection.kind] += kept is not None
            self.names |= {kept["metadata"]["name"]} if kept else set()
            return kept

        listing: Listing = self._cluster.list(collection, count)
        return listing
