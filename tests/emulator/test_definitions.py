# SPDX-License-Identifier: Apache-2.0
"""CustomResourceDefinitions: when their objects are served, and what goes with them."""

from collections.abc import Iterator
from typing import Any

import pytest

from container_update.emulator.kubernetes import Behaviour, EmbeddedCluster
from tests.emulator.client import Answer, Api, eventually

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ONE = f"{DEFINITIONS}/things.example.org"
THINGS = "/apis/example.org/v1/namespaces/default/things"
ABOUT = {"apiVersion": "example.org/v1", "kind": "Thing"}
THING = ABOUT | {
    "metadata": {"name": "t"},
    "spec": {"empty": [], "none": None},
    "status": {"x": 1},
}
SCHEMA = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}


def definition(**spec: Any) -> Any:
    version = {"name": "v1", "served": True, "storage": True, "schema": SCHEMA}
    names = {"plural": "things", "kind": "Thing"}
    about = {"group": "example.org", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "things.example.org"}, "spec": about | spec}


def conditions(answer: Answer) -> dict[str, str]:
    given = answer.body["status"].get("conditions") or []
    return {entry["type"]: entry["status"] for entry in given}


@pytest.fixture
def behaviour() -> Behaviour:
    """Definitions are not served until a test says so."""
    return Behaviour(definition_seconds=3600)


@pytest.fixture
def api(behaviour: Behaviour) -> Iterator[Api]:
    """A client of a cluster with that behaviour."""
    with EmbeddedCluster(behaviour=behaviour) as running:
        client = Api(running)
        yield client
        client.close()


@pytest.fixture
def served(api: Api, behaviour: Behaviour) -> Api:
    """A client of a cluster that serves things."""
    behaviour.definition_seconds = 0
    assert api.post(DEFINITIONS, definition()).status == 201
    eventually(lambda: api.get(THINGS).status, lambda status: status == 200, "things are served")
    return api


def test_a_new_definition_is_not_served_yet(api: Api) -> None:
    created = api.post(DEFINITIONS, definition())
    assert created.status == 201
    assert created.body["status"] == {
        "acceptedNames": {"kind": "", "plural": ""},
        "conditions": None,
        "storedVersions": ["v1"],
    }
    for answer in (
        api.get(THINGS), api.get(f"{THINGS}/t"), api.post(THINGS, THING), api.delete(f"{THINGS}/t"),
        api.get("/apis/example.org/v1"), api.get("/apis/example.org"),
    ):  # fmt: skip
        assert (answer.status, answer.body) == (404, "404 page not found\n")
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    groups = {entry["name"] for entry in api.get("/apis").body["groups"]}
    assert "example.org" not in groups


def test_an_established_definition_is_served(served: Api) -> None:
    answer = served.get(ONE)
    assert conditions(answer) == {"NamesAccepted": "True", "Established": "True"}
    assert answer.body["status"]["acceptedNames"]["listKind"] == "ThingList"
    assert served.post(THINGS, THING).status == 201
    stored = served.get(f"{THINGS}/t").body
    assert (stored["kind"], stored["apiVersion"]) == ("Thing", "example.org/v1")
    assert stored["spec"] == {"empty": [], "none": None}
    resources = served.get("/apis/example.org/v1").body["resources"]
    assert [entry["name"] for entry in resources] == ["things"]


def test_an_established_definition_stays_served_when_it_changes(served: Api) -> None:
    changed = definition(names={"plural": "things", "kind": "Thing", "shortNames": ["th"]})
    version = served.get(ONE).body["metadata"]["resourceVersion"]
    changed["metadata"]["resourceVersion"] = version
    assert served.put(ONE, changed).status == 200
    [resource] = served.get("/apis/example.org/v1").body["resources"]
    assert resource["shortNames"] == ["th"]


def test_a_version_that_was_stored_has_to_stay(served: Api) -> None:
    def put(**stored: bool) -> Answer:
        about = served.get(ONE).body
        listed = [
            {"name": name, "served": True, "storage": here, "schema": SCHEMA}
            for name, here in stored.items()
        ]
        return served.put(ONE, about | {"spec": about["spec"] | {"versions": listed}})

    assert put(v1=False, v2=True).body["status"]["storedVersions"] == ["v1", "v2"]
    refused = put(v1=True)
    assert refused.status == 422
    assert "status.storedVersions[1]: Invalid value" in refused.body["message"]
    assert put(v1=True, v2=False).body["status"]["storedVersions"] == ["v1", "v2"]


def test_the_objects_of_a_deleted_definition_are_deleted(served: Api) -> None:
    held = THING | {"metadata": {"name": "held", "finalizers": ["example.org/mine"]}}
    for body in (THING, held):
        assert served.post(THINGS, body).status == 201
    assert served.delete(ONE).body["metadata"]["deletionTimestamp"]
    eventually(
        lambda: [item["metadata"]["name"] for item in served.get(THINGS).body["items"]],
        lambda names: names == ["held"],
        "the object that nothing holds is deleted",
    )
    refused = served.post(THINGS, ABOUT | {"metadata": {"name": "late"}})
    assert (refused.status, refused.body["reason"]) == (403, "Forbidden")
    served.patch(f"{THINGS}/held", {"metadata": {"finalizers": []}})
    eventually(lambda: served.get(ONE).status, lambda status: status == 404, "it is gone")
    assert served.get(THINGS).body == "404 page not found\n"
    assert served.post(DEFINITIONS, definition()).status == 201


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            definition(names={"plural": "other", "kind": "Thing"}),
            'metadata.name: Invalid value: "things.example.org": must be '
            'spec.names.plural+"."+spec.group',
        ),
        (
            definition(versions=[{"name": "v1", "served": True, "storage": True}]),
            "spec.versions[0].schema.openAPIV3Schema: Required value",
        ),
    ],
)
def test_a_wrong_definition_is_refused(api: Api, body: Any, message: str) -> None:
    answer = api.post(DEFINITIONS, body)
    assert answer.status == 422
    assert message in answer.body["message"]


