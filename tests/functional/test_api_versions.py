# SPDX-License-Identifier: Apache-2.0
"""The version of the API in a manifest: an object is the same one in each, and is read and written
in the manifest's where the server serves it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest

from container_update import (
    ClusterError,
    ContainerUpdateError,
    PackageError,
    UpdateFailedError,
    change_package,
    terminate,
)
from tests.functional.cnf import BAD_IMAGE, IMAGES, Cnf
from tests.functional.conftest import until
from tests.functional.manifests import ENV, config_map, workload
from tests.internals.core import Collection, Json, ObjectKey


@pytest.fixture
def group(cnf: Cnf) -> Iterator[str]:
    """The group of a kind that is served in two versions, of which v1 is preferred."""
    group = f"{uuid.uuid4().hex[:8]}.example.com"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": schema}
        for name in ("v1alpha1", "v1")
    ]
    names = {"kind": "Thing", "plural": "things", "singular": "thing"}
    spec = {"group": group, "names": names, "scope": "Namespaced", "versions": versions}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": spec,
    }
    cnf.admin.create(definition)
    until(lambda: _is_served(cnf, group))
    yield group
    cnf.admin.delete(ObjectKey.of(definition))


def _is_served(cnf: Cnf, group: str) -> bool:
    try:
        return not cnf.admin.list(Collection(group, "Thing", cnf.namespace)).items
    except ClusterError:
        return False


def thing(version: str, size: int) -> str:
    return f"apiVersion: {version}\nkind: Thing\nmetadata: {{name: t}}\nspec: {{size: {size}}}\n"


def scaler(version: str, most: int) -> str:
    target = "scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: w}"
    spec = f"spec: {{{target}, maxReplicas: {most}}}"
    return f"apiVersion: {version}\nkind: HorizontalPodAutoscaler\nmetadata: {{name: t}}\n{spec}\n"


def live(cnf: Cnf, group: str, kind: str) -> Json | None:
    return cnf.admin.get(ObjectKey(group, kind, cnf.namespace, "t"))


def changed(cnf: Cnf, **files: str) -> None:
    new = cnf.package({f"{name}.yaml": text for name, text in files.items()})
    parameters = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": "RollingUpdate"}}
    change_package(parameters, cnf.admin, cnf.options, old=cnf.old, new=new, **cnf.where)
    cnf.old = new


@pytest.mark.parametrize("kind", ["HorizontalPodAutoscaler", "Thing"])
def test_each_verb_writes_in_the_version_of_the_manifest(kind: str, group: str, cnf: Cnf) -> None:
    cnf = replace(cnf, cluster=cnf.admin)
    group, versions, written, size = {
        "Thing": (group, ("v1alpha1", "v1"), thing, "size"),
        "HorizontalPodAutoscaler": ("autoscaling", ("v1", "v2"), scaler, "maxReplicas"),
    }[kind]
    web, (other, preferred) = workload("Deployment"), [f"{group}/{name}" for name in versions]

    def spec() -> object:
        found = live(cnf, group, kind)
        return found and found["spec"][size]

    cnf.instantiate(w=web, t=written(other, 1))
    assert spec() == 1
    changed(cnf, w=web, t=written(other, 2))
    assert spec() == 2
    with pytest.raises(UpdateFailedError):
        changed(cnf, w=workload("Deployment", image=BAD_IMAGE), t=written(preferred, 3))
    assert spec() == 2, "the way back"
    changed(cnf, w=web, t=written(preferred, 3))
    changed(cnf, w=web, t=written(other, 4))
    assert spec() == 4
    found = live(cnf, group, kind)
    assert found is not None
    cnf.admin.replace({**found, "spec": {**found["spec"], size: 9}})
    cnf.heal(cnf.old, cnf.admin)
    assert spec() == (4 if kind == "Thing" else 9), "an operator may have changed the limits"
    terminate(cnf.old, cnf.admin, options=cnf.options, **cnf.where)
    assert spec() is None


def test_an_old_manifest_of_what_is_served_no_more_is_that_of_the_same_object(cnf: Cnf) -> None:
    before = {
        "cm": config_map(setting="1"),
        "w": workload("Deployment", container=ENV),
        "j": workload("CronJob", "j", container=ENV),
    }
    cnf.instantiate(**before)
    names = {"apps/v1": "apps/v1beta2", "batch/v1": "batch/v1beta1"}
    told = {name: _told(text, names) for name, text in before.items()}
    cnf.old = cnf.package({f"{name}.yaml": text for name, text in told.items()})
    after = {
        "cm": config_map(setting="2"),
        "w": workload("Deployment", container=ENV, image=IMAGES[1]),
        "j": workload("CronJob", "j", container=ENV, image=IMAGES[1]),
    }
    outcome = cnf.update(after)
    assert not [each for each in outcome.plan.notes if "apiVersion" in each.text]
    assert {pod.image for pod in cnf.pods("Deployment", "w").values()} == {IMAGES[1]}
    job = cnf.get("CronJob", "j")["spec"]["jobTemplate"]["spec"]["template"]
    assert job["spec"]["containers"][0]["image"] == IMAGES[1]
    assert cnf.get("ConfigMap", "cm")["data"] == {"setting": "2"}


def _told(text: str, names: dict[str, str]) -> str:
    for name, other in names.items():
        text = text.replace(f"apiVersion: {name}\n", f"apiVersion: {other}\n")
    return text


def test_an_old_or_new_manifest_in_a_group_that_has_moved_is_refused(cnf: Cnf) -> None:
    before, after = (
        {"cm": config_map(setting=n), "w": workload("Deployment", container=ENV)} for n in "12"
    )
    cnf.instantiate(**before)
    live = cnf.old
    moved = {"apps/v1": "extensions/v1beta1"}
    expected = r"w.yaml:1: expected apps/v1, where the Deployment is .*, found extensions/v1beta1"
    for old, new in (({}, moved), (moved, {})):
        cnf.old = cnf.package({f"{n}.yaml": _told(text, old) for n, text in before.items()})
        with pytest.raises(PackageError, match=expected):
            cnf.update({n: _told(text, new) for n, text in after.items()})
    assert cnf.get("ConfigMap", "cm")["data"] == {"setting": "1"}
    cnf.old = live
    cnf.update(after)
    assert cnf.get("ConfigMap", "cm")["data"] == {"setting": "2"}


def test_a_new_manifest_of_what_is_not_served_is_refused_before_anything_is_written(
    cnf: Cnf,
) -> None:
    version = "apps/v1beta1"
    cnf.instantiate(cm=config_map(setting="1"), w=workload("Deployment", container=ENV))
    new = workload("Deployment", container=ENV, image=IMAGES[1])
    expected = f"serves \\(apps/v1\\), found {version}, .*write the manifest for apps/v1"
    with pytest.raises(ContainerUpdateError, match=expected):
        changed(cnf, cm=config_map(setting="2"), w=_told(new, {"apps/v1": version}))
    assert cnf.get("ConfigMap", "cm")["data"] == {"setting": "1"}
