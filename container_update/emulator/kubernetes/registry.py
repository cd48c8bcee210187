# SPDX-License-Identifier: Apache-2.0
"""Every object of the cluster, and the only way to read or write one.

The HTTP side, the controllers and the kubelet all use it, on the event loop's thread only. A stored
object is never mutated: to change one, pass a changed copy to :meth:`Registry.update`.
What may be written is decided in :mod:`container_update.emulator.kubernetes.rules`; identity,
versions, generations and deletion are decided here.
"""

from __future__ import annotations

import copy
import uuid
from collections import deque
from collections.abc import Callable
from datetime import timedelta

from container_update.emulator import clock
from container_update.emulator.json_type import Json
from container_update.emulator.kubernetes import api_errors, names, rules
from container_update.emulator.kubernetes.api_errors import ApiError
from container_update.emulator.kubernetes.objects import is_deleting, is_established
from container_update.emulator.kubernetes.resources import (
    Catalogue,
    Resource,
    of_definition,
)
from container_update.emulator.kubernetes.rules import limits, quota

__all__ = ["ApiError", "Registry", "Subscriber"]

Subscriber = Callable[[str, str, Json, "Json | None"], None]
"""Called with the event's type (ADDED, MODIFIED, DELETED), the resource, the object, and the object
before (None for ADDED)."""

Own = Callable[["Json | None", Json], "list[Json]"]
"""Returns the ``managedFields`` of an object, from the stored one (None: there is none) and the new
one."""

Webhook = Callable[[Resource, Json], None]
"""Called with a resource and the body of a write, which it may change."""

