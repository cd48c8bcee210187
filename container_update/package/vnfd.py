"""The VNFD of a package, as far as an update needs it: flavours, VDUs, scripts of its operations.

toscaparser judges the VNFD (types, properties, substitution mappings). It is given the definitions
already joined: by itself it follows imports to any file of the host and to any host of the network,
so they are followed here, within the package. It is slow to load, hence only loaded when asked.

The layout is that of SOL001 as Tacker reads it: an entry file that imports types and, per
deployment flavour, a file whose topology has ``substitution_mappings`` with the ``flavour_id``.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from container_update.model.errors import PackageError
from container_update.package.yaml11 import Limits, documents

_TYPE_SECTIONS = (
    "artifact_types", "capability_types", "data_types", "group_types", "interface_types",
    "node_types", "policy_types", "relationship_types",
)  # fmt: skip
_VDU_TYPES = ("tosca.nodes.nfv.Vdu.Compute", "tosca.nodes.nfv.Vdu.OsContainerDeployableUnit")
_IMAGE = ("properties", "sw_image_data", "name")
_COMPUTE_FLAVOUR = (
    "capabilities", "virtual_compute", "properties", "requested_additional_capabilities",
    "properties", "requested_additional_capability_name",
)  # fmt: skip
"""Where SOL001 has them in a node template."""
_PRODUCT = ("provider", "product_name", "software_version", "descriptor_version")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True)
class InterfaceScript:
    """What runs at a lifecycle operation of the VNF."""

    operation: str
    """As the VNFD writes it: ``modify_information_start``."""
    implementation: str
    """The name of a Mgmt Driver, and of the artifact that is its file."""
    file: str | None
    """The artifact's file as the VNFD writes it; None where it has no such artifact."""


@dataclass(frozen=True)
class Flavour:
    """A deployment flavour of the VNF."""

    id: str
    """'' where the VNFD names none."""
    vnfd_id: str
    """The VNF's ``descriptor_id``; '' where the VNFD names none."""
    path: str
    """The file of the package that defines it."""
    vdus: Mapping[str, str] = field(default_factory=dict)
    """VDU id to ``properties.name``, which is the name of its workload."""
    images: Mapping[str, str] = field(default_factory=dict)
    """VDU or storage node to the name of its software image (``sw_image_data``)."""
    compute_flavours: Mapping[str, str] = field(default_factory=dict)
    """VDU to the name of its flavour in OpenStack (``requested_additional_capability_name``)."""
    scripts: Mapping[str, InterfaceScript] = field(default_factory=dict)
    """Operation to what runs at it."""
    product: Mapping[str, str] = field(default_factory=dict)
    """The VNF's ``provider``, ``product_name``, ``software_version`` and ``descriptor_version``, as
    far as the VNFD has them."""


def flavours(
    entry: str, read: Callable[[str], bytes], limits: Limits | None = None
) -> tuple[Flavour, ...]:
    """The flavours of a VNFD, in the order in which its files are imported.

    :param entry: the path of ``Entry-Definitions``.
    :param read: gives a file of the package; PackageError where there is none.
    :param limits: what each file may ask for.
    :raises PackageError: an import is missing or leads out of the package, or toscaparser does not
        accept the definitions.
    """
    files = _load(entry, read, limits or Limits())
    if "tosca_definitions_version" not in files[entry]:
        raise PackageError(f"{entry}: expected TOSCA definitions with tosca_definitions_version")
    types = _joined_types(files)
    topologies = {
        path: content["topology_template"]
        for path, content in files.items()
        if isinstance(content.get("topology_template"), dict)
    }
    nested = [path for path in topologies if _mappings(path, topologies[path])]
    top = [_parse(path, topologies[path], types, {}) for path in topologies if path not in nested]
    if not nested:
        return tuple(_flavour(entry, topology) for topology in top)
    abstract = {node.type: node for topology in top for node in topology.nodetemplates}
    return tuple(_flavour(path, _parse(path, topologies[path], types, abstract)) for path in nested)


def _mappings(path: str, topology: Mapping[str, Any]) -> Mapping[str, Any]:
    found = topology.get("substitution_mappings") or {}
    if not isinstance(found, dict):
        raise PackageError(f"{path}: expected a mapping under substitution_mappings")
    return found


def _load(entry: str, read: Callable[[str], bytes], limits: Limits) -> dict[str, dict[str, Any]]:
    """The entry file and all that it imports, each once, by path."""
    files: dict[str, dict[str, Any]] = {}
    waiting = [(entry, "Entry-Definitions")]
    while waiting:
        path, importer = waiting.pop(0)
        if path in files:
            continue
        files[path] = _definitions(path, importer, read, limits)
        waiting += [(imported, path) for imported in _imports(path, files[path])]
    return files


def _definitions(
    path: str, importer: str, read: Callable[[str], bytes], limits: Limits
) -> dict[str, Any]:
    try:
        text = read(path)
    except PackageError as error:
        raise PackageError(f"the VNFD cannot be read: {importer} names {path}: {error}") from error
    content = [document.value for document in documents(text, path, limits)]
    if len(content) != 1 or not isinstance(content[0], dict):
        raise PackageError(f"{path}: expected one YAML document with TOSCA definitions")
    return content[0]


