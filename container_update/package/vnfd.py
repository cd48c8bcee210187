# SPDX-License-Identifier: Apache-2.0
"""The VNFD of a package: the flavours, VDUs and operation scripts that an update needs.

toscaparser validates the VNFD (types, properties, substitution mappings). By itself it would follow
imports to any file of this host and to any host of the network, so imports are resolved here, in
the package only, and toscaparser gets the joined definitions, in a process with limits.
ETSI's type files import each other by URL; the file of that name in the package stands for it.

The layout is that of SOL001 as Tacker reads it: an entry file that imports types and, per
deployment flavour, a file whose topology has ``substitution_mappings`` with the ``flavour_id``.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeVar

from container_update.model.errors import PackageError
from container_update.model.objects import FieldPath, Json, Source, get_at
from container_update.model.options import DEFAULTS, Options
from container_update.model.scaling import Scaling
from container_update.model.schema import LINE, MAPPING, TEXT, Fields, ListOf, MapOf
from container_update.package.fetch import is_url
from container_update.package.findings import Reading
from container_update.package.tosca import process
from container_update.package.tosca.process import Node, Topology
from container_update.package.yaml11 import FieldLines, mapping

_TYPE_SECTIONS = (
    "artifact_types", "capability_types", "data_types", "group_types", "interface_types",
    "node_types", "policy_types", "relationship_types",
)  # fmt: skip
_IMAGE = ("properties", "sw_image_data")
_PROFILE = ("properties", "vdu_profile")
_COMPUTE_FLAVOUR = (
    "capabilities", "virtual_compute", "properties", "requested_additional_capabilities",
    "properties", "requested_additional_capability_name",
)  # fmt: skip
"""Where SOL001 puts them in a node template."""
_MAPPINGS = ("topology_template", "substitution_mappings")
NODES = ("topology_template", "node_templates")
"""Where the node templates are in their file."""
_NODE = Fields({"artifacts": MAPPING, "interfaces": Fields({"Vnflcm": MAPPING})})
_TOPOLOGY = Fields(
    {
        "substitution_mappings": Fields({"node_type": TEXT, "properties": MAPPING}),
        "node_templates": MapOf(LINE, _NODE, nullable=False),
        "policies": ListOf(MapOf(LINE, MAPPING, nullable=False)),
    }
)
"""What is read beside toscaparser, which does not check it, or fails at it."""
_PRODUCT = ("provider", "product_name", "software_version", "descriptor_version")
Value = TypeVar("Value")
_MOST_IMPORTS = 200
"""Files of published VNFDs import two or three others; each import is looked for in its file."""
_QUERY = re.compile(r"[?#]")
_ENDINGS = (".yaml", ".yml")


@dataclass(frozen=True)
class InterfaceScript:
    """The script of a lifecycle operation of the VNF."""

    operation: str
    """As the VNFD writes it: ``modify_information_start``."""
    implementation: str
    """The name of a Mgmt Driver, and of the artifact that is its file."""
    file: str | None
    """The artifact's file as the VNFD writes it; None if the node has no such artifact."""
    node: str = field(default="", compare=False)
    """The node template that has it."""


@dataclass(frozen=True)
class Flavour:
    """A deployment flavour of the VNF."""

    id: str
    """'' if the VNFD has none."""
    vnfd_id: str
    """The VNF's ``descriptor_id``; '' if the VNFD has none."""
    path: str
    """The file of the package that defines it."""
    vdus: Mapping[str, str] = field(default_factory=dict)
    """VDU id to ``properties.name``, the name of its workload."""
    software_images: Mapping[str, Json] = field(default_factory=dict)
    """VDU or storage node to its software image (``sw_image_data``), as the VNFD writes it."""
    compute_flavours: Mapping[str, str] = field(default_factory=dict)
    """VDU to the name of its flavour in OpenStack (``requested_additional_capability_name``)."""
    scripts: Mapping[str, InterfaceScript] = field(default_factory=dict)
    """Operation to its script."""
    scaling: Scaling = field(default_factory=Scaling)
    product: Mapping[str, str] = field(default_factory=dict)
    """Those of ``provider``, ``product_name``, ``software_version`` and ``descriptor_version`` that
    the VNFD has."""

    @property
    def images(self) -> Mapping[str, str]:
        """VDU or storage node to the name of its software image."""
        images = self.software_images.items()
        return {node: image["name"] for node, image in images if isinstance(image.get("name"), str)}


@dataclass(frozen=True)
class Import:
    """A file that a definitions file imports."""

    name: str
    """A path relative to the importing file, or a URL."""
    path: str
    """The file in the package that stands for it."""
    source: Source
    """Where it is imported."""

    @property
    def is_by_url(self) -> bool:
        """Whether only the last part of the name says which file it is."""
        return is_url(self.name)


