# SPDX-License-Identifier: Apache-2.0
"""``csar check``: what would fail in Tacker is said before a package is uploaded.

Each rule is a function from a package to its findings. The message of a finding says what Tacker
does, because that is what an operator would see.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from container_update.model.errors import PackageError
from container_update.model.objects import FieldPath, Json, Manifest, ObjectKey, Source, get_at
from container_update.model.options import DEFAULTS, Options
from container_update.package import csar, csar_metadata, hot
from container_update.package.csar import Csar
from container_update.package.findings import Finding
from container_update.package.hot_files import base_hot
from container_update.package.tools import build, no_manifests
from container_update.package.vnfd import NODES, Flavour, InterfaceScript, node_path
from container_update.workloads.config_references import Use, uses
from container_update.workloads.pod_template import pod_spec, pod_template, template_path
from container_update.workloads.registry import is_workload

# --- the package, and the conversion of errors to findings --------------------------------------

NAMESPACE = "default"
"""A placeholder for the namespace that an operator chooses at instantiation."""

_LOCATION = re.compile(r"(?P<file>[^\s:]+):(?P<line>\d+): (?P<text>.*)", re.DOTALL)


class Subject:
    """A package, and the parts of it that several rules need, each read once."""

    def __init__(self, package: Csar) -> None:
        self.package = package
        self.names = frozenset(package.names())

    @cached_property
    def vnfd(self) -> tuple[Flavour, ...] | PackageError:
        """The flavours, or why they cannot be read: found out once, as it may take long."""
        try:
            return self.package.flavours
        except PackageError as error:
            return error

    @property
    def flavours(self) -> tuple[Flavour, ...]:
        """The flavours; empty if the VNFD cannot be read, which :func:`unreadable_vnfd` reports."""
        return () if isinstance(self.vnfd, PackageError) else self.vnfd

    @cached_property
    def scripts(self) -> tuple[tuple[Flavour, InterfaceScript], ...]:
        """The scripts of every flavour."""
        return tuple(
            (flavour, script) for flavour in self.flavours for script in flavour.scripts.values()
        )

    @cached_property
    def objects(self) -> Mapping[str, tuple[Manifest, ...] | PackageError]:
        """The objects of each manifest file by its path, or why it cannot be read.

        Of objects that run no containers only what the rules need: a package may be large.
        """
        objects: dict[str, tuple[Manifest, ...] | PackageError] = {}
        for path in self.package.manifest_files():
            try:
                objects[path] = tuple(
                    map(_without_content, self.package.manifests(path, NAMESPACE))
                )
            except PackageError as error:
                cause = error.__cause__  # without the package, which the reader knows
                objects[path] = cause if isinstance(cause, PackageError) else error
        return objects

    @cached_property
    def manifests(self) -> tuple[Manifest, ...]:
        """The objects of every manifest file that can be read."""
        files = self.objects.values()
        return tuple(each for file in files if isinstance(file, tuple) for each in file)

    @property
    def is_complete(self) -> bool:
        """Every manifest can be read: an object in none of them is missing."""
        return not any(isinstance(each, PackageError) for each in self.objects.values())

    @cached_property
    def workloads(self) -> tuple[Manifest, ...]:
        """The manifests that run containers."""
        return tuple(manifest for manifest in self.manifests if is_workload(manifest.key))

    def holds_manifests(self, path: str) -> bool:
        """Tell whether a file that the metadata does not list has objects, or cannot be read."""
        try:
            return bool(self.package.manifests(path, NAMESPACE))
        except PackageError:
            return True

    def source(self, flavour: Flavour, *path: str | int) -> Source:
        """Return where a field of a flavour's file is written."""
        return self.package.definitions.source(flavour.path, path)

    def script_path(self, script: InterfaceScript) -> tuple[str, str] | None:
        """Return the API that a script is for ('v1' or 'v2'), and its path in the package.

        A path in a VNFD is relative to the root of the package in v1, to Definitions/ in v2.

        :returns: None if the file does not exist.
        """
        file = script.file or ""
        v2_path = posixpath.normpath(posixpath.join("Definitions", file))
        for api, path in (("v1", posixpath.normpath(file)), ("v2", v2_path)):
            if path in self.names:
                return api, path
        return None


