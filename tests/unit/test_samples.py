# SPDX-License-Identifier: Apache-2.0
"""The samples hold what the user guides show: objects, names, texts, sizes, images."""

from __future__ import annotations

import base64
import json

import pytest

from container_update.package import csar, csar_metadata, manifests
from container_update.package.findings import Severity
from container_update.package.tools import build, check, samples
from container_update.workloads.config_references import uses
from container_update.workloads.pod_template import pod_spec

GUIDE = samples.root() / "01-user-guide"
PACKAGES = ["v1/before", "v1/after", "v2/before", "v2/after"]

OLD_TEXT, NEW_TEXT = "configmap data\nfoo\nbar", "configmap2 data2\nfoo2\nbar2"
OLD_SIZES = {"password": 15, "secKey1.txt": 15}
NEW_SIZES = {"password": 16, "secKey1.txt": 18}

# Kind, name, its ConfigMap's and Secret's number ('' for the updated group), old and new image.
WORKLOADS = {
    "v1": [
        ("Pod", "env-test1", "", "nginx", "cirros"),
        ("Pod", "env-test2", "2", "nginx", "nginx"),
        ("Pod", "volume-test1", "", "nginx", "cirros"),
        ("Pod", "volume-test2", "2", "nginx", "nginx"),
        ("Deployment", "deployment1", "", "nginx", "cirros"),
        ("Deployment", "deployment2", "2", "nginx", "nginx"),
        ("DaemonSet", "daemonset", "", "nginx", "cirros"),
        ("ReplicaSet", "replicaset", "", "nginx", "cirros"),
    ],
    "v2": [
        ("Pod", "env-test", "", "nginx", "tomcat"),
        ("Pod", "env-test2", "3", "nginx", "nginx"),
        ("Pod", "volume-test", "", "nginx", "cirros"),
        ("Pod", "volume-test2", "3", "nginx", "nginx"),
        ("Deployment", "vdu1-update", "", "nginx", "cirros"),
        ("Deployment", "deployment2-vdu6", "3", "nginx", "nginx"),
        ("DaemonSet", "daemonset-vdu5", "", "nginx", "cirros"),
        ("ReplicaSet", "vdu2-update", "", "nginx", "celebdor/kuryr-demo"),
    ],
}
SECOND = {"v1": "2", "v2": "3"}
APPS = {"Deployment": "webserver", "ReplicaSet": "webserver", "DaemonSet": "nginx"}


ALL = sorted(
    str(found.parents[1].relative_to(GUIDE.parent))
    for found in GUIDE.parent.glob("*/**/TOSCA.meta")
)


def test_there_are_samples_to_check() -> None:
    assert len(ALL) >= 12


@pytest.mark.parametrize("package", ALL)
def test_the_check_of_packages_finds_no_error(package: str) -> None:
    found = check.check(str(GUIDE.parent / package))
    assert [str(f) for f in found if f.severity is Severity.ERROR] == []


def objects(package: str) -> dict[tuple[str, str], dict]:
    with csar.open_package(str(GUIDE / package)) as opened:
        found = [
            manifest
            for path in opened.manifest_files()
            for manifest in manifests.parse(opened.read(path), path, "default")
        ]
    bodies = {(manifest.key.kind, manifest.key.name): manifest.body for manifest in found}
    assert len(bodies) == len(found) == 12
    return bodies


def request(name: str) -> dict:
    return json.loads((GUIDE / name).read_text())


@pytest.mark.parametrize("package", PACKAGES)
def test_every_hash_is_right(package):
    with csar.open_package(str(GUIDE / package)) as opened:
        opened.verify()


@pytest.mark.parametrize("package", PACKAGES)
def test_the_metadata_is_what_a_build_writes(package, tmp_path):
    for file in (GUIDE / package).rglob("*.yaml"):
        copy = tmp_path / file.relative_to(GUIDE / package)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
    written = build.write_metadata(tmp_path).read_text()
    assert (GUIDE / package / csar_metadata.TOSCA_META).read_text() == written


@pytest.mark.parametrize("package", PACKAGES)
def test_config_maps_have_the_texts_of_the_guide(package):
    guide, _, state = package.partition("/")
    found = objects(package)
    updated = NEW_TEXT if state == "after" else OLD_TEXT
    assert found["ConfigMap", "cm-data"]["data"] == {"cmKey1.txt": updated}
    assert found["ConfigMap", f"cm-data{SECOND[guide]}"]["data"] == {"cmKey1.txt": OLD_TEXT}


@pytest.mark.parametrize("package", PACKAGES)
def test_secrets_have_the_sizes_of_the_guide(package):
    guide, _, state = package.partition("/")
    found = objects(package)
    expected = {"": NEW_SIZES if state == "after" else OLD_SIZES, SECOND[guide]: OLD_SIZES}
    for number, sizes in expected.items():
        secret = found["Secret", f"secret-data{number}"]
        data = {key: len(base64.b64decode(value)) for key, value in secret["data"].items()}
        assert (secret["type"], data) == ("Opaque", sizes)


@pytest.mark.parametrize("package", PACKAGES)
def test_workloads_have_the_images_and_selectors_of_the_guide(package):
    guide, _, state = package.partition("/")
    found = objects(package)
    for kind, name, _, old, new in WORKLOADS[guide]:
        workload = found[kind, name]
        (container,) = pod_spec(workload)["containers"]
        image = new if state == "after" else old
        assert (container["name"], container["image"]) == ("nginx", image)
        if kind in APPS:
            assert workload["spec"]["selector"] == {"matchLabels": {"app": APPS[kind]}}
            assert workload["spec"]["template"]["metadata"]["labels"] == {"app": APPS[kind]}


@pytest.mark.parametrize("package", PACKAGES)
def test_workloads_use_the_configuration_of_their_group(package):
    guide = package.partition("/")[0]
    found = objects(package)
    for kind, name, number, _, _ in WORKLOADS[guide]:
        used = {(use.kind, use.name) for use in uses(pod_spec(found[kind, name]))}
        assert used == {("ConfigMap", f"cm-data{number}"), ("Secret", f"secret-data{number}")}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_workload_is_a_vdu(package):
    with csar.open_package(str(GUIDE / package)) as opened:
        names = set(opened.vdus("simple").values())
    assert names == {name for _, name, *_ in WORKLOADS[package.partition("/")[0]]}


@pytest.mark.parametrize("guide", ["v1", "v2"])
def test_only_images_and_listed_configuration_differ(guide):
    before, after = objects(f"{guide}/before"), objects(f"{guide}/after")
    assert before.keys() == after.keys()
    for kind, name, _, old, new in WORKLOADS[guide]:
        changed = json.dumps(before[kind, name]).replace(f'"image": "{old}"', f'"image": "{new}"')
        assert json.loads(changed) == after[kind, name]


@pytest.mark.parametrize("guide", ["v1", "v2"])
def test_the_requests_name_the_def_files_and_the_new_vnfd(guide):
    instantiate = request(f"{guide}/instance_kubernetes.json")
    modify = request(f"{guide}/sample_param_file.json")
    with csar.open_package(str(GUIDE / guide / "before")) as before:
        def_files = instantiate["additionalParams"]["lcm-kubernetes-def-files"]
        assert sorted(def_files) == sorted(before.manifest_files())
        assert instantiate["flavourId"] in {flavour.id for flavour in before.flavours}
    with csar.open_package(str(GUIDE / guide / "after")) as after:
        assert modify["vnfdId"] == after.vnfd_id
        assert set(modify["metadata"]["configmap_secret_paths"]) <= set(after.manifest_files())
    assert modify["vnfdId"] != before.vnfd_id