@dataclass(frozen=True)
class Definitions:
    """The files that make up a VNFD."""

    entry: str
    """The path of ``Entry-Definitions``."""
    files: Mapping[str, Json]
    """Their content by path, in the order in which they are imported."""
    imports: tuple[Import, ...]
    lines: Mapping[str, FieldLines] = field(default_factory=dict, repr=False, compare=False)
    """The lines of their fields, by path."""

    @property
    def imported(self) -> frozenset[str]:
        """The entry file and those that are imported; not the flavours that are only beside it."""
        return frozenset({self.entry, *(each.path for each in self.imports)})

    def source(self, file: str, path: FieldPath) -> Source:
        """Return where a field is written; the first line of the file if that is unknown."""
        lines = self.lines.get(file)
        return Source(file, lines.line(0, path) if lines else 1)


def load(
    entry: str,
    read: Callable[[str], bytes],
    names: Callable[[], Iterable[str]],
    options: Options = DEFAULTS,
    reading: Reading | None = None,
) -> Definitions:
    """Read the entry file and everything that it imports, each file once.

    Besides, the flavours that are beside it and that nothing imports: Tacker finds a flavour by the
    folder.

    :param entry: the path of ``Entry-Definitions``.
    :raises PackageError: a file is missing, or not in the package, or no definitions.
    """
    files: dict[str, Json] = {}
    lines: dict[str, FieldLines] = {}
    imports: list[Import] = []
    in_package = _Finder(names)

    def follow(queue: list[tuple[str, str]]) -> None:
        while queue:
            path, importer = queue.pop(0)
            if path in files:
                continue
            try:
                text = read(path)
            except PackageError as error:
                raise PackageError(
                    f"{importer}: the VNFD cannot be read: it names {path}: {error}"
                ) from error
            files[path] = mapping(text, path, options, "TOSCA definitions", reading)
            lines[path] = FieldLines(text)
            for index, name in enumerate(_imported_names(path, files[path])):
                source = Source(path, lines[path].line(0, ("imports", index)))
                target = in_package.find(name, source) if is_url(name) else _beside(path, name)
                imports.append(Import(name, target, source))
                if len(imports) > _MOST_IMPORTS:
                    raise PackageError(
                        f"{source}: the VNFD has more than {_MOST_IMPORTS} imports: join its files"
                    )
                queue.append((target, str(source)))

    follow([(entry, "Entry-Definitions")])
    folder = posixpath.dirname(entry)
    known = {_flavour_id(content) for content in files.values()}
    for path in names():
        if path in files or posixpath.dirname(path) != folder or not path.endswith(_ENDINGS):
            continue
        text = read(path)
        if b"substitution_mappings" not in text or b"flavour_id" not in text:
            continue
        flavour_id = _flavour_id(mapping(text, path, options, "TOSCA definitions", Reading()))
        if flavour_id and flavour_id not in known:
            known.add(flavour_id)
            follow([(path, path)])
    if "tosca_definitions_version" not in files[entry]:
        raise PackageError(f"{entry}: expected TOSCA definitions with tosca_definitions_version")
    return Definitions(entry, files, tuple(imports), lines)


def _flavour_id(content: Mapping[str, Any]) -> str:
    """Return the id of the flavour that definitions are of; '' if they are of none."""
    return _text(get_at(content, (*_MAPPINGS, "properties", "flavour_id")))


def node_path(node: str, *path: str) -> FieldPath:
    """Return the path of a node template, or of a field of it, in its file."""
    return *NODES, node, *path


def _imported_names(path: str, content: Mapping[str, Any]) -> Iterator[str]:
    imports = content.get("imports") or []
    if not isinstance(imports, list):
        raise PackageError(f"{path}: expected a list of files under imports")
    for entry in imports:
        is_named = isinstance(entry, dict) and "file" not in entry and len(entry) == 1
        value = next(iter(entry.values())) if is_named else entry
        name = value.get("file") if isinstance(value, dict) else value
        if not isinstance(name, str):
            raise PackageError(f"{path}: expected the name of a file under imports")
        if isinstance(value, dict) and value.get("repository"):
            raise PackageError(
                f"{path}: the import {name} is in a repository outside the package: put the file "
                "into the package and import it by its path"
            )
        yield name


def _beside(path: str, name: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), name))


class _Finder:
    """Finds the files of the package that are imported by URL; nothing is fetched."""

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names

    @cached_property
    def _by_base_name(self) -> Mapping[str, list[str]]:
        paths: dict[str, list[str]] = {}
        for path in self._names():
            paths.setdefault(posixpath.basename(path), []).append(path)
        return paths

    def find(self, url: str, source: Source) -> str:
        """Return the file of a URL's name: beside the importer, else only in Definitions/."""
        name = posixpath.basename(_QUERY.split(url, maxsplit=1)[0])
        beside = _beside(source.path, name)
        named = self._by_base_name.get(name, []) if name else []
        candidates = [path for path in named if path.startswith("Definitions/") or path == beside]
        if beside in candidates or len(candidates) == 1:
            return beside if beside in candidates else candidates[0]
        problem = (
            f"is in the package as {' and as '.join(candidates[:3])}"
            if candidates
            else "is not in the package"
        )
        raise PackageError(
            f"{source}: imports {url}, which is never fetched, and {name or 'its file'} {problem}: "
            "put that file into Definitions/, once, and build the package again"
        )


