# SPDX-License-Identifier: Apache-2.0
"""A change of the versions that a CustomResourceDefinition of the package serves."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
import yaml

from container_update import Outcome, UpdateFailedError, change_package, install
from tests.functional.cnf import BAD_IMAGE, Cnf
from tests.functional.manifests import config_map, workload
from tests.internals.core import ObjectKey

SCHEMA = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}


class Kind:
    """A kind of one test, which every namespace has."""

    def __init__(self, cnf: Cnf) -> None:
        self.cnf, self.group = cnf, f"g{uuid.uuid4().hex[:8]}.example.org"
        self.definition = ObjectKey(
            "apiextensions.k8s.io", "CustomResourceDefinition", "", f"things.{self.group}"
        )

    def files(self, *versions: str, unserved: str = "", say: str = "1", **more: str) -> str:
        """Return a package with the definition, and an object of the last version."""
        listed = [
            {"name": name, "served": name != unserved, "storage": name == "v1", "schema": SCHEMA}
            for name in versions
        ]
        names = {"plural": "things", "singular": "thing", "kind": "Thing"}
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.definition.name},
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": names,
                "versions": listed,
            },
        }
        thing = {
            "apiVersion": f"{self.group}/{versions[-1]}",
            "kind": "Thing",
            "metadata": {"name": "one"},
            "spec": {"say": say},
        }
        files = {"crd.yaml": yaml.safe_dump(definition), "thing.yaml": yaml.safe_dump(thing)}
        files["cm.yaml"] = config_map(setting="a")
        return self.cnf.package({**files, **{f"{n}.yaml": text for n, text in more.items()}})

    def changed(self, old: str, new: str) -> Outcome:
        request = {"vnfdId": "any", "additionalParams": {"upgrade_type": "RollingUpdate"}}
        cnf = self.cnf
        return change_package(request, cnf.admin, cnf.options, old=old, new=new, **cnf.where)

    def said(self, version: str, name: str = "one") -> str:
        key = ObjectKey(self.group, "Thing", self.cnf.namespace, name, f"{self.group}/{version}")
        body = self.cnf.admin.get(key)
        assert body is not None
        assert body["apiVersion"] == f"{self.group}/{version}"
        return str(body["spec"]["say"])


@pytest.fixture
def kind(cnf: Cnf) -> Iterator[Kind]:
    made = Kind(cnf)
    yield made
    cnf.admin.delete(made.definition)


def test_an_object_of_a_version_that_the_package_adds_is_changed_with_it(kind: Kind) -> None:
    old, new = kind.files("v1"), kind.files("v1", "v2", say="2")
    cnf = kind.cnf
    install(old, cnf.admin, options=cnf.options, **cnf.where)
    assert kind.said("v1") == "1"
    kind.changed(old, new)
    assert kind.said("v2") == "2"
    newest = kind.files("v1", "v2", "v3", unserved="v1", say="3")
    kind.changed(new, newest)
    assert kind.said("v3") == "3"


def test_an_object_that_is_new_in_the_added_version_is_created(kind: Kind) -> None:
    old, cnf = kind.files("v1"), kind.cnf
    install(old, cnf.admin, options=cnf.options, **cnf.where)
    two = (
        f"apiVersion: {kind.group}/v2\nkind: Thing\nmetadata: {{name: two}}\nspec: {{say: more}}\n"
    )
    kind.changed(old, kind.files("v1", "v2", two=two))
    assert kind.said("v2", "two") == "more"


@pytest.mark.parametrize("unserved", ["", "v1"])
def test_a_change_that_fails_leaves_the_versions_and_the_object_as_they_were(
    kind: Kind, unserved: str
) -> None:
    old, cnf = kind.files("v1"), kind.cnf
    install(old, cnf.admin, options=cnf.options, **cnf.where)
    bad = workload("Deployment", "bad", image=BAD_IMAGE)
    with pytest.raises(UpdateFailedError):
        kind.changed(old, kind.files("v1", "v2", unserved=unserved, say="2", bad=bad))
    assert cnf.admin.look_up_versions(kind.group, "Thing") == {f"{kind.group}/v1"}
    assert kind.said("v1") == "1"
