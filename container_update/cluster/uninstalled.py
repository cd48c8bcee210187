# SPDX-License-Identifier: Apache-2.0
"""What is kept of an instance that was uninstalled: which operations it had, by which user, and how
they ended; nothing of what they did.

It is one Secret for each instance id. Its type is that of the history, so that who clears a history
has it in the same list; its label tells it apart.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

from container_update.cluster import keeping
from container_update.cluster import operation_codec as codec
from container_update.cluster.operation import Revision
from container_update.model.cluster import Cluster, ReadOnlyCluster
from container_update.model.errors import ClusterError, ContainerUpdateError
from container_update.model.objects import Collection, Json, ObjectKey
from container_update.model.operation import name_of

LOG = logging.getLogger(__name__)

SECRET_TYPE = "container-update/revision"  # noqa: S105, a type
_LABELS = {"container-update/history": "uninstalled"}
_SUFFIX = ".uninstalled"
_OPERATIONS, _INSTANCES = 10, 10
"""How many are kept: operations of an instance, instances of a namespace."""
_LONGEST_CAUSE = 1000


def keep(
    revisions: Sequence[Revision],
    others: Iterable[Json],
    cluster: Cluster,
    namespace: str,
    instance_id: str | None,
) -> None:
    """Keep a summary of operations, as far as the account may; it takes the place of that of an
    earlier instance of this id. The oldest of other instances are deleted.

    :param revisions: the newest first, which is the uninstallation.
    :param others: the Secrets of the type of the history in the namespace.
    """
    key = ObjectKey("", "Secret", namespace, _name(instance_id))
    texts = (
        codec.encode(_summary(each), namespace).head["operation"]
        for each in revisions[:_OPERATIONS]
    )
    data = {f"{number:02}": text for number, text in enumerate(texts)}
    body = keeping.secret(key, SECRET_TYPE, data, instance_id, _LABELS)
    body = keeping.sign(body, cluster.journal_key)
    try:
        _write(body, revisions[0].operation, cluster)
        for each in _superfluous(body, others, cluster):
            cluster.delete(ObjectKey.of(each), uid=each["metadata"]["uid"])
    except ClusterError as error:  # the instance is gone, whether that is kept or not
        LOG.warning("the history of the VNF instance that is gone is not kept: %s", error)


def _summary(revision: Revision) -> Revision:
    cause = revision.cause[:_LONGEST_CAUSE]
    return replace(revision, steps=(), instance=b"", is_kept=False, cause=cause)


def _write(body: Json, operation: str, cluster: Cluster) -> None:
    try:
        cluster.create(body)
    except ClusterError as error:
        if error.status != 409:
            raise
        live = cluster.get(ObjectKey.of(body))
        revisions = () if live is None else _trusted_revisions(live, cluster)
        if live is None or operation in {each.operation for each in revisions}:
            return  # written before, with more of the history
        metadata = {**body["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}
        cluster.replace({**body, "metadata": metadata})


def read(
    cluster: ReadOnlyCluster, namespace: str
) -> tuple[tuple[str, str | None, tuple[Revision, ...]], ...]:
    """Return the namespace, the id and the operations of each instance that was uninstalled.

    :param namespace: '': all of them.
    :raises ClusterError: the account may not list Secrets.
    """
    every = Collection("", "Secret", namespace, labels="=".join(*_LABELS.items()))
    found = []
    for body in cluster.list(every).items:
        metadata, revisions = body["metadata"], _trusted_revisions(body, cluster)
        if revisions:
            instance_id = revisions[0].instance_id
            found.append((str(metadata["namespace"]), instance_id, revisions))
    return tuple(found)


def last_number(every: Iterable[Json], cluster: ReadOnlyCluster, instance_id: str | None) -> int:
    """Return the number of the uninstallation of an earlier instance of this id; 0: not known."""
    found = (body for body in every if body["metadata"]["name"] == _name(instance_id))
    revisions = (each for body in found for each in _trusted_revisions(body, cluster))
    return max((each.number for each in revisions), default=0)


def _name(instance_id: str | None) -> str:
    return f"{name_of(instance_id)}{_SUFFIX}"


def _trusted_revisions(body: Json, cluster: ReadOnlyCluster) -> tuple[Revision, ...]:
    key = cluster.journal_key
    if not keeping.is_trusted(body, key):
        what = "what is kept of an instance that is gone"
        why = keeping.why_untrusted(what, keeping.signer(body), key)
        LOG.warning("%s: %s; it is left out", ObjectKey.of(body), why)
        return ()
    return _revisions(body)


def _revisions(body: Json) -> tuple[Revision, ...]:
    data = keeping.data_of(body)
    try:
        return tuple(_decode(data[name], body) for name in sorted(data) if name.isdecimal())
    except (ValueError, ContainerUpdateError) as error:
        LOG.warning("%s %s; it is left out", ObjectKey.of(body), error)
        return ()


def _decode(text: bytes, body: Json) -> Revision:
    revision = codec.decode(keeping.with_values({**body, "data": {}}, {"operation": text}), {})
    if not isinstance(revision, Revision):
        raise ValueError("has an operation that has not ended")
    return revision


def _superfluous(written: Json, others: Iterable[Json], cluster: ReadOnlyCluster) -> Sequence[Json]:
    """Return other instances' oldest Secrets; an untrusted one takes no trusted one's place."""
    name, key = written["metadata"]["name"], cluster.journal_key
    kept = [body for body in others if body["metadata"]["name"].endswith(_SUFFIX)]
    kept = [b for b in kept if b["metadata"]["name"] != name and keeping.is_trusted(b, key)]
    kept.sort(key=lambda body: str(body["metadata"]["creationTimestamp"]), reverse=True)
    return kept[_INSTANCES - 1 :]