def _without_content(manifest: Manifest) -> Manifest:
    """Return an object without what no rule looks at: of content the keys are enough."""
    if is_workload(manifest.key):
        return manifest
    key, body, metadata = manifest.key, manifest.body, manifest.body["metadata"]
    needed: Json = {
        name: body[name] for name in ("apiVersion", "kind", "immutable") if name in body
    }
    needed["metadata"] = {name: metadata.get(name) for name in ("name", "namespace")}
    fields: list[FieldPath] = [("metadata", "namespace")] if metadata.get("namespace") else []
    if key.is_config:
        fields.append(("immutable",))
        for name in ("data", "binaryData", "stringData"):
            needed[name] = dict.fromkeys(body.get(name) or ())
    source = manifest.source
    lines = {field: source.of(field).line for field in fields}
    # not a closure, which would keep the source and with it the whole object
    line_of = partial(_line, lines, source.line)
    return replace(manifest, body=needed, source=replace(source, line_of=line_of))


def _line(lines: Mapping[FieldPath, int], line: int, field: FieldPath) -> int:
    return lines.get(field, line)


def to_finding(error: PackageError, path: str) -> Finding:
    """Convert an error to a finding, with file and line if the message begins with them."""
    if match := _LOCATION.fullmatch(str(error)):
        source = Source(match["file"], int(match["line"]))
        return Finding.error(source, match["text"], "correct it")
    return Finding.error(path, str(error), "correct it and build the package again")


# --- rules about the metadata and the files that it lists ---------------------------------------

_ROOT = "."
"""The package as a whole."""


def metadata(subject: Subject) -> Iterator[Finding]:
    """Check that TOSCA.meta names a VNFD in Definitions/, which Tacker's v2 API requires."""
    if not any(
        name.startswith(csar.NO_MANIFESTS) or name.endswith(".mf") for name in subject.names
    ):
        yield Finding.note(
            csar_metadata.TOSCA_META,
            "missing: these are manifests without a package; Tacker takes packages only",
            "for Tacker: container-update csar init",
        )
        return
    if csar_metadata.TOSCA_META not in subject.names:
        yield Finding.error(
            csar_metadata.TOSCA_META,
            "missing: Tacker's v2 API refuses the package (invalid VNFD format)",
            "write it with: container-update csar build",
        )
    if not subject.package.entry_definitions:
        yield Finding.error(
            csar_metadata.TOSCA_META,
            "does not name Entry-Definitions: the package has no VNFD",
            "put the VNFD into Definitions/ as NAME.vnfd.yaml and build the package again",
        )
    elif not subject.package.entry_definitions.startswith("Definitions/"):
        yield Finding.error(
            subject.package.entry_definitions,
            "is not in Definitions/, where Tacker's v2 API looks for the VNFD",
            "move it there and build the package again",
        )


def wrong_hashes(subject: Subject) -> Iterator[Finding]:
    """Check that every listed file exists and has its hash."""
    for artifact in subject.package.artifacts:
        if artifact.path.startswith("Files/images/"):
            continue  # gigabytes that an update does not use
        try:
            subject.package.check_hash(artifact)
        except PackageError as error:
            yield to_finding(error, artifact.path)


def unreadable_manifests(subject: Subject) -> Iterator[Finding]:
    """Check that every manifest is valid, whatever its hash."""
    for path, objects in subject.objects.items():
        if isinstance(objects, PackageError):
            yield to_finding(objects, path)