FIRST_NAMESPACES = ("default", "kube-system")
"""Namespaces that are there from the start and cannot be deleted."""
FIRST_VERSION = 1000
"""Versions start here: a watch from '1' is too old, as on a server that has run for long."""

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""Holds a deleted CustomResourceDefinition until its objects are gone."""
_PROPAGATION_FINALIZERS = {"Foreground": FOREGROUND, "Orphan": ORPHAN}


class Registry:
    """The objects by resource, namespace and name.

    ``resource`` is the plural ('pods'; 'plural.group' for a custom resource), ``namespace`` is ''
    for objects without a namespace. Every method may raise :class:`ApiError`.
    """

    def __init__(self, catalogue: Catalogue | None = None) -> None:
        self.catalogue = catalogue or Catalogue()
        self._objects: dict[str, dict[str, dict[str, Json]]] = {}
        self._version = FIRST_VERSION
        self.webhooks: list[Webhook] = []
        """Mutating admission: called for what is created or replaced, with a copy of the body."""
        self._subscribers: list[Subscriber] = []
        self._events: deque[tuple[str, str, Json, Json | None]] = deque()
        self._notifying = False

    @property
    def resource_version(self) -> str:
        """The version of the last write."""
        return str(self._version)

    # --- reading --------------------------------------------------------------------------------

    def get(self, resource: str, namespace: str, name: str) -> Json | None:
        """Return the object, or None."""
        return self._objects.get(resource, {}).get(namespace, {}).get(name)

    def list(
        self,
        resource: str,
        namespace: str | None = None,
        selector: Callable[[Json], bool] | None = None,
    ) -> list[Json]:
        """Return the objects of a namespace (None: of all), ordered by namespace and name."""
        spaces = self._objects.get(resource, {})
        chosen = sorted(spaces) if namespace is None else [namespace]
        items = [spaces[space][name] for space in chosen for name in sorted(spaces.get(space, {}))]
        return items if selector is None else [item for item in items if selector(item)]

    def require(self, resource: str, namespace: str, name: str) -> Json:
        """Return the object; raise 404 without one."""
        obj = self.get(resource, namespace, name)
        if obj is None:
            kind = self.catalogue[resource]
            raise api_errors.not_found(kind.group, kind.plural, name)
        return obj

    def subscribe(self, callback: Subscriber) -> None:
        """Call *callback* for every write from now on, synchronously and in order."""
        self._subscribers.append(callback)

    # --- writing --------------------------------------------------------------------------------

    def create(
        self,
        resource: str,
        namespace: str,
        body: Json,
        *,
        own: Own | None = None,
        dry_run: bool = False,
    ) -> Json:
        """Create an object and return it as stored.

        :param own: returns who owns which of its fields; None: no owner is noted.
        """
        kind = self.catalogue[resource]
        self._check_definition(kind, body)
        self._check_namespace(kind, namespace, body)
        body = self._admit(kind, body)
        new = rules.new_object(kind, namespace, body, self.get)
        metadata = new["metadata"]
        if not metadata.get("name"):
            metadata["name"] = self._unused_name(resource, namespace, metadata["generateName"])
        if kind.key == "pods":
            limits.admit(new, self.list)
        quota.admit(kind, new, self.list)
        if (known := self.get(resource, namespace, metadata["name"])) is not None:
            raise api_errors.already_exists(
                kind.group, kind.plural, metadata["name"], is_deleting(known)
            )
        metadata["uid"] = str(uuid.uuid4())
        metadata["creationTimestamp"] = clock.stamp()
        if kind.generation:
            metadata["generation"] = 1
        rules.complete_new(kind, new)
        if own is not None:
            metadata["managedFields"] = own(None, new)
        return new if dry_run else self._commit("ADDED", kind, new, None)

    def update(  # noqa: PLR0913 - the request's own parts
        self,
        resource: str,
        namespace: str,
        name: str,
        body: Json,
        *,
        subresource: str = "",
        own: Own | None = None,
        dry_run: bool = False,
    ) -> Json:
        """Write an object and return it as stored; a write without a change does nothing.

        Removing the last finalizer of a deleted object removes the object.

        :param body: with a resourceVersion that is not the stored one: 409.
        :param subresource: '' writes all but the status, 'status' only the status; for pods
            'ephemeralcontainers', and 'binding' (the node and the status, and the generation does
            not change); for namespaces 'finalize' (``spec.finalizers``).
        :param own: returns who owns which of its fields; None: as before.
        """
        kind = self.catalogue[resource]
        old = self.require(resource, namespace, name)
        self._check_identity(kind, old, body, own is not None and kind.is_versioned)
        body = body if subresource else self._admit(kind, body)
        new = rules.changed_object(kind, old, body, subresource)
        if own is not None:
            new["metadata"]["managedFields"] = own(old, new)
        if new == old:
            return old
        if kind.generation and subresource in ("", "ephemeralcontainers"):
            generation = old["metadata"].get("generation", 1)
            new["metadata"]["generation"] = generation + rules.counts_as_change(kind, old, new)
        if dry_run:
            return new
        if is_finished(kind, new):
            self._remove(kind, new)
            return new
        return self._commit("MODIFIED", kind, new, old)

    def delete(  # noqa: PLR0913 - the request's own parts
        self,
        resource: str,
        namespace: str,
        name: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_seconds: int | None = None,
        propagation: str | None = None,
        dry_run: bool = False,
    ) -> Json:
        """Delete an object at once, or mark it as deleted.

        A pod on a node is only marked (``deletionTimestamp``, ``deletionGracePeriodSeconds``) until
        the kubelet deletes it with ``grace_seconds=0``, an object with finalizers until it has
        none, a namespace until it is finalized.

        :param propagation: 'Foreground' and 'Orphan' add finalizers for the garbage collector.
        :returns: the object as last stored; without a ``deletionTimestamp`` it went at once.
        """
        kind = self.catalogue[resource]
        old = self.require(resource, namespace, name)
        if resource == "namespaces" and name in FIRST_NAMESPACES:
            why = "this namespace may not be deleted"
            raise api_errors.forbidden("", resource, name, why, [])
        self._check_preconditions(kind, old, uid, resource_version)
        new = _marked_as_deleted(kind, old, grace_seconds, propagation)
        goes = is_finished(kind, new)
        if goes and kind.key != "pods" and not is_deleting(old):
            new = old  # what goes at once is never marked
        if dry_run or (new == old and not goes):
            return new
        if goes and kind.key != "pods":
            self._remove(kind, new)
            return new
        new = self._commit("MODIFIED", kind, new, old)
        if goes:
            self._remove(kind, new)
        return new

    def _admit(self, kind: Resource, body: Json) -> Json:
        """Return the body as the webhooks leave it."""
        if self.webhooks:
            body = copy.deepcopy(body)
            for webhook in self.webhooks:
                webhook(kind, body)
        return body

    # --- checks ---------------------------------------------------------------------------------

    def _check_definition(self, kind: Resource, body: Json) -> None:
        definition = self.get("customresourcedefinitions", "", kind.key)
        if definition is not None and is_deleting(definition):
            metadata = body.get("metadata") or {}
            why = "create not allowed while custom resource definition is terminating"
            raise api_errors.forbidden(kind.group, kind.plural, metadata.get("name", ""), why, [])

    def _check_namespace(self, kind: Resource, namespace: str, body: Json) -> None:
        if not kind.namespaced:  # one that it states is dropped
            return
        stated = (body.get("metadata") or {}).get("namespace")
        if stated and stated != namespace:
            raise api_errors.bad_request(
                "the namespace of the provided object does not match the namespace sent on the "
                "request"
            )
        home = self.require("namespaces", "", namespace)
        if "deletionTimestamp" in home["metadata"]:
            name = (body.get("metadata") or {}).get("name", "")
            why = (
                f"unable to create new content in namespace {namespace} because it is being "
                "terminated"
            )
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
            raise api_errors.forbidden(kind.group, kind.plural, name, why, [cause])

    def _check_identity(
        self, kind: Resource, old: Json, body: Json, needs_version: bool = False
    ) -> None:
        metadata, known = body.get("metadata") or {}, old["metadata"]
        stated = metadata.get("name")
        if stated and stated != known["name"]:
            raise api_errors.bad_request(
                f"the name of the object ({stated}) does not match the name on the URL "
                f"({known['name']})"
            )
        uid = metadata.get("uid")
        if uid and uid != known["uid"]:
            why = (
                f"Precondition failed: UID in precondition: {uid}, "
                f"UID in object meta: {known['uid']}"
            )
            raise api_errors.conflict(kind.group, kind.plural, known["name"], why)
        version = metadata.get("resourceVersion")
        if needs_version and not version:
            error = api_errors.invalid_value(
                "metadata.resourceVersion", 0, "must be specified for an update"
            )
            raise api_errors.invalid(kind.group, kind.plural, known["name"], [error])
        if version and version != known["resourceVersion"]:
            why = (
                "the object has been modified; please apply your changes to the latest version "
                "and try again"
            )
            raise api_errors.conflict(kind.group, kind.plural, known["name"], why)

    def _check_preconditions(
        self, kind: Resource, old: Json, uid: str | None, version: str | None
    ) -> None:
        metadata = old["metadata"]
        why = ""
        if uid is not None and uid != metadata["uid"]:
            why = (
                f"the UID in the precondition ({uid}) does not match the UID in record "
                f"({metadata['uid']}). The object might have been deleted and then recreated"
            )
        elif version is not None and version != metadata["resourceVersion"]:
            why = (
                f"the ResourceVersion in the precondition ({version}) does not match the "
                f"ResourceVersion in record ({metadata['resourceVersion']}). The object might have "
                "been modified"
            )
        if why:
            is_other = kind.key in ("customresourcedefinitions", "namespaces")  # other storages
            named = kind.plural if is_other else kind.kind
            raise api_errors.conflict(kind.group, named, metadata["name"], why)

    def _unused_name(self, resource: str, namespace: str, base: str) -> str:
        name = names.generate(base)
        while self.get(resource, namespace, name) is not None:
            name = names.generate(base)
        return name

    # --- storing and notifying ------------------------------------------------------------------

    def _commit(self, event: str, kind: Resource, new: Json, old: Json | None) -> Json:
        self._version += 1
        metadata = new["metadata"]
        metadata["resourceVersion"] = str(self._version)
        space = self._objects.setdefault(kind.key, {}).setdefault(metadata.get("namespace", ""), {})
        space[metadata["name"]] = new
        if kind.key == "customresourcedefinitions" and is_established(new):
            self.catalogue.serve(of_definition(new))
        self._notify(event, kind.key, new, old)
        return new

    def _remove(self, kind: Resource, last: Json) -> None:
        metadata = last["metadata"]
        space = self._objects[kind.key][metadata.get("namespace", "")]
        old = space.pop(metadata["name"])
        self._version += 1
        gone = {**last, "metadata": {**metadata, "resourceVersion": str(self._version)}}
        if kind.key == "customresourcedefinitions":
            self.catalogue.forget(metadata["name"])
        self._notify("DELETED", kind.key, gone, old)

    def _notify(self, event: str, resource: str, new: Json, old: Json | None) -> None:
        """Call the subscribers. If one of them writes, its event waits for this one."""
        self._events.append((event, resource, new, old))
        if self._notifying:
            return
        self._notifying = True
        try:
            while self._events:
                entry = self._events.popleft()
                for callback in list(self._subscribers):
                    callback(*entry)
        finally:
            self._notifying = False


def is_finished(kind: Resource, new: Json) -> bool:
    """Return whether the object is deleted and nothing holds it any more."""
    metadata = new["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    if kind.key == "namespaces":
        return not new.get("spec", {}).get("finalizers")
    return not metadata.get("deletionGracePeriodSeconds")


def _marked_as_deleted(
    kind: Resource, old: Json, grace_seconds: int | None, propagation: str | None
) -> Json:
    """Return a copy of *old* that is marked as deleted."""
    metadata = dict(old["metadata"])
    new = {**old, "metadata": metadata}
    _set_propagation(kind, metadata, propagation)
    grace = _grace_of(kind, old, grace_seconds)
    if "deletionTimestamp" not in metadata:
        is_definition = kind.key == "customresourcedefinitions"
        if "generation" in metadata and not is_definition:
            metadata["generation"] += 1
        metadata["deletionTimestamp"] = clock.stamp(timedelta(seconds=grace))
        if kind.key != "namespaces" and not is_definition:
            metadata["deletionGracePeriodSeconds"] = grace
    elif grace < metadata.get("deletionGracePeriodSeconds", 0):
        metadata["deletionTimestamp"] = clock.stamp(timedelta(seconds=grace))
        metadata["deletionGracePeriodSeconds"] = grace
    if kind.key == "namespaces":
        new["status"] = {**old.get("status", {}), "phase": "Terminating"}
    if kind.key == "customresourcedefinitions" and not is_deleting(old):
        metadata["finalizers"] = [*metadata.get("finalizers", []), CLEANUP]
    return new


def _grace_of(kind: Resource, old: Json, grace_seconds: int | None) -> int:
    """Return how long the deletion may take: 0 except for a pod that runs on a node."""
    if kind.key != "pods":
        return 0
    finished = old.get("status", {}).get("phase") in ("Succeeded", "Failed")
    if finished or not old["spec"].get("nodeName"):
        return 0
    if grace_seconds is not None:
        return max(grace_seconds, 0)
    return int(old["spec"].get("terminationGracePeriodSeconds", 30))


def _set_propagation(kind: Resource, metadata: Json, propagation: str | None) -> None:
    if propagation is None and kind.key in ("jobs", "replicationcontrollers"):
        propagation = "Orphan"  # the default of their API
    if propagation is None:
        return
    added = _PROPAGATION_FINALIZERS.get(propagation)
    others = metadata.pop("finalizers", [])
    finalizers = [entry for entry in others if entry not in _PROPAGATION_FINALIZERS.values()]
    if added or finalizers:
        metadata["finalizers"] = [*finalizers, added] if added else finalizers
