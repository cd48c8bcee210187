# SPDX-License-Identifier: Apache-2.0
"""The Secrets of one operation, of a journal as well as of a history: a head, and the parts that
only the head names."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from container_update.cluster import keeping
from container_update.cluster.operation_codec import Encoded, is_part, part_keys
from container_update.model.cluster import Cluster, ReadOnlyCluster
from container_update.model.errors import ClusterError
from container_update.model.objects import Json, ObjectKey
from container_update.model.packing import DAMAGED

_PART = "part"
"""In the data of a part: its bytes."""


def parts_of(head: Json) -> list[ObjectKey]:
    """Return the parts that a head names; none where another client has changed it."""
    try:
        return list(chain.from_iterable(part_keys(head).values()))
    except DAMAGED:  # the reader that decodes it says so
        return []


def read_parts(cluster: ReadOnlyCluster, head: Json) -> dict[str, bytes]:
    """Return the complete values that parts hold for a head, by their names; raises DAMAGED."""
    parts = {}
    for name, keys in part_keys(head).items():
        secrets = [body for key in keys if (body := cluster.get(key)) is not None]
        whole = b"".join(keeping.data_of(body).get(_PART, b"") for body in secrets)
        if len(secrets) == len(keys) and is_part(name, whole, head):  # nothing has a digest too
            parts[name] = whole
    return parts


def write_parts(cluster: Cluster, head: Json, encoded: Encoded) -> None:
    """Write the parts of a stored head, which owns those in its own namespace."""
    metadata, content = head["metadata"], f"{head['type']}-part"
    labels = {name: v for name, v in metadata["labels"].items() if name not in keeping.KEPT}
    instance_id = metadata["annotations"][keeping.INSTANCE_ANNOTATION]
    for name, keys in part_keys(head).items():
        for key, part in zip(keys, encoded.parts[name], strict=True):
            owner = keeping.as_owner(head) if key.namespace == metadata["namespace"] else None
            data = {_PART: part}
            body = keeping.secret(key, content, data, instance_id, labels, owner=owner)
            try:
                cluster.create(body)
            except ClusterError as error:
                live = cluster.get(key) if error.status == 409 else None
                if live is None:
                    raise
                if not keeping.is_same(live, body):  # of a run that was interrupted
                    delete(cluster, live)
                    cluster.create(body)


def delete_parts(cluster: Cluster, keys: Iterable[ObjectKey]) -> None:
    """Delete the parts; the last one first, so that the rest can be found."""
    for key in reversed(list(keys)):
        if (part := cluster.get(key)) is not None:  # the garbage collector may have been faster
            delete(cluster, part)


def delete(cluster: Cluster, body: Json) -> None:
    """Delete a Secret unless it has changed since it was read."""
    metadata = body["metadata"]
    cluster.delete(ObjectKey.of(body), uid=metadata["uid"], version=metadata["resourceVersion"])