def unlisted_files(subject: Subject) -> Iterator[Finding]:
    """Check that the metadata lists every manifest: Tacker refuses other def-files."""
    listed = {posixpath.normpath(artifact.path) for artifact in subject.package.artifacts}
    unlisted = sorted(subject.names - listed) if listed else ()
    for name in unlisted:
        is_candidate = name.startswith("Files/") and subject.package.may_hold_manifests(name)
        if is_candidate and subject.holds_manifests(name):
            yield Finding.error(
                name,
                "is not listed in the metadata: Tacker refuses it as a def-file",
                "build the package again: container-update csar build",
            )


def without_manifests(subject: Subject) -> Iterator[Finding]:
    """Check that there is something to install; a chart is installed by Tacker alone."""
    package = subject.package
    if subject.manifests or package.has_templates or not subject.is_complete:
        return
    instead, advice = no_manifests.describe_content(package)
    if package.charts:
        message = f"found {instead} and no manifests: an update does not read charts"
        yield Finding.note(_ROOT, message, advice)
    else:
        yield Finding.error(_ROOT, f"expected manifests, found {instead}", advice)


# --- rules about flavours, VDUs and the scripts of operations -----------------------------------

OPERATION = "modify_information_end"
DRIVER = "mgmt-container-update"
_MAPPINGS = ("topology_template", "substitution_mappings")
_VNFLCM = ("interfaces", "Vnflcm")
_LEVELS = ("properties", "levels")


def unreadable_vnfd(subject: Subject) -> Iterator[Finding]:
    """Check that toscaparser accepts the VNFD: otherwise the package stays CREATED in Tacker."""
    if isinstance(subject.vnfd, PackageError):
        yield to_finding(subject.vnfd, subject.package.entry_definitions)
    for flavour in subject.flavours:
        if not flavour.id:
            yield Finding.error(
                subject.source(flavour, *_MAPPINGS, "properties"),
                "has no substitution_mappings with a flavour_id: the VNF cannot be instantiated",
                "add substitution_mappings.properties.flavour_id to its topology_template",
            )


def imports_by_url(subject: Subject) -> Iterator[Finding]:
    """Check for imports that Tacker fetches from the network when it reads the package."""
    if not subject.flavours:
        return
    for imported in subject.package.definitions.imports:
        if imported.is_by_url:
            yield Finding.note(
                imported.source,
                f"imports {imported.name}: an update reads {imported.path} instead, Tacker's"
                " conductor fetches the URL when the package is uploaded",
                "let the conductor reach the URL, or import the file by its path",
            )


def vdus(subject: Subject) -> Iterator[Finding]:
    """Check that each VDU has the name of exactly one workload, which is their only link."""
    if subject.package.has_templates:
        return
    by_name: dict[str, list[Manifest]] = {}
    for manifest in subject.workloads:
        by_name.setdefault(manifest.key.name, []).append(manifest)
    names: set[str] = set()
    for flavour in subject.flavours:
        for vdu_id, name in flavour.vdus.items():
            names.add(name)
            workloads = by_name.get(name, [])
            if not workloads and subject.is_complete:
                yield Finding.error(
                    subject.source(flavour, *node_path(vdu_id, "properties", "name")),
                    f"{vdu_id} has the name {name}, but no manifest has a workload with that name:"
                    " Tacker records no VNFC for it",
                    "set properties.name of the VDU to metadata.name of its workload",
                )
            elif len({manifest.key for manifest in workloads}) > 1:
                keys = " and ".join(str(manifest.key) for manifest in workloads)
                yield Finding.warning(
                    subject.source(flavour, *node_path(vdu_id, "properties", "name")),
                    f"{vdu_id} has the name {name}, which is the name of {keys}: Tacker records"
                    " the pods of only one of them",
                    "give the workloads different names",
                )
    for name in sorted(by_name.keys() - names):
        if subject.flavours:
            yield Finding.warning(
                by_name[name][0].source.of(("metadata", "name")),
                f"{by_name[name][0].key} belongs to no VDU: its pods are not recorded",
                "add a VDU with that name to the VNFD",
            )


