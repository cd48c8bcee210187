"""Lists as tables: what ``kubectl get`` prints.

The server, not kubectl, decides about columns and cells. Each kind has its columns (those of
priority 1 are for ``-o wide``) and a function from an object to its cells; a kind without any has
NAME and AGE.
"""

from __future__ import annotations

from collections.abc import Sequence

from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes.tables import columns

WHOLE, METADATA, NOTHING = "Object", "Metadata", "None"
"""What a row carries of its object (``includeObject``)."""


def table(
    resource: str,
    items: Sequence[Json],
    list_metadata: Json,
    *,
    include: str = METADATA,
    headed: bool = True,
) -> Json:
    """A Table of *items*.

    *list_metadata*: the metadata of the list. *include*: what each row carries of its object.
    *headed*: with column definitions, which a watch sends only with its first event.
    """
    form = columns.of(resource)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_metadata,
        "columnDefinitions": form.definitions() if headed else [],
        "rows": [_row(form, item, include) for item in items],
    }


def _row(form: columns.Form, item: Json, include: str) -> Json:
    row: Json = {"cells": form.cells(item)}
    if include == WHOLE:
        row["object"] = item
    elif include == METADATA:
        row["object"] = partial(item)
    return row


def partial(item: Json) -> Json:
    """Only the metadata of an object, as a PartialObjectMetadata."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": item.get("metadata", {}),
    }
