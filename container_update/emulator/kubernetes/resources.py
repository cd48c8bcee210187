# SPDX-License-Identifier: Apache-2.0
"""The kinds that the server serves: the table behind routes, rules and discovery documents."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from container_update.emulator.json_type import Json

ESTABLISHED = "Established"
"""The condition of a CustomResourceDefinition whose objects are served."""
ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True)
class Subresource:
    """A subresource of a kind."""

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    """The group of *kind*, if it is not that of the resource."""
    version: str = ""


def _status(kind: str) -> Subresource:
    return Subresource("status", kind, ("get", "patch", "update"))


SCALE = Subresource("scale", "Scale", ("get", "patch", "update"), "autoscaling", "v1")


@dataclass(frozen=True)
class Resource:
    """A kind and how it is served."""

    plural: str
    kind: str
    group: str = ""
    versions: tuple[str, ...] = ("v1",)
    """The preferred one first."""
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    namespaced: bool = True
    subresources: tuple[Subresource, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    generation: bool = False
    """Changes of the spec are counted in ``metadata.generation``."""
    custom: bool = False
    """Served because of a CustomResourceDefinition."""
    schemas: Mapping[str, Json] = field(default_factory=dict, compare=False, repr=False)
    """Of a custom one: the schema of each version."""
    is_versioned: bool = False
    """A replacement has to have the resourceVersion that it replaces."""
    returns_deleted: bool = False
    """A deletion is answered with the object, even if it is removed at once."""

    @property
    def api_version(self) -> str:
        """The group with the preferred version, as in ``apiVersion``."""
        return self.group_version(self.versions[0])

    def group_version(self, version: str) -> str:
        """Return the group with *version*, as in ``apiVersion``."""
        return f"{self.group}/{version}" if self.group else version

    @property
    def key(self) -> str:
        """Its name in the registry: the plural; for a custom resource with the group."""
        return f"{self.plural}.{self.group}" if self.custom else self.plural

    @property
    def list_kind(self) -> str:
        """The kind of a list of its objects."""
        return f"{self.kind}List"

    def subresource(self, name: str) -> Subresource | None:
        """Return the subresource of that name, or None."""
        return next((entry for entry in self.subresources if entry.name == name), None)

    @property
    def is_stored(self) -> bool:
        """Whether objects of the kind exist: a review is answered, and that is all."""
        return self.verbs != _CREATED

    @property
    def has_status(self) -> bool:
        """Whether its status is a subresource."""
        return self.subresource("status") is not None


def _in_group(group: str, plural: str, kind: str, *short_names: str, **options: Any) -> Resource:
    subresources: tuple[Subresource, ...] = options.pop("subresources", ())
    if options.pop("status", False):
        subresources += (_status(kind),)
    options["subresources"] = tuple(sorted(subresources, key=lambda entry: entry.name))
    return Resource(plural, kind, group, singular=kind.lower(), short_names=short_names, **options)


_core = functools.partial(_in_group, "")


_POD_PATHS = (
    Subresource("binding", "Binding", ("create",)),
    Subresource("ephemeralcontainers", "Pod", ("get", "patch", "update")),
    Subresource("eviction", "Eviction", ("create",), "policy", "v1"),
    Subresource("log", "Pod", ("get",)),
)
_ALL = ("all",)
_APPS = "apps"
_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
_AUTHORIZATION = "authorization.k8s.io"
_FLOW = "flowcontrol.apiserver.k8s.io"
_STORAGE = "storage.k8s.io"

_CREATED = ("create",)
"""The verbs of what is answered and not stored."""
_NO_NAMESPACE: Json = {"namespaced": False}
_EXTENSION: Json = {
    "namespaced": False, "generation": True, "is_versioned": True,
    "categories": ("api-extensions",),
}  # fmt: skip
_REVIEW: Json = {"namespaced": False, "verbs": _CREATED}

BUILT_IN: tuple[Resource, ...] = (
    _core("bindings", "Binding", verbs=_CREATED),
    _core("componentstatuses", "ComponentStatus", "cs", namespaced=False, verbs=("get", "list")),
    _core("configmaps", "ConfigMap", "cm"),
    _core("endpoints", "Endpoints", "ep"),
    _core("events", "Event", "ev"),
    _core("limitranges", "LimitRange", "limits"),
    _core(
        "namespaces", "Namespace", "ns", namespaced=False, status=True,
        verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
        subresources=(Subresource("finalize", "Namespace", ("update",)),),
    ),
    _core("nodes", "Node", "no", namespaced=False, status=True),
    _core(
        "persistentvolumeclaims", "PersistentVolumeClaim", "pvc", status=True, returns_deleted=True
    ),
    _core(
        "persistentvolumes", "PersistentVolume", "pv", namespaced=False, status=True,
        returns_deleted=True,
    ),
    _core(
        "pods", "Pod", "po", categories=_ALL, subresources=_POD_PATHS, status=True,
        generation=True, returns_deleted=True,
    ),
    _core("podtemplates", "PodTemplate", generation=True, returns_deleted=True),
    _core(
        "replicationcontrollers", "ReplicationController", "rc", categories=_ALL,
        subresources=(SCALE,), status=True, generation=True,
    ),
    _core("resourcequotas", "ResourceQuota", "quota", status=True, returns_deleted=True),
    _core("secrets", "Secret"),
    _core(
        "serviceaccounts", "ServiceAccount", "sa", returns_deleted=True,
        subresources=(
            Subresource("token", "TokenRequest", ("create",), "authentication.k8s.io", "v1"),
        ),
    ),
    _core("services", "Service", "svc", categories=_ALL, status=True, returns_deleted=True),
    _in_group(_APPS, "controllerrevisions", "ControllerRevision"),
    _in_group(
        _APPS, "daemonsets", "DaemonSet", "ds", categories=_ALL, status=True, generation=True
    ),
    _in_group(
        _APPS, "deployments", "Deployment", "deploy", categories=_ALL, subresources=(SCALE,),
        status=True, generation=True,
    ),
    _in_group(
        _APPS, "replicasets", "ReplicaSet", "rs", categories=_ALL, subresources=(SCALE,),
        status=True, generation=True,
    ),
    _in_group(
        _APPS, "statefulsets", "StatefulSet", "sts", categories=_ALL, subresources=(SCALE,),
        status=True, generation=True,
    ),
    _in_group(
        "autoscaling", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa",
        categories=_ALL, status=True, versions=("v2", "v1"),
    ),
    _in_group(
        "batch", "cronjobs", "CronJob", "cj", categories=_ALL, status=True, generation=True
    ),
    _in_group("batch", "jobs", "Job", categories=_ALL, status=True, generation=True),
    _in_group(
        "networking.k8s.io", "ingresses", "Ingress", "ing", status=True, generation=True
    ),
    _in_group("networking.k8s.io", "ingressclasses", "IngressClass", namespaced=False,
              generation=True),
    _in_group("networking.k8s.io", "ipaddresses", "IPAddress", "ip", namespaced=False),
    _in_group(
        "networking.k8s.io", "networkpolicies", "NetworkPolicy", "netpol", generation=True
    ),
    _in_group("networking.k8s.io", "servicecidrs", "ServiceCIDR", namespaced=False, status=True),
    _in_group(
        "policy", "poddisruptionbudgets", "PodDisruptionBudget", "pdb", status=True,
        generation=True, is_versioned=True,
    ),
    _in_group(_RBAC, "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    _in_group(_RBAC, "clusterroles", "ClusterRole", namespaced=False),
    _in_group(_RBAC, "rolebindings", "RoleBinding"),
    _in_group(_RBAC, "roles", "Role"),
    _in_group(_STORAGE, "csidrivers", "CSIDriver", is_versioned=True, returns_deleted=True,
              **_NO_NAMESPACE),
    _in_group(_STORAGE, "csinodes", "CSINode", **_NO_NAMESPACE),
    _in_group(_STORAGE, "csistoragecapacities", "CSIStorageCapacity"),
    _in_group(_STORAGE, "storageclasses", "StorageClass", "sc", returns_deleted=True,
              **_NO_NAMESPACE),
    _in_group(_STORAGE, "volumeattachments", "VolumeAttachment", status=True, **_NO_NAMESPACE),
    _in_group(_STORAGE, "volumeattributesclasses", "VolumeAttributesClass", "vac",
              **_NO_NAMESPACE),
    _in_group("scheduling.k8s.io", "priorityclasses", "PriorityClass", "pc", namespaced=False,
              generation=True),
    _in_group("node.k8s.io", "runtimeclasses", "RuntimeClass", is_versioned=True, **_NO_NAMESPACE),
    _in_group(
        "certificates.k8s.io", "certificatesigningrequests", "CertificateSigningRequest", "csr",
        status=True, **_NO_NAMESPACE,
        subresources=(
            Subresource("approval", "CertificateSigningRequest", ("get", "patch", "update")),
        ),
    ),
    _in_group(_ADMISSION, "mutatingadmissionpolicies", "MutatingAdmissionPolicy", **_EXTENSION),
    _in_group(_ADMISSION, "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding",
              **_EXTENSION),
    _in_group(_ADMISSION, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration",
              **_EXTENSION),
    _in_group(_ADMISSION, "validatingadmissionpolicies", "ValidatingAdmissionPolicy",
              status=True, **_EXTENSION),
    _in_group(_ADMISSION, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding",
              **_EXTENSION),
    _in_group(_ADMISSION, "validatingwebhookconfigurations", "ValidatingWebhookConfiguration",
              **_EXTENSION),
    _in_group(
        "apiregistration.k8s.io", "apiservices", "APIService", status=True, namespaced=False,
        is_versioned=True, categories=("api-extensions",),
    ),
    _in_group("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview", **_REVIEW),
    _in_group("authentication.k8s.io", "tokenreviews", "TokenReview", **_REVIEW),
    _in_group(_AUTHORIZATION, "localsubjectaccessreviews", "LocalSubjectAccessReview",
              verbs=_CREATED),
    _in_group(_AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview", **_REVIEW),
    _in_group(_AUTHORIZATION, "selfsubjectrulesreviews", "SelfSubjectRulesReview", **_REVIEW),
    _in_group(_AUTHORIZATION, "subjectaccessreviews", "SubjectAccessReview", **_REVIEW),
    _in_group(_FLOW, "flowschemas", "FlowSchema", status=True, generation=True, **_NO_NAMESPACE),
    _in_group(_FLOW, "prioritylevelconfigurations", "PriorityLevelConfiguration", status=True,
              generation=True, **_NO_NAMESPACE),
    _in_group("resource.k8s.io", "deviceclasses", "DeviceClass", namespaced=False,
              generation=True, returns_deleted=True),
    _in_group("resource.k8s.io", "resourceclaims", "ResourceClaim", status=True,
              returns_deleted=True),
    _in_group("resource.k8s.io", "resourceclaimtemplates", "ResourceClaimTemplate",
              returns_deleted=True),
    _in_group("resource.k8s.io", "resourceslices", "ResourceSlice", namespaced=False,
              generation=True),
    _in_group(
        "apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", "crd",
        "crds", namespaced=False, status=True, generation=True, is_versioned=True,
        categories=("api-extensions",),
    ),
    _in_group("coordination.k8s.io", "leases", "Lease", is_versioned=True),
    _in_group("discovery.k8s.io", "endpointslices", "EndpointSlice", generation=True),
)  # fmt: skip
"""The kinds of Kubernetes 1.36 that are served from the start."""

BUILT_IN_GROUPS = frozenset(kind.group for kind in BUILT_IN if kind.group)


def of_definition(definition: Json) -> Resource:
    """Return the resource that a CustomResourceDefinition defines."""
    spec = definition["spec"]
    names = spec["names"]
    served = [version for version in spec.get("versions", []) if version.get("served")]
    stored_first = sorted(served, key=lambda version: not version.get("storage"))
    kind = names["kind"]
    below = stored_first[0].get("subresources", {}) if stored_first else {}
    subresources = (_status(kind),) if "status" in below else ()
    return Resource(
        names["plural"],
        kind,
        spec["group"],
        versions=tuple(version["name"] for version in stored_first) or ("v1",),
        singular=names.get("singular") or kind.lower(),
        short_names=tuple(names.get("shortNames", ())),
        categories=tuple(names.get("categories", ())),
        namespaced=spec.get("scope", "Namespaced") == "Namespaced",
        subresources=subresources,
        generation=True,
        is_versioned=True,
        custom=True,
        schemas={
            version["name"]: (version.get("schema") or {}).get("openAPIV3Schema") or {}
            for version in served
        },
    )


@dataclass
class Catalogue:
    """The kinds served now: the built-in ones, and those of CustomResourceDefinitions."""

    _by_key: dict[str, Resource] = field(
        default_factory=lambda: {entry.key: entry for entry in BUILT_IN}
    )

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._by_key.values())

    def __getitem__(self, key: str) -> Resource:
        return self._by_key[key]

    def serve(self, resource: Resource) -> None:
        """Add a kind, or replace it."""
        self._by_key[resource.key] = resource

    def forget(self, key: str) -> None:
        """Remove a kind; do nothing if it is unknown."""
        self._by_key.pop(key, None)

    def at(self, group: str, version: str, plural: str) -> Resource | None:
        """Return the resource that is served at that path, or None."""
        for key in (plural, f"{plural}.{group}"):
            resource = self._by_key.get(key)
            if resource and resource.group == group and version in resource.versions:
                return resource
        return None
