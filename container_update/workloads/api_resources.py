# SPDX-License-Identifier: Apache-2.0
"""The URLs of objects at the API server: of known kinds, or looked up in discovery.

Source: Kubernetes API concepts, "Resource URIs".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from container_update.model.errors import ClusterError
from container_update.model.objects import CLUSTER_SCOPED, Collection, Json, ObjectKey

LOG = logging.getLogger(__name__)

_KNOWN: Mapping[str, tuple[str, ...]] = {
    "": ("ConfigMap", "Event", "Namespace", "Pod", "Secret", "Service", "ServiceAccount"),
    "apps": ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
    "batch": ("CronJob", "Job"),
    "coordination.k8s.io": ("Lease",),
    "discovery.k8s.io": ("EndpointSlice",),
    "policy": ("PodDisruptionBudget",),
}
"""By group, kinds whose URL is known without discovery: of version v1, with a regular plural."""
_BUILT_IN = frozenset(
    {
        *_KNOWN,
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "certificates.k8s.io",
        "events.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    }
)
"""The groups that kube-apiserver serves itself, with dry run for each kind (since 1.18)."""


def has_known_url(group: str, kind: str) -> bool:
    """Tell whether the URL of a kind is known without discovery, and so what the kind is."""
    return kind in _KNOWN.get(group, ())


def is_built_in(group: str) -> bool:
    """Tell whether the API server itself has the kinds of a group."""
    return group in _BUILT_IN


class Resources:
    """The kinds of one API server.

    :param get: requests a path of discovery; its second argument is the purpose, for messages, the
        third one reads the answer. Its errors are not caught.
    """

    def __init__(self, get: Callable[[str, str, Callable[[Json], Any]], Any]) -> None:
        self._get = get
        self._discovered: dict[tuple[str, str, str], tuple[str, str, bool]] = {}
        """By group, kind and the version that was wanted: the names, and whether it has one of the
        namespaces."""
        self._dry_runs: dict[tuple[str, str, str], bool] = {}
        """By group, kind and method: whether it can be a dry run."""

    def object_path(self, key: ObjectKey) -> str:
        """Return the path of an object's URL, in the version of its key where that is served.

        :raises ClusterError: its name leads elsewhere; a record in the cluster may say so.
        """
        if not key.is_valid:
            raise ClusterError(f"{key}: expected the name of an object")
        return f"{self.collection_path(Collection.of(key), key.api_version)}/{key.name}"

    def collection_path(self, collection: Collection, wanted: str = "") -> str:
        """Return the path of the URL where objects are listed and created; see :meth:`names`."""
        group, kind = collection.group, collection.kind
        version, plural, is_namespaced = self._resource(group, kind, wanted)
        prefix = f"/apis/{version}" if group else f"/api/{version}"
        if collection.namespace and is_namespaced:
            prefix += f"/namespaces/{collection.namespace}"
        return f"{prefix}/{plural}"

    def names(self, group: str, kind: str, wanted: str = "") -> tuple[str, str]:
        """Return (apiVersion, plural) of a kind.

        :param wanted: an apiVersion: it is this one where it is served, else the preferred one.
        :raises ClusterError: with status 404: the cluster does not serve it.
        """
        return self._resource(group, kind, wanted)[:2]

    def declares_dry_run(self, group: str, kind: str, wanted: str, method: str) -> bool:
        """Tell whether the server of a kind says that a request may be a dry run.

        An extension API server may know none, and carry the request out. kubectl asks the same way,
        for the parameter ``dryRun`` in the OpenAPI document of the version.

        :param method: of the request: POST or PUT.
        """
        if is_built_in(group):
            return True
        asked = group, kind, method
        if asked not in self._dry_runs:
            self._dry_runs[asked] = self._has_dry_run(*asked, self.names(group, kind, wanted)[0])
        return self._dry_runs[asked]

    def _has_dry_run(self, group: str, kind: str, method: str, version: str) -> bool:
        what = f"ask whether {kind} of group {group} can be tried by a dry run"

        def read(document: Json) -> bool:
            for path in (document.get("paths") or {}).values():
                action = path.get(method.lower()) or {}
                if (action.get("x-kubernetes-group-version-kind") or {}).get("kind") == kind:
                    own, common = (each.get("parameters") or () for each in (action, path))
                    return any(each.get("name") == "dryRun" for each in (*common, *own))
            return False

        try:
            return bool(self._get(f"/openapi/v3/apis/{version}", what, read))
        except ClusterError as error:
            if error.transient or error.status is None:
                raise
            return False  # it says nothing of its kinds, or too much to be read

    def look_up_versions(self, group: str, kind: str) -> frozenset[str]:
        """Ask anew in which apiVersions the server serves a kind, and forget what it served."""
        for known in [each for each in self._discovered if each[0] == group]:
            self._discovered.pop(known, None)
        what = f"look up the versions of the kind {kind} of group {group or 'core'}"
        return frozenset(
            version
            for version in self._versions(group, what)
            if any(each == kind for each, _, _ in self._kinds(version, group, what))
        )

    def everything(self) -> tuple[str, ...]:
        """Return the versions of all groups, and the kinds in each, as Helm names them.

        A version whose extension API server is away has no kinds.
        """
        what = "look up what the API server serves"

        def read(answer: Json) -> list[str]:
            versions = (each for group in answer["groups"] for each in group["versions"])
            return [each["groupVersion"] for each in versions]

        names = dict.fromkeys(self._get("/apis", what, read))
        for version in ("v1", *names):
            try:
                kinds = self._kinds(version, version.partition("/")[1], what)
            except ClusterError as error:
                if error.status is None:
                    raise
                LOG.info("the kinds of %s are not known: %s", version, error)
                kinds = ()
            names |= dict.fromkeys([version, *(f"{version}/{kind}" for kind, _, _ in kinds)])
        return tuple(names)

    def _kinds(self, version: str, group: str, what: str) -> Sequence[tuple[str, str, bool]]:
        """Return kind, plural and whether it has a namespace of each resource that is served."""

        def read(answer: Json) -> list[tuple[str, str, bool]]:
            resources = answer["resources"]
            return [(e["kind"], e["name"], bool(e.get("namespaced", True))) for e in resources]

        root = f"/apis/{version}" if group else f"/api/{version}"
        found: Sequence[tuple[str, str, bool]] = self._get_if_served(root, what, read)
        return found

    def _resource(self, group: str, kind: str, wanted: str) -> tuple[str, str, bool]:
        if has_known_url(group, kind):
            version = f"{group}/v1" if group else "v1"
            return version, f"{kind.lower()}s", (group, kind) not in CLUSTER_SCOPED
        if (known := self._discovered.get((group, kind, wanted))) is not None:
            return known
        resource = self._discover(group, kind, wanted)
        if wanted in ("", resource[0]):  # another one may be served later on
            self._discovered[group, kind, wanted] = resource
        return resource

    def _discover(self, group: str, kind: str, wanted: str) -> tuple[str, str, bool]:
        named = f"the kind {kind} of group {group or 'core'}"
        what = f"look up {named}"
        for version in sorted(self._versions(group, what), key=lambda each: each != wanted):
            for served, plural, is_namespaced in self._kinds(version, group, what):
                if served == kind and "/" not in plural:
                    return version, plural, is_namespaced and (group, kind) not in CLUSTER_SCOPED
        raise ClusterError(
            f"the cluster does not serve {named}: install its CustomResourceDefinition, or correct "
            "apiVersion and kind in the manifest",
            status=404,
        )

    def _versions(self, group: str, what: str) -> tuple[str, ...]:
        """Return the versions of a group, the preferred one first: not every kind is in that."""
        if not group:
            return ("v1",)

        def read(answer: Json) -> tuple[str, ...]:
            versions = (answer["preferredVersion"], *(answer.get("versions") or ()))
            return tuple(dict.fromkeys(each["groupVersion"] for each in versions))

        found: tuple[str, ...] = self._get_if_served(f"/apis/{group}", what, read)
        return found

    def _get_if_served(self, path: str, what: str, read: Callable[[Json], Any]) -> Any:
        try:
            return self._get(path, what, read)
        except ClusterError as error:
            if error.status != 404:
                raise
            return ()
