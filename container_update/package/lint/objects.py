"""Rules about the Kubernetes objects of a package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from container_update.model.objects import Manifest, ObjectKey
from container_update.package.lint.finding import Finding, Severity
from container_update.package.lint.subject import Subject
from container_update.workloads.config_references import Use, uses
from container_update.workloads.pod_template import pod_spec, pod_template


def duplicates(subject: Subject) -> Iterator[Finding]:
    """An object that two def-files define is created once, and nobody knows from which."""
    first: dict[ObjectKey, Manifest] = {}
    for manifest in subject.manifests:
        known = first.setdefault(manifest.key, manifest)
        if known is not manifest:
            yield Finding.of(
                Severity.WARNING,
                manifest,
                f"{manifest.key} is defined a second time, after {known.source}",
                "list only one of the two files in an instance's def-files, or remove one",
            )


def references(subject: Subject) -> Iterator[Finding]:
    """A pod waits for ever for a ConfigMap, a Secret or a key of it that is not there."""
    config = {manifest.key: manifest for manifest in subject.manifests if manifest.key.is_config}
    for manifest in subject.workloads:
        for use in uses(pod_spec(manifest.body)):
            if not use.optional:
                yield from _reference(manifest, use, config)


def _reference(
    manifest: Manifest, use: Use, config: Mapping[ObjectKey, Manifest]
) -> Iterator[Finding]:
    key = ObjectKey("", use.kind, manifest.key.namespace, use.name)
    target = config.get(key)
    if target is None:
        yield Finding.of(
            Severity.WARNING,
            manifest,
            f"{use.what} of {manifest.key} uses {use.kind} {use.name}, which no manifest has",
            "add it, or see that it is in the namespace before the VNF is instantiated",
        )
        return
    there = {
        name
        for part in ("data", "binaryData", "stringData")
        for name in target.body.get(part) or ()
    }
    for name in sorted((use.keys or frozenset()) - there):
        yield Finding.of(
            Severity.ERROR,
            manifest,
            f"{use.what} of {manifest.key} uses the key {name} of {key}, which has none of that"
            f" name ({target.source})",
            "correct the key: the container does not start otherwise",
        )


def namespaces(subject: Subject) -> Iterator[Finding]:
    """Tacker creates every object in the namespace of the request, whatever the manifest says."""
    for manifest in subject.manifests:
        namespace = manifest.body["metadata"].get("namespace")
        if namespace and manifest.key.namespace:
            yield Finding.of(
                Severity.WARNING,
                manifest,
                f"{manifest.key} names its namespace: Tacker creates it in the one of the"
                " instantiate request, if that names one, where an update does not look for it",
                "leave the namespace to the request (additionalParams.namespace), one for each CNF",
            )


def habits(subject: Subject) -> Iterator[Finding]:
    """What CNF certification asks for, and what it means to an update."""
    for manifest in subject.manifests:
        key, body = manifest.key, manifest.body
        if key.is_config and key.kind == "ConfigMap" and body.get("immutable") is not True:
            yield Finding.of(
                Severity.NOTE,
                manifest,
                f"{key} is not immutable, which CNF certification asks for",
                "set immutable: true; an update then deletes and creates it again",
            )
    for manifest in subject.workloads:
        template = manifest.body if manifest.key.kind == "Pod" else pod_template(manifest.body)
        labels = (template.get("metadata") or {}).get("labels") or {}
        if "app.kubernetes.io/name" not in labels:
            yield Finding.of(
                Severity.NOTE,
                manifest,
                f"the pods of {manifest.key} have no label app.kubernetes.io/name, which CNF"
                " certification asks for",
                "add the label to the pod template",
            )
