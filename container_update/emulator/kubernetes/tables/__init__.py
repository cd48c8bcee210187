# SPDX-License-Identifier: Apache-2.0
"""Lists as tables: what ``kubectl get`` prints.

The server defines columns and cells. A kind has columns (those of priority 1 are for ``-o wide``)
and a function that returns an object's cells; other kinds have the columns Name and Age.
"""

from __future__ import annotations

from collections.abc import Sequence

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.tables import columns

OBJECT, METADATA, NOTHING = "Object", "Metadata", "None"
"""What a row contains of its object (``includeObject``)."""


def table(
    resource: str,
    items: Sequence[Json],
    list_metadata: Json,
    *,
    include: str = METADATA,
    with_columns: bool = True,
) -> Json:
    """Return a Table of *items*.

    :param list_metadata: the metadata of the list.
    :param include: what each row contains of its object.
    :param with_columns: add column definitions; a watch sends them only with its first event.
    """
    layout = columns.of(resource)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_metadata,
        "columnDefinitions": layout.definitions() if with_columns else [],
        "rows": [_row(layout, item, include) for item in items],
    }


def _row(layout: columns.Layout, item: Json, include: str) -> Json:
    row: Json = {"cells": layout.cells(item)}
    if include == OBJECT:
        row["object"] = item
    elif include == METADATA:
        row["object"] = partial(item)
    return row


def partial(item: Json) -> Json:
    """Return the metadata of an object as a PartialObjectMetadata."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": item.get("metadata", {}),
    }