def templates(subject: Subject) -> Iterator[Finding]:
    """Check that each flavour with templates has a top one, and exactly one server for each VDU."""
    if not subject.package.has_templates:
        return
    for flavour in subject.flavours:
        try:
            body = base_hot(subject.package, flavour.id)
            servers = [place for place, _ in hot.servers(body)]
        except PackageError as error:
            yield to_finding(error, flavour.path)
            continue
        vdu_servers: set[hot.Place] = set()
        for vdu_id, name in flavour.vdus.items():
            places = hot.places_named(body, vdu_id, name)
            vdu_servers.update(places)
            if len(places) != 1:
                yield Finding.error(
                    subject.source(flavour, *node_path(vdu_id)),
                    f"{vdu_id} has {len(places) or 'no'} {hot.SERVER} in the templates of flavour"
                    f" {flavour.id}: expected exactly one",
                    f"name the resource of one server {vdu_id}, or set its property name to {name}",
                )
        for place in servers:
            if place not in vdu_servers:
                yield Finding.warning(
                    subject.source(flavour, *NODES),
                    f"the server {place} belongs to no VDU: it is not recorded and not updated",
                    "add a VDU with that name to the VNFD",
                )


def interfaces(subject: Subject) -> Iterator[Finding]:
    """Check the scripts that the VNFD maps to operations, and that their files exist."""
    operations = {script.operation for _, script in subject.scripts}
    if subject.flavours and OPERATION not in operations and not subject.package.has_templates:
        flavour = subject.flavours[0]
        nodes = [node_path(script.node, *_VNFLCM) for script in flavour.scripts.values()]
        yield Finding.warning(
            subject.source(flavour, *(nodes[0] if nodes else NODES)),
            f"Vnflcm has no script for {OPERATION}: a modification does not change the cluster",
            f"add interfaces.Vnflcm.{OPERATION}.implementation: {DRIVER} to the node VNF",
        )
    for flavour, script in subject.scripts:
        if not script.implementation:
            continue
        if script.file is None:
            yield Finding.error(
                _implementation(subject, flavour, script),
                f"{script.operation} is implemented by {script.implementation}, which is not"
                " an artifact of the node",
                f"add artifacts.{script.implementation}.file to the node",
            )
        elif subject.script_path(script) is None:
            path = node_path(script.node, "artifacts", script.implementation, "file")
            yield Finding.error(
                subject.source(flavour, *path),
                f"the artifact {script.implementation} names {script.file}, but there is no such"
                " file, neither relative to the package's root (v1) nor to Definitions/ (v2)",
                "add the file, or build the package with: container-update csar build --api",
            )


def driver_files(subject: Subject) -> Iterator[Finding]:
    """Check that the driver is the installed one: v1 compares their hashes at every call."""
    for flavour, script in subject.scripts:
        api_and_path = subject.script_path(script)
        if script.operation != OPERATION or api_and_path is None:
            continue
        api, path = api_and_path
        try:
            same = subject.package.read(path) == build.driver_file(api).read_bytes()
        except PackageError:
            continue  # reported by wrong_hashes
        if api == "v1" and script.implementation != DRIVER:
            yield Finding.warning(
                _implementation(subject, flavour, script),
                f"{OPERATION} is implemented by {script.implementation}, which is not"
                " the driver of container-update",
                f"name it {DRIVER}, like the entry point of the driver",
            )
        elif api == "v1" and not same:
            yield Finding.error(
                path,
                "differs from the installed driver: every operation with this script fails in"
                " Tacker (MgmtDriverHashMatchFailure)",
                "copy the installed one: container-update csar build --api v1",
            )
        elif api == "v2" and not same:
            yield Finding.note(
                path,
                "differs from the installed script: another version, a bundle, or another script",
                "if this is not intended: container-update csar build --api v2",
            )


