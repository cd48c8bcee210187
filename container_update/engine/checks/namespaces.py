# SPDX-License-Identifier: Apache-2.0
"""Namespaces that do not exist: a list of the objects in one is no error to the API server."""

from __future__ import annotations

from collections.abc import Iterable

from container_update.cluster.keeping import KEPT
from container_update.model.cluster import ReadOnlyCluster, if_allowed, items_if_allowed
from container_update.model.errors import NoNamespaceError, PlanError
from container_update.model.objects import (
    Collection,
    Json,
    Manifest,
    ObjectKey,
    Source,
    namespace_key,
)
from container_update.workloads import registry

_CONTENT = (
    *(("", "ConfigMap"), ("", "PersistentVolumeClaim"), ("", "Secret"), ("", "Service")),
    *(("", "ServiceAccount"), ("networking.k8s.io", "Ingress")),
)
"""(group, kind) of the objects in a namespace besides workloads."""
_EVERYWHERE = frozenset({"default", "kube-root-ca.crt", "openshift-service-ca.crt"})
"""What the control plane puts into each namespace."""


def without_objects(keys: Iterable[ObjectKey], populated: Iterable[str]) -> list[str]:
    """Return the namespaces that are not *populated*: one may not exist at all."""
    return sorted({key.namespace for key in keys} - {"", *populated})


def refuse_missing_namespaces(
    keys: Iterable[ObjectKey],
    live: Iterable[ObjectKey],
    populated: Iterable[str],
    cluster: ReadOnlyCluster,
) -> None:
    """Raise PlanError where a namespace of these objects does not exist and is none of them."""
    keys = tuple(keys)
    for namespace in without_objects(keys, {*populated, *(key.namespace for key in live)}):
        if namespace_key(namespace) not in keys:
            refuse_if_known_missing(namespace, cluster)


def refuse_missing(namespace: str, cluster: ReadOnlyCluster, *, is_written: bool = True) -> None:
    """Raise PlanError where the namespace does not exist.

    :param is_written: objects are to be created in it: it may not be going either.
    :raises ClusterError: it cannot be read; with status 403: the account may not.
    """
    body = cluster.get(namespace_key(namespace))
    if is_written and body is not None and body["metadata"].get("deletionTimestamp"):
        raise PlanError(
            f"namespace {namespace} is being deleted: wait until it is gone, then create it, or "
            "choose another one"
        )
    if body is None:
        raise NoNamespaceError(f"namespace {namespace} does not exist: create it, or name another")


def namespace_manifest(namespace: str) -> Manifest:
    """Return the manifest of a namespace that is in no package."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    return Manifest(namespace_key(namespace), body, Source("--create-namespace", 0))


def content(namespace: str, cluster: ReadOnlyCluster) -> tuple[ObjectKey, ...]:
    """Return what others than controllers and this program have put into a namespace."""
    kinds = (*registry.installed_kinds(), *_CONTENT)
    every = (Collection(*kind, namespace) for kind in kinds)
    bodies = (body for each in every for body in items_if_allowed(cluster, each, if_missing=True))
    return tuple(ObjectKey.of(body) for body in bodies if _is_others(body))


def _is_others(body: Json) -> bool:
    metadata = body["metadata"]
    is_kept = KEPT.items() <= (metadata.get("labels") or {}).items()
    is_going = metadata.get("ownerReferences") or metadata.get("deletionTimestamp")
    is_of_account = body.get("type") == "kubernetes.io/service-account-token"
    return not (metadata["name"] in _EVERYWHERE or is_kept or is_going or is_of_account)


def refuse_if_known_missing(namespace: str, cluster: ReadOnlyCluster) -> None:
    """Raise PlanError where the account may read namespaces, and this one does not exist."""
    if_allowed(lambda: refuse_missing(namespace, cluster, is_written=False), None)
