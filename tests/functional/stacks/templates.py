# SPDX-License-Identifier: Apache-2.0
"""HEAT templates and packages of a VNF for tests: VDU1 in several shapes, VDU2 beside it."""

from __future__ import annotations

import copy

import yaml

from tests import packages
from tests.internals.core import Json

VERSION = "2015-04-30"
PORT = {"type": "OS::Neutron::Port", "properties": {"network": {"get_param": "network"}}}
PARAMETERS = {name: {"type": "string"} for name in ("image", "flavor", "network")}


def server(*, number: int = 1, volume: bool = False) -> dict[str, Json]:
    """Return the resources of one server: the server, its port, its boot volume if any."""
    name, port, disk = f"VDU{number}", f"CP{number}", f"Disk{number}"
    properties: Json = {
        "flavor": {"get_param": "flavor"},
        "networks": [{"port": {"get_resource": port}}],
    }
    resources = {port: PORT, name: {"type": "OS::Nova::Server", "properties": properties}}
    if volume:
        properties["block_device_mapping_v2"] = [{"volume_id": {"get_resource": disk}}]
        resources[disk] = {
            "type": "OS::Cinder::Volume",
            "properties": {"size": 1, "image": {"get_param": "image"}},
        }
    else:
        properties["image"] = {"get_param": "image"}
    return resources


def template(resources: dict[str, Json], **parameters: Json) -> Json:
    """Return a template."""
    return {
        "heat_template_version": VERSION,
        "parameters": {**PARAMETERS, **parameters},
        "resources": resources,
    }


def passed_on() -> Json:
    """Return the properties of a nested template, each from the parameter of its name."""
    return {name: {"get_param": name} for name in PARAMETERS}


def group(inner: Json) -> Json:
    """Return a scaling group with as many members as the parameter ``size`` says."""
    properties = {"min_size": 1, "max_size": 9, "desired_capacity": {"get_param": "size"}}
    return {"type": "OS::Heat::AutoScalingGroup", "properties": {**properties, "resource": inner}}


SIZE: Json = {"type": "number", "default": 2}
SECRET: dict[str, Json] = {"password": {"type": "string", "hidden": True, "default": "none"}}
NESTED: Json = {"type": "nested_server.yaml", "properties": passed_on()}


def hot(shape: str) -> dict[str, str]:
    """The files of a BaseHOT: path to text.

    'server' at the top, 'nested' in a file, 'group' of nested files, 'group of servers' without,
    'two servers' at the top, of which VDU1 waits for VDU2; each with ' with volume' behind it boots
    from a volume, with ' with secret' it is given one by a hidden parameter.
    """
    kind, _, more = shape.partition(" with ")
    volume, hidden = more == "volume", SECRET if more == "secret" else {}
    resources, inner = server(volume=volume), copy.deepcopy(NESTED)
    if hidden:
        resources["VDU1"]["properties"]["metadata"] = {"secret": {"get_param": "password"}}
        inner["properties"]["password"] = {"get_param": "password"}
    nested = template(resources, **hidden)
    tops = {
        "server": template(resources, **hidden),
        "nested": template({"VDU1": inner}, **hidden),
        "group": template({"VDU1_group": group(inner)}, size=SIZE, **hidden),
        "group of servers": template({"VDU1": group(_alone())}, size=SIZE),
        "two servers": template(_two(volume=volume)),
    }
    files = {"BaseHOT/simple/top.yaml": yaml.safe_dump(tops[kind])}
    if kind in ("nested", "group"):
        files["BaseHOT/simple/nested/nested_server.yaml"] = yaml.safe_dump(nested)
    return files


def _two(*, volume: bool) -> dict[str, Json]:
    both = server(volume=volume) | server(number=2, volume=volume)
    both["VDU1"]["depends_on"] = "VDU2"
    return both


def _alone() -> Json:
    networks = [{"network": {"get_param": "network"}}]
    properties = {"image": {"get_param": "image"}, "flavor": {"get_param": "flavor"}}
    return {"type": "OS::Nova::Server", "properties": {**properties, "networks": networks}}


def vnfd(image: str, flavor: str, vdus: tuple[str, ...] = ("VDU1",)) -> str:
    """Return a deployment flavour whose VDUs and storage have this software."""
    nodes = ""
    for vdu in vdus:
        nodes += f"""\
    {vdu}:
      type: tosca.nodes.nfv.Vdu.Compute
      properties: {{name: {vdu}, sw_image_data: {{name: {image}}}}}
      capabilities:
        virtual_compute:
          properties:
            requested_additional_capabilities:
              properties: {{requested_additional_capability_name: {flavor}}}
"""
    nodes += f"""\
    Disk1:
      type: tosca.nodes.nfv.Vdu.VirtualBlockStorage
      properties: {{sw_image_data: {{name: {image}}}}}
"""
    return packages.flavour("simple", {}) + nodes


TYPES = """\
  tosca.nodes.nfv.Vdu.Compute:
    derived_from: tosca.nodes.Root
    properties:
      name: {type: string}
      sw_image_data: {type: map, required: false, entry_schema: {type: string}}
    capabilities:
      virtual_compute: {type: tosca.capabilities.nfv.VirtualCompute}
  tosca.nodes.nfv.Vdu.VirtualBlockStorage:
    derived_from: tosca.nodes.Root
    properties:
      sw_image_data: {type: map, required: false, entry_schema: {type: string}}
capability_types:
  tosca.capabilities.nfv.VirtualCompute:
    derived_from: tosca.capabilities.Root
    properties:
      requested_additional_capabilities: {type: map, entry_schema: {type: map}}
"""


def package(vnfd_id: str, flavour: str, files: dict[str, str]) -> dict[str, str]:
    """Return the files of a whole package."""
    plain = packages.with_vnfd({"simple.yaml": flavour}, files)
    old = "  tosca.nodes.nfv.Vdu.Compute:\n    derived_from: tosca.nodes.Root\n    properties:\n"
    types = plain["Definitions/types.yaml"].replace(old + "      name: {type: string}\n", TYPES)
    # the VNF's own type came after the replaced one: it has to stay among the node types
    head, _, rest = types.partition("capability_types:\n")
    capability, _, vnf = rest.partition("  test.VNF:")
    types = f"{head}  test.VNF:{vnf}capability_types:\n{capability}".replace("the-vnfd", vnfd_id)
    listed = {name: text for name, text in plain.items() if name != packages.META}
    listed["Definitions/types.yaml"] = types
    header = "Entry-Definitions: Definitions/top.vnfd.yaml\n"
    return {packages.META: packages.listing(listed, header), **listed}