SPEC = {
    "type": "object",
    "required": ["image"],
    "properties": {
        "image": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
        "size": {"type": "integer", "default": 3, "minimum": 1, "maximum": 9},
        "port": {"x-kubernetes-int-or-string": True},
        "mode": {"type": "string", "enum": ["fast", "slow"]},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "parts": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "on": {"type": "boolean", "default": True},
                },
            },
        },
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "maybe": {"type": "string", "nullable": True},
    },
}


@pytest.fixture
def typed(api: Api, behaviour: Behaviour) -> Api:
    """A client of a cluster that serves things whose schema says what they are."""
    behaviour.definition_seconds = 0
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    assert api.post(DEFINITIONS, definition(versions=[version])).status == 201
    eventually(lambda: api.get(THINGS).status, lambda status: status == 200, "things are served")
    return api


def thing(**spec: Any) -> Any:
    metadata = {"name": "t", "labels": {"a": "b"}}
    return ABOUT | {"metadata": metadata, "spec": {"image": "web", **spec}}


def test_what_a_schema_does_not_have_is_removed_and_its_defaults_are_filled_in(typed: Api) -> None:
    body = thing(unknown=1, parts=[{"name": "x", "other": 2}], free={"a": {"b": None}}, maybe=None)
    answer = typed.post(THINGS, body | {"extra": {}})
    assert answer.status == 201
    stored = typed.get(f"{THINGS}/t").body
    assert stored["spec"] == {
        "image": "web",
        "size": 3,
        "parts": [{"name": "x", "on": True}],
        "free": {"a": {"b": None}},
        "maybe": None,
    }
    assert stored["metadata"]["labels"] == {"a": "b"}
    assert "extra" not in stored
    patched = typed.patch(f"{THINGS}/t", {"spec": {"size": None, "unknown": 1}})
    assert patched.body["spec"] == stored["spec"]


def test_null_is_no_value_of_a_field_that_may_not_be_null(typed: Api) -> None:
    """As the API server's PruneNonNullableNullsWithoutDefaults has it."""
    body = thing(mode=None, parts=[{"name": None, "on": None}], maybe=None, free={"a": None})
    answer = typed.post(f"{THINGS}?fieldValidation=Strict", body)
    assert answer.status == 201
    assert answer.body["spec"] == {
        "image": "web",
        "size": 3,
        "parts": [{"on": True}],
        "maybe": None,
        "free": {"a": None},
    }


def test_a_strict_request_names_the_fields_that_a_schema_does_not_have(typed: Api) -> None:
    body = thing(unknown=1, parts=[{"other": 2}])
    answer = typed.post(f"{THINGS}?fieldValidation=Strict", body)
    assert answer.status == 400
    assert 'unknown field "spec.unknown", unknown field "spec.parts[0].other"' in str(answer.body)
    assert typed.get(f"{THINGS}/t").status == 404


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"size": "3"},
            'spec.size: Invalid value: "string": spec.size in body must be of type integer: '
            '"string"',
        ),
        ({"size": True}, 'must be of type integer: "boolean"'),
        ({"size": 0}, "spec.size in body should be greater than or equal to 1"),
        ({"size": 10}, "spec.size in body should be less than or equal to 9"),
        ({"port": []}, 'spec.port in body must be of type integer,string: "array"'),
        ({"mode": "odd"}, 'spec.mode: Unsupported value: "odd": supported values: "fast", "slow"'),
        ({"image": "W1"}, "spec.image in body should match '^[a-z]+$'"),
        ({"image": "longer"}, "spec.image in body should be at most 5 chars long"),
        ({"labels": {"a": 1}}, 'spec.labels.a in body must be of type string: "integer"'),
        ({"parts": []}, "spec.parts in body should have at least 1 items"),
        ({"parts": [{"on": "x"}]}, 'spec.parts[0].on in body must be of type boolean: "string"'),
        ({"labels": {"a": None}}, 'spec.labels.a in body must be of type string: "null"'),
    ],
)
def test_an_object_that_its_schema_does_not_allow_is_refused(
    typed: Api, spec: Any, message: str
) -> None:
    answer = typed.post(THINGS, thing(**spec))
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert message in answer.body["message"]


def test_a_field_that_a_schema_requires_is_named_where_it_is_missing(typed: Api) -> None:
    answer = typed.post(THINGS, ABOUT | {"metadata": {"name": "t"}, "spec": {}})
    assert "spec.image: Required value" in answer.body["message"]


def test_an_object_in_a_namespace_that_does_not_exist_is_refused(api: Api) -> None:
    answer = api.post("/api/v1/namespaces/none/configmaps", {"metadata": {"name": "c"}})
    assert (answer.status, answer.body["reason"]) == (404, "NotFound")
    assert answer.body["message"] == 'namespaces "none" not found'
