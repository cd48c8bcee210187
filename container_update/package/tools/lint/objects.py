# SPDX-License-Identifier: Apache-2.0
"""Rules about the Kubernetes objects of a package."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from container_update.model.objects import FieldPath, Manifest, ObjectKey, get_at
from container_update.package.tools.lint.finding import Finding
from container_update.package.tools.lint.subject import Subject
from container_update.workloads.config_references import Use, uses
from container_update.workloads.pod_template import pod_spec, pod_template, template_path


def duplicates(subject: Subject) -> Iterator[Finding]:
    """Check that no object is defined twice: it would be unclear which definition is used."""
    first: dict[ObjectKey, Manifest] = {}
    for manifest in subject.manifests:
        earlier = first.setdefault(manifest.key, manifest)
        if earlier is not manifest:
            yield Finding.warning(
                manifest.source,
                f"{manifest.key} is also defined at {earlier.source}",
                "remove one definition, or list only one of the files as def-files of an instance",
            )


def references(subject: Subject) -> Iterator[Finding]:
    """Check that pods find every ConfigMap, Secret and key they use; a pod waits for them."""
    config = {manifest.key: manifest for manifest in subject.manifests if manifest.key.is_config}
    for manifest in subject.workloads:
        for use in uses(pod_spec(manifest.body)):
            key = ObjectKey("", use.kind, manifest.key.namespace, use.name)
            if not use.optional and (key in config or subject.is_complete):
                yield from _reference(manifest, use, key, config.get(key))


def _reference(
    manifest: Manifest, use: Use, key: ObjectKey, target: Manifest | None
) -> Iterator[Finding]:
    place = (*template_path(manifest.body), "spec", *use.path)
    if target is None:
        field = "secretName" if place[-1] == "secret" else "name"
        yield Finding.warning(
            manifest.source.of((*place, field)),
            f"{use.what} of {manifest.key} uses {use.kind} {use.name}, which is in no manifest",
            "add it to the package, or create it in the namespace before the VNF is instantiated",
        )
        return
    fields = ("data", "binaryData", "stringData")
    keys = {name for field in fields for name in target.body.get(field) or ()}
    for name in sorted((use.keys or frozenset()) - keys):
        yield Finding.error(
            manifest.source.of((*place, *_key_at(get_at(manifest.body, place), name))),
            f"{use.what} of {manifest.key} uses the key {name}, which {key} does not have"
            f" ({target.source}): the container does not start",
            "correct the name of the key, or add the key",
        )


def _key_at(reference: Any, key: str) -> FieldPath:
    """Return where a reference to a ConfigMap or Secret names a key."""
    for index, item in enumerate(reference.get("items") or ()):
        if item.get("key") == key:
            return "items", index, "key"
    return ("key",)


def namespaces(subject: Subject) -> Iterator[Finding]:
    """Check that manifests set no namespace: Tacker uses the one of the request instead."""
    for manifest in subject.manifests:
        namespace = manifest.body["metadata"].get("namespace")
        if namespace and manifest.key.namespace:
            yield Finding.warning(
                manifest.source.of(("metadata", "namespace")),
                f"{manifest.key} sets metadata.namespace: if the instantiate request names another"
                " namespace, Tacker creates the object there, and an update does not find it",
                "remove metadata.namespace, and set additionalParams.namespace in the request, a"
                " different one for each CNF",
            )


def recommendations(subject: Subject) -> Iterator[Finding]:
    """Check what makes a CNF easy to update and to look after."""
    for manifest in subject.manifests:
        key, body = manifest.key, manifest.body
        if key.is_config and body.get("immutable") is True:
            yield Finding.note(
                manifest.source.of(("immutable",)),
                f"{key} is immutable: an update cannot give it other content while a pod that "
                "refers to it runs",
                "give other content another name, with a change of the package, or leave out"
                " immutable: true",
            )
    for manifest in subject.workloads:
        labels = (pod_template(manifest.body).get("metadata") or {}).get("labels") or {}
        if "app.kubernetes.io/name" not in labels:
            yield Finding.note(
                manifest.source.of((*template_path(manifest.body), "metadata", "labels")),
                f"the pods of {manifest.key} have no label app.kubernetes.io/name: CNF"
                " certification recommends it",
                "add the label to the pod template",
            )
