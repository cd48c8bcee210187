# SPDX-License-Identifier: Apache-2.0
"""Rules about the VNFD: flavours, VDUs and what runs them, and the scripts of its operations."""

from __future__ import annotations

from collections.abc import Iterator

from container_update.model.errors import PackageError
from container_update.model.objects import FieldPath, Json, Manifest, Source, get_at
from container_update.package import hot
from container_update.package.hot_files import base_hot
from container_update.package.tools import build
from container_update.package.tools.lint.finding import Finding
from container_update.package.tools.lint.subject import Subject, located
from container_update.package.vnfd import NODES, Flavour, InterfaceScript, node_path

OPERATION = "modify_information_end"
DRIVER = "mgmt-container-update"
_MAPPINGS = ("topology_template", "substitution_mappings")
_VNFLCM = ("interfaces", "Vnflcm")
_LEVELS = ("properties", "levels")


def unreadable_vnfd(subject: Subject) -> Iterator[Finding]:
    """Check that toscaparser accepts the VNFD: otherwise the package stays CREATED in Tacker."""
    if isinstance(subject.vnfd, PackageError):
        yield located(subject.vnfd, subject.package.entry_definitions)
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
            yield located(error, flavour.path)
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
