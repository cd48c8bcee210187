# SPDX-License-Identifier: Apache-2.0
"""Packages for tests: a few files in a folder, with or without metadata, or packed into a zip."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

Files = Mapping[str, str]
"""Path in the package to text."""

META = "TOSCA-Metadata/TOSCA.meta"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {k: v}\n"


def block(path: str, text: str, algorithm: str = "SHA-256", name: str = "Name") -> str:
    """Return the lines of TOSCA.meta (or, with *name* Source, of a manifest) about a file."""
    digest = hashlib.new(algorithm.lower().replace("-", ""), text.encode()).hexdigest()
    return f"{name}: {path}\nAlgorithm: {algorithm}\nHash: {digest}\n"


def listing(files: Files, header: str = "TOSCA-Meta-File-Version: 1.0\n") -> str:
    """Return a TOSCA.meta that lists these files."""
    return "\n".join([header, *(block(path, text) for path, text in files.items())])


def write_folder(folder: Path, files: Files) -> str:
    """Write an unpacked package; its path."""
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode())
    return str(folder)


def write_zip(path: Path, files: Files) -> str:
    """Write a packed package; its path."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in files.items():
            packed.writestr(name, text)
    return str(path)


TYPES = """\
tosca_definitions_version: tosca_simple_yaml_1_2
interface_types:
  tosca.interfaces.nfv.Vnflcm:
    derived_from: tosca.interfaces.Root
    instantiate: {}
    modify_information_start: {}
    modify_information_end: {}
node_types:
  tosca.nodes.nfv.VNF:
    derived_from: tosca.nodes.Root
    properties:
      descriptor_id: {type: string}
      flavour_id: {type: string, required: false}
    interfaces:
      Vnflcm: {type: tosca.interfaces.nfv.Vnflcm}
  tosca.nodes.nfv.Vdu.Compute:
    derived_from: tosca.nodes.Root
    properties:
      name: {type: string}
  test.VNF:
    derived_from: tosca.nodes.nfv.VNF
    properties:
      descriptor_id: {type: string, default: the-vnfd}
"""

TOP = """\
tosca_definitions_version: tosca_simple_yaml_1_2
imports: [types.yaml, FLAVOURS]
topology_template:
  inputs:
    selected_flavour: {type: string, default: simple}
  node_templates:
    VNF:
      type: test.VNF
      properties:
        flavour_id: {get_input: selected_flavour}
"""


def flavour(flavour_id: str, vdus: Mapping[str, str], interfaces: str = "") -> str:
    """Return the definitions file of a deployment flavour, from workload names by VDU id."""
    nodes = "".join(
        f"    {vdu}:\n      type: tosca.nodes.nfv.Vdu.Compute\n      properties: {{name: {name}}}\n"
        for vdu, name in vdus.items()
    )
    return f"""\
tosca_definitions_version: tosca_simple_yaml_1_2
imports:
- file: types.yaml
topology_template:
  inputs:
    descriptor_id: {{type: string}}
    flavour_id: {{type: string}}
  substitution_mappings:
    node_type: test.VNF
    properties: {{flavour_id: {flavour_id}}}
  node_templates:
    VNF:
      type: test.VNF
{interfaces}{nodes}"""


def with_vnfd(flavours: Files, files: Files | None = None) -> dict[str, str]:
    """The files of a package with a VNFD.

    :param flavours: the name of each flavour's definitions file to its text.
    """
    definitions = {
        "Definitions/top.vnfd.yaml": TOP.replace("FLAVOURS", ", ".join(flavours)),
        "Definitions/types.yaml": TYPES,
        **{f"Definitions/{name}": text for name, text in flavours.items()},
    }
    listed = {**definitions, **(files or {})}
    return {META: listing(listed, "Entry-Definitions: Definitions/top.vnfd.yaml\n"), **listed}