def keys_that_v1_expects(subject: Subject) -> Iterator[Finding]:
    """Check two optional parts of a VNFD that Tacker's v1 API requires (KeyError otherwise)."""
    paths = [subject.script_path(script) for _, script in subject.scripts]
    if not any(api_and_path and api_and_path[0] == "v1" for api_and_path in paths):
        return
    for flavour in subject.flavours:
        content = subject.package.definitions.files[flavour.path]
        topology = content.get("topology_template") or {}
        if "requirements" not in (topology.get("substitution_mappings") or {"requirements": {}}):
            yield Finding.error(
                subject.source(flavour, *_MAPPINGS),
                "substitution_mappings has no requirements: Tacker's v1 API fails with"
                " KeyError: 'requirements'",
                "add requirements: {virtual_link: []}",
            )
        for path in _levels(topology):
            yield Finding.error(
                subject.source(flavour, *path),
                f"the instantiation level {path[-1]} has no scale_info: Tacker's v1 API fails with"
                " KeyError: 'scale_info'",
                "add scale_info: {} to the level",
            )


def _implementation(subject: Subject, flavour: Flavour, script: InterfaceScript) -> Source:
    path = node_path(script.node, *_VNFLCM, script.operation, "implementation")
    return subject.source(flavour, *path)


def _levels(topology: Json) -> Iterator[FieldPath]:
    """Yield the instantiation levels that have no scale_info, each as its path."""
    for index, policies in enumerate(topology.get("policies") or ()):
        for title, policy in policies.items():
            if policy.get("type") == "tosca.policies.nfv.InstantiationLevels":
                levels = get_at(policy, _LEVELS)
                for name, level in levels.items() if isinstance(levels, dict) else ():
                    if isinstance(level, dict) and "scale_info" not in level:
                        yield "topology_template", "policies", index, title, *_LEVELS, name


# --- rules about the Kubernetes objects ---------------------------------------------------------


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


_IN_EACH_NAMESPACE = ("ConfigMap", "kube-root-ca.crt")
"""What the root CA publisher of every cluster keeps there (since Kubernetes 1.20)."""


def references(subject: Subject) -> Iterator[Finding]:
    """Check that pods find every ConfigMap, Secret and key they use; a pod waits for them."""
    config = {manifest.key: manifest for manifest in subject.manifests if manifest.key.is_config}
    for manifest in subject.workloads:
        for use in uses(pod_spec(manifest.body)):
            key = ObjectKey("", use.kind, manifest.key.namespace, use.name)
            if use.optional or (use.kind, use.name) == _IN_EACH_NAMESPACE:
                continue
            if key in config or subject.is_complete:
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
    by_namespace: dict[str, list[Manifest]] = {}
    for manifest in subject.manifests:
        namespace = manifest.body["metadata"].get("namespace")
        if namespace and manifest.key.namespace:
            by_namespace.setdefault(namespace, []).append(manifest)
    for first, *others in by_namespace.values():
        who = f"{first.key} and {len(others)} more set" if others else f"{first.key} sets"
        yield Finding.warning(
            first.source.of(("metadata", "namespace")),
            f"{who} metadata.namespace: if the instantiate request names another namespace, Tacker "
            "creates the object there, and an update does not find it",
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


# --- all of them --------------------------------------------------------------------------------

RULES: tuple[Callable[[Subject], Iterable[Finding]], ...] = (
    metadata,
    wrong_hashes,
    unreadable_manifests,
    unlisted_files,
    without_manifests,
    unreadable_vnfd,
    imports_by_url,
    vdus,
    templates,
    interfaces,
    driver_files,
    keys_that_v1_expects,
    duplicates,
    references,
    namespaces,
    recommendations,
)


def check(package_path: str, *, options: Options = DEFAULTS) -> tuple[Finding, ...]:
    """Return everything that is wrong or unusual in a package, errors first.

    :param package_path: as ``UpdateRequest.old``.
    :raises PackageError: the package cannot be opened.
    """
    with csar.open_package(package_path, options=options, check_hashes=False) as package:
        subject = Subject(package)
        findings = {finding: None for rule in RULES for finding in rule(subject)}
        findings |= dict.fromkeys(package.findings)
    return tuple(sorted(findings, key=lambda finding: finding.severity.value))