def _imports(path: str, content: Mapping[str, Any]) -> Iterator[str]:
    """The paths in the package of what a definitions file imports."""
    imports = content.get("imports") or []
    if not isinstance(imports, list):
        raise PackageError(f"{path}: expected a list of files under imports")
    for entry in imports:
        is_named = isinstance(entry, dict) and "file" not in entry and len(entry) == 1
        what = next(iter(entry.values())) if is_named else entry
        name = what.get("file") if isinstance(what, dict) else what
        if not isinstance(name, str):
            raise PackageError(f"{path}: expected the name of a file under imports")
        if _URL.match(name) or (isinstance(what, dict) and what.get("repository")):
            raise PackageError(
                f"{path}: the import {name} is outside the package: put the file into the "
                "package and import it by its path, nothing is fetched while a VNFD is read"
            )
        yield posixpath.normpath(posixpath.join(posixpath.dirname(path), name))


def _joined_types(files: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    joined: dict[str, dict[str, Any]] = {section: {} for section in _TYPE_SECTIONS}
    for path, content in files.items():
        for section in _TYPE_SECTIONS:
            defined = content.get(section) or {}
            if not isinstance(defined, dict):
                raise PackageError(f"{path}: expected a mapping under {section}")
            joined[section].update(defined)
    for section, defined in joined.items():
        _refuse_circles(section, defined)
    return {section: defined for section, defined in joined.items() if defined}


def _refuse_circles(section: str, defined: Mapping[str, Any]) -> None:
    """Types that derive from each other: toscaparser would follow them for ever."""
    ends: set[object] = set()
    for name in defined:
        chain: list[object] = []
        while name in defined and name not in ends:
            if name in chain:
                names = ", ".join(str(link) for link in chain)
                raise PackageError(f"the VNFD's {section} derive from each other: {names}")
            chain.append(name)
            below = defined[name].get("derived_from") if isinstance(defined[name], dict) else None
            name = below if isinstance(below, str) else ""  # noqa: PLW2901, down the chain
        ends.update(chain)


def _parse(
    path: str,
    topology: dict[str, Any],
    types: Mapping[str, Any],
    abstract: Mapping[str, Any],
) -> Any:
    """A topology as toscaparser understands it.

    :param abstract: the nodes of the topology above this one, by type: this one's inputs are the
        properties of the node that it stands for.
    """
    from toscaparser.common.exception import ExceptionCollector  # noqa: PLC0415, slow to load
    from toscaparser.topology_template import TopologyTemplate  # noqa: PLC0415, slow to load

    node_type = _mappings(path, topology).get("node_type", "")
    stands_for: Any = abstract.get(node_type)
    properties = stands_for.get_properties() if stands_for else {}
    inputs = {name: property_.value for name, property_ in properties.items()}
    definitions = {name: type_ for section in types.values() for name, type_ in section.items()}
    ExceptionCollector.start()
    try:
        parsed = TopologyTemplate(
            topology, definitions, types.get("relationship_types", {}), inputs, stands_for
        )
    except Exception as error:
        raise PackageError(
            f"{path}: toscaparser does not accept the VNFD: {type(error).__name__}: {error}"
        ) from error
    finally:
        ExceptionCollector.stop()
    if problems := ExceptionCollector.getExceptionsReport(False):
        raise PackageError(
            f"{path}: toscaparser does not accept the VNFD: " + "; ".join(problems[:3])
        )
    return parsed


def _flavour(path: str, topology: Any) -> Flavour:
    mappings = topology.substitution_mappings
    mapped = (mappings.properties if mappings else None) or {}
    vnf = [node for node in topology.nodetemplates if node.is_derived_from("tosca.nodes.nfv.VNF")]
    product = {name: _first(vnf, mapped, name) for name in ("descriptor_id", *_PRODUCT)}
    return Flavour(
        id=_text(mapped.get("flavour_id")),
        vnfd_id=product.pop("descriptor_id"),
        path=path,
        vdus=dict(_vdus(path, topology.nodetemplates)),
        images=dict(_named(topology.nodetemplates, _IMAGE)),
        compute_flavours=dict(_named(topology.nodetemplates, _COMPUTE_FLAVOUR)),
        scripts={script.operation: script for node in vnf for script in _scripts(node)},
        product={name: value for name, value in product.items() if value},
    )


def _first(vnf: list[Any], mapped: Mapping[str, Any], name: str) -> str:
    """A property of the VNF: of the substitution mappings, else of its node."""
    values = (node.get_property_value(name) for node in vnf)
    return _text(mapped.get(name)) or _text(next(values, ""))


def _text(value: object) -> str:
    """A property's text; '' for what only an instance's inputs would tell."""
    return value if isinstance(value, str) else ""


def _vdus(path: str, nodes: list[Any]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        if not any(node.is_derived_from(vdu_type) for vdu_type in _VDU_TYPES):
            continue
        name = node.get_property_value("name")
        if not isinstance(name, str) or not name:
            raise PackageError(
                f"{path}: expected the name of a workload as properties.name of {node.name}"
            )
        yield node.name, name


def _named(nodes: list[Any], path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Node to the text at a path of its template, where there is one."""
    for node in nodes:
        value = node.entity_tpl
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, str):
            yield node.name, value


def _scripts(node: Any) -> Iterator[InterfaceScript]:
    template = node.entity_tpl
    artifacts = template.get("artifacts") or {}
    operations = (template.get("interfaces") or {}).get("Vnflcm") or {}
    for operation, value in operations.items():
        implementation = value.get("implementation") if isinstance(value, dict) else value
        if not isinstance(implementation, str) or operation in ("type", "inputs"):
            continue  # 'instantiate: []' says that there is none
        artifact = artifacts.get(implementation)
        file = artifact.get("file") if isinstance(artifact, dict) else artifact
        yield InterfaceScript(operation, implementation, file)
