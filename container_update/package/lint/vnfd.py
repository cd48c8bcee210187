"""Rules about the VNFD: flavours, VDUs, and what its operations are mapped to."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from container_update.model.errors import PackageError
from container_update.model.objects import Json, Manifest
from container_update.package import build
from container_update.package.lint.finding import Finding, Severity
from container_update.package.lint.subject import Subject, located
from container_update.package.yaml11 import documents

OPERATION = "modify_information_end"
DRIVER = "mgmt-container-update"


def unreadable_vnfd(subject: Subject) -> Iterator[Finding]:
    """toscaparser must accept the VNFD: Tacker leaves the package CREATED for ever otherwise."""
    try:
        flavours = subject.package.flavours
    except PackageError as error:
        yield located(error, subject.package.entry_definitions)
        return
    for flavour in flavours:
        if not flavour.id:
            yield Finding.error(
                flavour.path,
                "has no substitution_mappings with a flavour_id: there is nothing to instantiate",
                "give its topology_template substitution_mappings.properties.flavour_id",
            )


def vdus(subject: Subject) -> Iterator[Finding]:
    """A VDU is tied to its workload by name, and to nothing else."""
    if subject.has_templates:
        return
    by_name: dict[str, list[Manifest]] = {}
    for manifest in subject.workloads:
        by_name.setdefault(manifest.key.name, []).append(manifest)
    names: set[str] = set()
    for flavour in subject.flavours:
        for vdu_id, name in flavour.vdus.items():
            names.add(name)
            found = by_name.get(name, [])
            if not found:
                yield Finding.error(
                    flavour.path,
                    f"{vdu_id} has the name {name}, and no manifest has a workload of that name:"
                    " Tacker records no VNFC for it",
                    "name the VDU (properties.name) like its workload (metadata.name)",
                )
            elif len({manifest.key for manifest in found}) > 1:
                kinds = " and ".join(str(manifest.key) for manifest in found)
                yield Finding.warning(
                    flavour.path,
                    f"{vdu_id} has the name {name}, which is that of {kinds}: Tacker records the"
                    " pods of the one that it meets last",
                    "give the workloads different names",
                )
    for name in sorted(by_name.keys() - names):
        if subject.flavours:
            yield Finding.of(
                Severity.WARNING,
                by_name[name][0],
                f"{by_name[name][0].key} belongs to no VDU: its pods are not recorded",
                "add a VDU with that name to the VNFD",
            )


def interfaces(subject: Subject) -> Iterator[Finding]:
    """The operations that a VNFD maps to us, and the file of each."""
    mapped = {script.operation for _, script in subject.scripts}
    if subject.flavours and OPERATION not in mapped and not subject.has_templates:
        yield Finding.warning(
            subject.flavours[0].path,
            f"Vnflcm maps nothing to {OPERATION}: a modification does not reach the cluster",
            f"give the node VNF interfaces.Vnflcm.{OPERATION}.implementation: {DRIVER}",
        )
    for flavour, script in subject.scripts:
        if not script.implementation:
            continue
        if script.file is None:
            yield Finding.error(
                flavour.path,
                f"{script.operation} is implemented by {script.implementation}, which is no"
                " artifact of the node",
                f"give the node artifacts.{script.implementation}.file",
            )
        elif subject.script_path(script) is None:
            yield Finding.error(
                flavour.path,
                f"the artifact {script.implementation} names {script.file}, and there is no such"
                " file, neither from the package's root (v1) nor from Definitions/ (v2)",
                "put it there, or build the package with: container-update csar build --api",
            )


def driver_files(subject: Subject) -> Iterator[Finding]:
    """v1 compares the copy of the driver with the installed one at every call."""
    for flavour, script in subject.scripts:
        found = subject.script_path(script)
        if script.operation != OPERATION or found is None:
            continue
        api, path = found
        try:
            same = _digest(subject.package.read(path)) == _installed(api)
        except PackageError:
            continue  # reported by unreadable_files
        if api == "v1" and script.implementation != DRIVER:
            yield Finding.warning(
                flavour.path,
                f"{OPERATION} is implemented by {script.implementation}, which is not our driver",
                f"name it {DRIVER}, as the driver's entry point is named",
            )
        elif api == "v1" and not same:
            yield Finding.error(
                path,
                "differs from the installed driver: Tacker fails every operation that is mapped to"
                " it (MgmtDriverHashMatchFailure)",
                "copy the installed one: container-update csar build --api v1",
            )
        elif api == "v2" and not same:
            yield Finding.note(
                path,
                "differs from the installed script: of another version, a bundle, or not ours",
                "unless that is meant: container-update csar build --api v2",
            )


def keys_that_v1_expects(subject: Subject) -> Iterator[Finding]:
    """Tacker's v1 API takes two optional parts of a VNFD for granted (KeyError otherwise)."""
    apis = {found[0] for _, script in subject.scripts if (found := subject.script_path(script))}
    if "v1" not in apis:
        return
    for flavour in subject.flavours:
        text, limits = subject.package.read(flavour.path), subject.package.settings.yaml
        (document,) = documents(text, flavour.path, limits)
        topology = document.value["topology_template"]
        if "requirements" not in topology.get("substitution_mappings", {"requirements": {}}):
            yield Finding.error(
                flavour.path,
                "substitution_mappings has no requirements: Tacker's v1 API fails with"
                " KeyError: 'requirements'",
                "add requirements: {virtual_link: []}",
            )
        for level in _levels(topology):
            yield Finding.error(
                flavour.path,
                f"the instantiation level {level} has no scale_info: Tacker's v1 API fails with"
                " KeyError: 'scale_info'",
                "add scale_info: {} to the level",
            )


def _levels(topology: Json) -> Iterator[str]:
    """The instantiation levels that have no scale_info."""
    for named in topology.get("policies") or ():
        for policy in named.values():
            if policy.get("type") == "tosca.policies.nfv.InstantiationLevels":
                levels = (policy.get("properties") or {}).get("levels") or {}
                yield from (name for name, level in levels.items() if "scale_info" not in level)


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def _installed(api: str) -> str:
    return _digest(build.driver_file(api).read_bytes())
