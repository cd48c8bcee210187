# SPDX-License-Identifier: Apache-2.0
"""A freeze of a VNF instance: no operation begins, from whichever program, until its end.

It is written into the instance's Lease, which every operation takes before its first write. An
operation that runs goes on to its end; one that was interrupted or waits can be ended.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timezone

from container_update.cluster.beginning import origin_of
from container_update.cluster.lease import (
    FROZEN_ANNOTATION,
    Holder,
    frozen_by,
    idle_lease,
    lease_key,
    refuse_frozen,
    utc_now,
)
from container_update.cluster.retry import RetryingCluster
from container_update.engine import instances
from container_update.model.cluster import Cluster
from container_update.model.errors import ClusterError
from container_update.model.objects import Json
from container_update.model.operation import Freeze
from container_update.model.options import Options

_ATTEMPTS = 5
"""To write a Lease that its holder renews meanwhile."""


def freeze(  # noqa: PLR0913
    cluster: Cluster,
    options: Options = Options(),  # noqa: B008
    *,
    namespace: str = "default",
    instance_id: str | None = None,
    until: datetime | None = None,
    why: str = "",
) -> Freeze:
    """Let no operation of an instance begin.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     freeze(cluster, namespace="cnf", instance_id="vnf-1", why="the trial of the year")

    :param until: None: until it is lifted.
    :param why: one line, which a refused operation says.
    :raises PlanError: there is no such instance, or it is frozen already.
    """
    retrying = RetryingCluster(cluster, options.retry_seconds)
    instances.refuse_unknown(cluster, namespace, instance_id, options)
    since = utc_now().isoformat(timespec="seconds")
    end = until.astimezone(timezone.utc).isoformat(timespec="seconds") if until else ""
    wanted = Freeze(origin_of("", ()).who, since, end, why)

    def frozen(lease: Json | None) -> None:
        found = frozen_by(lease, utc_now()) if lease else None
        if found == wanted:  # our own request, whose response was lost
            return
        refuse_frozen(found, namespace, instance_id)
        body, text = lease or idle_lease(namespace, instance_id), json.dumps(asdict(wanted))
        annotations = {**(body["metadata"].get("annotations") or {}), FROZEN_ANNOTATION: text}
        body = {**body, "metadata": {**body["metadata"], "annotations": annotations}}
        (retrying.replace if lease else retrying.create)(body)

    _write(retrying, namespace, instance_id, frozen)
    return wanted


def unfreeze(
    cluster: Cluster,
    options: Options = Options(),  # noqa: B008
    *,
    namespace: str = "default",
    instance_id: str | None = None,
) -> Freeze | None:
    """Let operations of an instance begin again.

    >>> with connect() as cluster:  # doctest: +SKIP
    ...     unfreeze(cluster, namespace="cnf", instance_id="vnf-1")

    :returns: the freeze that is lifted; None where it was not frozen.
    """
    retrying = RetryingCluster(cluster, options.retry_seconds)
    lifted: list[Freeze | None] = [None]

    def unfrozen(lease: Json | None) -> None:
        annotations = ((lease or {}).get("metadata") or {}).get("annotations") or {}
        if lease is None or FROZEN_ANNOTATION not in annotations:
            return
        lifted[0], metadata = frozen_by(lease, utc_now()), lease["metadata"]
        if Holder.of(lease).identity:
            kept = {name: text for name, text in annotations.items() if name != FROZEN_ANNOTATION}
            retrying.replace({**lease, "metadata": {**metadata, "annotations": kept}})
        else:
            version = metadata["resourceVersion"]
            key = lease_key(namespace, instance_id)
            retrying.delete(key, uid=metadata["uid"], version=version)

    _write(retrying, namespace, instance_id, unfrozen)
    return lifted[0]


def _write(
    cluster: RetryingCluster,
    namespace: str,
    instance_id: str | None,
    change: Callable[[Json | None], None],
) -> None:
    """Change the Lease; again where another client has written it meanwhile."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            change(cluster.get(lease_key(namespace, instance_id)))
            return
        except ClusterError as error:
            if error.status not in (404, 409) or attempt == _ATTEMPTS:
                raise
