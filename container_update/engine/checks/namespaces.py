# SPDX-License-Identifier: Apache-2.0
"""Namespaces that do not exist: to list or read what is in one is no error to the API server."""

from __future__ import annotations

from collections.abc import Iterable

from container_update.model.cluster import ReadOnlyCluster, if_allowed
from container_update.model.errors import PlanError
from container_update.model.objects import ObjectKey


def without_objects(keys: Iterable[ObjectKey], populated: Iterable[str]) -> list[str]:
    """Return the namespaces of objects in which nothing is live: one may not exist at all.

    :param populated: the namespaces in which something is.
    """
    return sorted({key.namespace for key in keys} - {"", *populated})


def refuse_missing_namespaces(
    keys: Iterable[ObjectKey],
    live: Iterable[ObjectKey],
    populated: Iterable[str],
    cluster: ReadOnlyCluster,
) -> None:
    """Raise PlanError where a namespace of these objects does not exist and is none of them.

    :param live: those that exist.
    :param populated: the namespaces in which anything was found.
    """
    keys = tuple(keys)
    for namespace in without_objects(keys, {*populated, *(key.namespace for key in live)}):
        if ObjectKey("", "Namespace", "", namespace) not in keys:
            refuse_if_known_missing(namespace, cluster)


def refuse_missing(namespace: str, cluster: ReadOnlyCluster) -> None:
    """Raise PlanError where the namespace does not exist.

    :raises ClusterError: it cannot be read; with status 403: the account may not.
    """
    if cluster.get(ObjectKey("", "Namespace", "", namespace)) is None:
        raise PlanError(
            f"namespace {namespace} does not exist: create it and instantiate the VNF there, "
            "or name the right one"
        )


def refuse_if_known_missing(namespace: str, cluster: ReadOnlyCluster) -> None:
    """Raise PlanError where the account may read namespaces, and this one does not exist."""
    if_allowed(lambda: refuse_missing(namespace, cluster), None)
