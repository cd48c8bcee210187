# SPDX-License-Identifier: Apache-2.0
"""Objects of the Kubernetes API: their identity, and where a package describes them.

They are plain dicts, exactly as the server sent them (:data:`Json`); our own values are frozen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
"""An object as the API server sends it and as YAML spells it."""

INSTANCE_LABEL = "tacker_vnf_instance_id"
"""The label that Tacker puts on the objects it creates: the VNF instance's id."""

DIGEST_ANNOTATION = "container-update/manifest-digest"
"""On an object: the digest of the manifest that it was last made from."""


def instance_of(live: Json) -> str | None:
    """Return the id of the VNF instance in an object's label, None where it has none."""
    return (live["metadata"].get("labels") or {}).get(INSTANCE_LABEL) or None


def is_of(instance_id: str | None, live: Json) -> bool:
    """Tell whether an object bears the label of an instance; of one without an id, none does."""
    return instance_id is not None and instance_of(live) == instance_id


KEEP_ANNOTATION = "helm.sh/resource-policy"
"""``keep``: no operation of Helm or of this program deletes the object."""


def is_kept(live: Json) -> bool:
    """Tell whether the annotation of an object says that no operation deletes it."""
    said = (live["metadata"].get("annotations") or {}).get(KEEP_ANNOTATION)
    return str(said).strip().lower() == "keep"  # as Helm reads it


_SERVER_METADATA = frozenset(
    {
        *("creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation"),
        *("managedFields", "resourceVersion", "selfLink", "uid"),
    }
)
"""Metadata that the server sets."""


def without_server_fields(body: Json) -> Json:
    """Return an object without what only the server sets: a new one must not bring it along, and
    no manifest that was exported from a cluster means it (``kubectl get -o yaml``).

    >>> without_server_fields({"metadata": {"name": "a", "uid": "7"}, "status": {}})
    {'metadata': {'name': 'a'}}
    """
    metadata = {name: v for name, v in body["metadata"].items() if name not in _SERVER_METADATA}
    content = {name: value for name, value in body.items() if name != "status"}
    return {**content, "metadata": metadata}


DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")
"""The group and kind of an object that defines a kind."""
CLUSTER_SCOPED = frozenset(
    (group, kind)
    for group, kinds in {
        "": "Namespace Node PersistentVolume",
        "admissionregistration.k8s.io": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding "
        "MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding "
        "ValidatingWebhookConfiguration",
        "apiextensions.k8s.io": "CustomResourceDefinition",
        "apiregistration.k8s.io": "APIService",
        "certificates.k8s.io": "CertificateSigningRequest ClusterTrustBundle",
        "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
        "networking.k8s.io": "IPAddress IngressClass ServiceCIDR",
        "node.k8s.io": "RuntimeClass",
        "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding",
        "resource.k8s.io": "DeviceClass DeviceTaintRule ResourceSlice",
        "scheduling.k8s.io": "PriorityClass",
        "storage.k8s.io": "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass",
    }.items()
    for kind in kinds.split()
)
"""(group, kind) of the built-in cluster-scoped kinds (Kubernetes API reference)."""


@dataclass(frozen=True, order=True)
class ObjectKey:
    """What makes two manifests the same object: ConfigMap x and Secret x are two objects."""

    group: str
    """The API group, '' for the core group; without the version: apps/v1 and apps/v1beta1 agree."""
    kind: str
    namespace: str
    """'' for an object that lives in no namespace."""
    name: str
    api_version: str = field(default="", compare=False, repr=False)
    """As the object or manifest states it: the version in which it is read where the server serves
    it in several. No part of the identity."""

    @classmethod
    def of(cls, body: Mapping[str, Any], default_namespace: str = "") -> ObjectKey:
        """Return the identity of an object or manifest.

        :param default_namespace: its namespace, if it names none.
        """
        version, kind = str(body.get("apiVersion", "")), str(body["kind"])
        group, _, _ = version.rpartition("/")
        metadata = body["metadata"]
        namespace = metadata.get("namespace") or default_namespace
        if (group, kind) in CLUSTER_SCOPED:
            namespace = ""
        return cls(group, kind, str(namespace), str(metadata["name"]), version)

    def as_dict(self) -> dict[str, str]:
        """Return what identifies the object."""
        return {name: getattr(self, name) for name in ("group", "kind", "namespace", "name")}

    @property
    def is_config(self) -> bool:
        """The object holds configuration: a ConfigMap or a Secret of the core group."""
        return self.group == "" and self.kind in ("ConfigMap", "Secret")

    @property
    def is_valid(self) -> bool:
        """No part leads elsewhere as a part of a URL."""
        parts = self.as_dict().values()
        return all(
            part.isprintable() and not set(part) & set("/?%") and part not in (".", "..")
            for part in parts
        )

    def __str__(self) -> str:
        namespace = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {namespace}{self.name}"


def namespace_key(name: str) -> ObjectKey:
    """Return the identity of a Namespace."""
    return ObjectKey("", "Namespace", "", name)


FieldPath = tuple[str | int, ...]
"""The keys and the indexes of lists that lead to a field."""


def get_at(value: Any, path: FieldPath) -> Any:
    """Return the field at a path; None if there is none."""
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


@dataclass(frozen=True)
class Source:
    """Where a manifest, or a field of it, is written."""

    path: str
    """The def-file as the package names it."""
    line: int
    """Its first line, from 1; 0: it is not in a file."""
    line_of: Callable[[FieldPath], int] | None = field(default=None, repr=False, compare=False)
    """Returns the line of a field of the object, or of the nearest one around it; None: unknown."""

    def of(self, path: FieldPath) -> Source:
        """Return where a field of the object is written; where the object is if that is unknown."""
        return self if self.line_of is None else Source(self.path, self.line_of(path))

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else self.path


@dataclass(frozen=True)
class Manifest:
    """One object of a def-file."""

    key: ObjectKey
    body: Json = field(repr=False)
    source: Source
    otherwise: Json | None = field(default=None, repr=False)
    """The body as the other one of ``kubectl`` and Tacker reads it, where the file has no line end
    and that makes a difference; else None."""


@dataclass(frozen=True, order=True)
class Collection:
    """All objects of a kind in a namespace: the unit of lists and watches."""

    group: str
    kind: str
    namespace: str
    fields: str = ""
    labels: str = ""
    """A field selector and a label selector, to list only some of them."""

    @classmethod
    def of(cls, key: ObjectKey) -> Collection:
        """Return the collection that an object belongs to."""
        return cls(key.group, key.kind, key.namespace)

    @property
    def selectors(self) -> dict[str, str]:
        """The selectors as the parameters of a request."""
        given = {"fieldSelector": self.fields, "labelSelector": self.labels}
        return {name: value for name, value in given.items() if value}

    def __str__(self) -> str:
        where = f"namespace {self.namespace}" if self.namespace else "all namespaces"
        return f"{self.kind}s in {where}"


def merge_patch(base: Any, patch: Any) -> Any:
    """Return *base* with a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(base) if isinstance(base, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return result