def flavours(definitions: Definitions, options: Options = DEFAULTS) -> tuple[Flavour, ...]:
    """Return the flavours of a VNFD, in the order in which its files are imported.

    :raises ReaderEndedError: toscaparser used more time or memory than the options allow.
    :raises PackageError: toscaparser does not accept the definitions.
    """
    entry, files = definitions.entry, definitions.files
    types = _joined_types(files)
    topologies = {
        path: content["topology_template"]
        for path, content in files.items()
        if content.get("topology_template")
    }
    for path, topology in topologies.items():
        for wrong in _TOPOLOGY.violations(topology, ("topology_template",)):
            source = definitions.source(path, wrong.path)
            raise PackageError(
                f"{source}: expected {wrong.expected} as {wrong.field}, found {wrong.found}"
            )
    nested = {path: body for path, body in topologies.items() if body.get("substitution_mappings")}
    top = {path: body for path, body in topologies.items() if path not in nested}
    if not topologies:
        return ()
    parsed = process.parse(top, nested, types, options)
    return tuple(_flavour(definitions, each.path if nested else entry, each) for each in parsed)


def _joined_types(files: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    joined: dict[str, dict[str, Any]] = {section: {} for section in _TYPE_SECTIONS}
    for path, content in files.items():
        for section in _TYPE_SECTIONS:
            types = content.get(section) or {}
            if not isinstance(types, dict):
                raise PackageError(f"{path}: expected a mapping under {section}")
            joined[section].update(types)
    for section, types in joined.items():
        _refuse_cycles(section, types)
    return {section: types for section, types in joined.items() if types}


def _refuse_cycles(section: str, types: Mapping[str, Any]) -> None:
    """Raise PackageError for types that derive from each other: toscaparser would never end."""
    parents = {
        name: {type_["derived_from"]}
        for name, type_ in types.items()
        if isinstance(type_, dict) and isinstance(type_.get("derived_from"), str)
    }
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        names = ", ".join(str(name) for name in reversed(error.args[1][1:]))
        raise PackageError(f"the VNFD's {section} derive from each other: {names}") from error


def _flavour(definitions: Definitions, path: str, topology: Topology) -> Flavour:
    mapped, nodes = topology.mapped, topology.nodes
    vnf = [node for node in nodes if node.is_vnf]
    own = vnf[0].properties if vnf else {}  # of the VNF, where the substitution mappings have none
    names = ("descriptor_id", *_PRODUCT)
    product = {name: _text(mapped.get(name)) or _text(own.get(name)) for name in names}
    return Flavour(
        id=_text(mapped.get("flavour_id")),
        vnfd_id=product.pop("descriptor_id"),
        path=path,
        vdus=dict(_vdus(definitions, path, nodes)),
        software_images=dict(_find(nodes, _IMAGE, dict)),
        compute_flavours=dict(_find(nodes, _COMPUTE_FLAVOUR, str)),
        scripts={script.operation: script for node in vnf for script in _scripts(node)},
        scaling=Scaling.of(topology.policies, dict(_find(nodes, _PROFILE, dict))),
        product={name: value for name, value in product.items() if value},
    )


def _text(value: object) -> str:
    """Return a property's text; '' for a value that only the inputs of an instance determine."""
    return value if isinstance(value, str) else ""


def _vdus(definitions: Definitions, path: str, nodes: Iterable[Node]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        if not node.is_vdu:
            continue
        name = node.properties.get("name")
        if not isinstance(name, str) or not name:
            source = definitions.source(path, node_path(node.name, "properties", "name"))
            raise PackageError(
                f"{source}: expected the name of a workload as properties.name of {node.name}"
            )
        yield node.name, name


def _find(
    nodes: Iterable[Node], path: tuple[str, ...], type_: type[Value]
) -> Iterator[tuple[str, Value]]:
    """Yield the name of each node that has a value of a type at a path of its template."""
    for node in nodes:
        value = get_at(node.template, path)
        if isinstance(value, type_):
            yield node.name, value


def _scripts(node: Node) -> Iterator[InterfaceScript]:
    template = node.template
    artifacts = template.get("artifacts") or {}
    operations = (template.get("interfaces") or {}).get("Vnflcm") or {}
    for operation, value in operations.items():
        implementation = value.get("implementation") if isinstance(value, dict) else value
        if not isinstance(implementation, str) or operation in ("type", "inputs"):
            continue  # 'instantiate: []' means no script
        artifact = artifacts.get(implementation)
        file = artifact.get("file") if isinstance(artifact, dict) else artifact
        file = file if isinstance(file, str) else None
        yield InterfaceScript(operation, implementation, file, node.name)
