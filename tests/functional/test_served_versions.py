# SPDX-License-Identifier: Apache-2.0
"""A change of the versions that a CustomResourceDefinition of the package serves."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import Any

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

    def files(
        self,
        *versions: str,
        unserved: str = "",
        stored: str = "v1",
        say: str = "1",
        schemas: Mapping[str, Any] = {},
        **more: str,
    ) -> str:
        """Return a package with the definition, and an object of the last version."""
        listed = [
            {
                "name": name,
                "served": name != unserved,
                "storage": name == stored,
                "schema": schemas.get(name, SCHEMA),
            }
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
        files = {
            "crd.yaml": yaml.safe_dump(definition),
            "thing.yaml": self.thing(versions[-1], say=say),
        }
        files["cm.yaml"] = config_map(setting="a")
        return self.cnf.package({**files, **{f"{n}.yaml": text for n, text in more.items()}})

    def thing(self, version: str, **spec: Any) -> str:
        """Return an object of the kind."""
        thing = {
            "apiVersion": f"{self.group}/{version}",
            "kind": "Thing",
            "metadata": {"name": "one"},
            "spec": spec,
        }
        return yaml.safe_dump(thing)

    def changed(self, old: str, new: str) -> Outcome:
        request = {"vnfdId": "any", "additionalParams": {"upgrade_type": "RollingUpdate"}}
        cnf = self.cnf
        return change_package(request, cnf.admin, cnf.options, old=old, new=new, **cnf.where)

    def said(self, version: str, name: str = "one", field: str = "say") -> str:
        key = ObjectKey(self.group, "Thing", self.cnf.namespace, name, f"{self.group}/{version}")
        body = self.cnf.admin.get(key)
        assert body is not None
        assert body["apiVersion"] == f"{self.group}/{version}"
        return str(body["spec"][field])


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


@pytest.mark.parametrize("stored", ["v1", "v2"])
@pytest.mark.parametrize("unserved", ["", "v1"])
def test_a_change_that_fails_leaves_the_versions_and_the_object_as_they_were(
    kind: Kind, unserved: str, stored: str
) -> None:
    old, cnf = kind.files("v1"), kind.cnf
    install(old, cnf.admin, options=cnf.options, **cnf.where)
    bad = workload("Deployment", "bad", image=BAD_IMAGE)
    new = kind.files("v1", "v2", unserved=unserved, stored=stored, say="2", bad=bad)
    with pytest.raises(UpdateFailedError, match="Everything is as before"):
        kind.changed(old, new)
    assert cnf.admin.look_up_versions(kind.group, "Thing") == {f"{kind.group}/v1"}
    assert kind.said("v1") == "1"


def test_a_version_that_the_server_has_stored_stays_without_being_served(kind: Kind) -> None:
    """The server refuses a definition without it, until another client has migrated all objects."""
    old, cnf = kind.files("v1"), kind.cnf
    new = kind.files("v1", "v2", stored="v2", say="2")
    install(old, cnf.admin, options=cnf.options, **cnf.where)
    noted = "CustomResourceDefinition things.{}: version v2 stays{}, not served: "
    outcome = kind.changed(old, new)
    assert noted.format(kind.group, " after an undo") in notes(outcome)
    outcome = kind.changed(new, old)
    assert noted.format(kind.group, "") in notes(outcome)
    assert cnf.admin.look_up_versions(kind.group, "Thing") == {f"{kind.group}/v1"}
    assert kind.said("v1") == "1"
    assert kind.changed(new, old).plan.is_empty
    definition = cnf.admin.get(kind.definition)
    cnf.heal(old, cnf.admin)
    assert cnf.admin.get(kind.definition) == definition
    kind.changed(old, new)
    assert kind.said("v2") == "2"


CAPACITY = {"type": "object", "properties": {"capacity": {"type": "integer"}}}


def test_a_field_that_the_other_version_does_not_have_is_not_said_to_be_kept(kind: Kind) -> None:
    """The server has moved or dropped it as it converts the object; there is nothing to keep."""
    schemas = {"v2": {"openAPIV3Schema": {"type": "object", "properties": {"spec": CAPACITY}}}}
    old, new = (
        kind.files("v1", "v2", schemas=schemas, thing=kind.thing(version, **{field: 2}))
        for version, field in (("v1", "size"), ("v2", "capacity"))
    )
    cnf = kind.cnf
    install(old, cnf.admin, options=cnf.options, **cnf.where)
    outcome = kind.changed(old, new)
    assert "size" not in notes(outcome)
    assert kind.said("v2", field="capacity") == "2"


def notes(outcome: Outcome) -> str:
    return "\n".join(f"{note.key}: {note.text}" for note in outcome.plan.notes)
