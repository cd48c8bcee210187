# SPDX-License-Identifier: Apache-2.0
"""Samples with one broken part: every reader refuses them with an error of ours that names it."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from container_update.model.errors import ContainerUpdateError
from container_update.package import csar, hot, hot_files
from container_update.package.findings import Severity
from container_update.package.tools import samples
from container_update.package.tools.build import write_metadata
from container_update.package.tools.check import check
from container_update.vnfm.packages import package_info

CNF, VM, USERS = (
    "05-rolling-update/before",
    "06-openstack-blue-green/before",
    "01-user-guide/v1/after",
)
VNFD, FLAVOUR = "Definitions/sample.vnfd.yaml", "Definitions/df_simple.yaml"
DAEMON, VOLUMES = "Files/kubernetes/daemonset.yaml", "Files/kubernetes/pod_volume.yaml"
TOP, NESTED = "BaseHOT/simple/top.yaml", "BaseHOT/simple/nested/front.yaml"
MAPPINGS = ("topology_template", "substitution_mappings")
CONTAINER = ("spec", "template", "spec", "containers", 0)
MEMBER = ("resources", "VDU1_group", "properties")

BROKEN: dict[str, tuple[str, str, tuple[str | int, ...], Any, str]] = {
    "a node type that is a mapping": (
        CNF, VNFD, (*MAPPINGS, "node_type"), {"type": []},
        f"{VNFD}:54: expected text as topology_template.substitution_mappings.node_type, found a",
    ),
    "mapped properties that are a list": (
        CNF, VNFD, (*MAPPINGS, "properties"), ["x"],
        f"{VNFD}:55: expected a mapping as topology_template.substitution_mappings.properties,",
    ),
    "substitution mappings that are text": (CNF, VNFD, MAPPINGS, "x", f"{VNFD}:53: expected a"),
    "a topology that is text": (CNF, VNFD, MAPPINGS[:1], "x", f"{VNFD}:30: expected a mapping as"),
    "nodes that are a list": (
        CNF, VNFD, ("topology_template", "node_templates"), ["x"],
        f"{VNFD}:31: expected a mapping as topology_template.node_templates, found a list",
    ),
    "a node that is nothing": (
        CNF, VNFD, ("topology_template", "node_templates", "VDU9"), None,
        f"{VNFD}:44: expected a mapping as topology_template.node_templates.VDU9, found nothing",
    ),
    "interfaces that are a list": (
        CNF, VNFD, ("topology_template", "node_templates", "VNF", "interfaces"), ["Vnflcm"],
        f"{VNFD}:45: expected a mapping as topology_template.node_templates.VNF.interfaces, found",
    ),
    "policies that are a mapping": (
        CNF, VNFD, ("topology_template", "policies"), {"a": {}},
        f"{VNFD}:53: expected a list as topology_template.policies, found a mapping",
    ),
    "an import of no URL": (CNF, VNFD, ("imports",), ["http://[::1"], f"{VNFD}:"),
    "a valueFrom that is a number": (
        USERS, DAEMON, (*CONTAINER, "env", 0, "valueFrom"), 7,
        'as "spec.template.spec.containers[0].env[0].valueFrom" in the DaemonSet, found a number',
    ),
    "a configMapKeyRef that is a list": (
        USERS, DAEMON, (*CONTAINER, "env", 0, "valueFrom", "configMapKeyRef"), [{}],
        'containers[0].env[0].valueFrom.configMapKeyRef" in the DaemonSet, found a list',
    ),
    "the key of a reference that is a mapping": (
        USERS, DAEMON, (*CONTAINER, "env", 0, "valueFrom", "secretKeyRef"), {"key": {}},
        'containers[0].env[0].valueFrom.secretKeyRef.key" in the DaemonSet, found a mapping',
    ),
    "a volume's ConfigMap that is true": (
        USERS, VOLUMES, ("spec", "volumes", 0, "configMap"), True,
        'expected a mapping as "spec.volumes[0].configMap" in the Pod, found a boolean',
    ),
    "items of a volume that are texts": (
        USERS, VOLUMES, ("spec", "volumes", 0, "configMap"), {"name": "c", "items": ["x"]},
        'expected a mapping as "spec.volumes[0].configMap.items[0]" in the Pod, found text',
    ),
    "a projected volume without a list": (
        USERS, VOLUMES, ("spec", "volumes", 0, "projected"), {"sources": {}},
        'expected a list as "spec.volumes[0].projected.sources" in the Pod, found a mapping',
    ),
    "a plug-in's Secret that is text": (
        USERS, VOLUMES, ("spec", "volumes", 0, "csi"), {"nodePublishSecretRef": "x"},
        'a mapping as "spec.volumes[0].csi.nodePublishSecretRef" in the Pod, found text',
    ),
    "a subPath that is a number": (
        USERS, VOLUMES, ("spec", "containers", 0, "volumeMounts", 0, "subPath"), 5,
        'as "spec.containers[0].volumeMounts[0].subPath" in the Pod, found a number',
    ),
    "a resource's properties that are a list": (
        VM, TOP, MEMBER, [{}], f"{TOP}:17: expected a mapping as resources.VDU1_group.properties,",
    ),
    "a resource's type that is a list": (
        VM, NESTED, ("resources", "VDU1", "type"), [],
        "front.yaml:31: expected text as resources.VDU1.type, found a list",
    ),
    "a parameter that is nothing": (
        VM, TOP, ("parameters", "size"), None,
        f"{TOP}:12: expected a mapping as parameters.size, found nothing",
    ),
    "a member of a group that is a number": (VM, TOP, (*MEMBER, "resource"), -1, "found 0"),
}  # fmt: skip
"""The sample, the file, the path in it, the value that is set, and what is said."""
HARMLESS = {
    "a get_resource of a list": (VM, TOP, (*MEMBER, "desired_capacity"), {"get_resource": []}),
    "a get_attr of nothing": (VM, TOP, ("resources", "apart", "properties"), {"get_attr": []}),
    "no node at all": (VM, "Definitions/top.vnfd.yaml", MAPPINGS[:1], {}),
    "a checksum that is text": (
        VM, FLAVOUR,
        ("topology_template", "node_templates", "VDU1", "properties", "sw_image_data", "checksum"),
        "x",
    ),
}  # fmt: skip


def changed(folder: Path, sample: str, file: str, path: tuple[str | int, ...], value: Any) -> str:
    """Write a sample with another value; its path."""
    package = folder / "package"
    shutil.copytree(samples.root() / sample, package)
    content: Any = yaml.safe_load((package / file).read_text())
    inner = content
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    (package / file).write_text(yaml.safe_dump(content))
    write_metadata(package)
    return str(package)


def by_library(source: str) -> None:
    with csar.open_package(source) as package:
        package.verify()
        package.vdus()
        for path in package.manifest_files():
            package.manifests(path, "ns")
        for flavour in package.flavours if "BaseHOT/simple/top.yaml" in package.names() else ():
            body = hot_files.base_hot(package, flavour.id)
            hot.with_dependencies(body.template, set(body.template["resources"]))
            for vdu in flavour.vdus.items():
                hot.place_of(body, *vdu, source)


def by_service(source: str) -> None:
    path = Path(source).with_suffix(".zip")
    path.write_bytes(b"")
    with csar.open_package(source) as package:
        package.verify()
        package_info(package, path)


def said_by(use: Callable[[str], None], source: str) -> str:
    try:
        use(source)
    except ContainerUpdateError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("sample", "file", "path", "value", "message"), BROKEN.values(), ids=BROKEN
)
def test_what_is_broken_is_named(tmp_path, sample, file, path, value, message):
    source = changed(tmp_path, sample, file, path, value)
    assert message in said_by(by_library, source)
    findings = [each for each in check(source) if each.severity is Severity.ERROR]
    assert any(message in str(each).replace("error: ", "", 1) for each in findings) or any(
        "VDU1 has no OS::Nova::Server" in each.message for each in findings
    )
    said_by(by_service, source)


@pytest.mark.parametrize(("sample", "file", "path", "value"), HARMLESS.values(), ids=HARMLESS)
def test_what_is_odd_is_no_defect_of_ours(tmp_path, sample, file, path, value):
    source = changed(tmp_path, sample, file, path, value)
    for use in (by_library, by_service, check):
        said_by(use, source)


def test_a_zip_whose_names_are_no_text_is_refused(tmp_path):
    path = tmp_path / "z.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("\u00e4\u00e4.yaml", "x")
    path.write_bytes(path.read_bytes().replace("\u00e4".encode(), b"\xff\xfe"))
    assert said_by(by_library, str(path)).startswith(
        f"the package {path} is neither a folder nor a zip file: "
    )
