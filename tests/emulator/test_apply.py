# SPDX-License-Identifier: Apache-2.0
"""Server-side apply: who owns which field, conflicts, and what is no longer applied."""

from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.client import Answer, Api, eventually
from tests.emulator.test_definitions import DEFINITIONS, definition

MAPS = "/api/v1/namespaces/rec/configmaps"
WEB = "/apis/apps/v1/namespaces/rec/deployments/web"


def config(**data: str) -> Any:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}


def deployment(*containers: Any, replicas: int | None = None, **labels: str) -> Any:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": list(containers)}}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    spec |= {} if replicas is None else {"replicas": replicas}
    metadata = {"name": "web", "labels": labels}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def apply(api: Api, path: str, body: Any, manager: str = "me", **query: str) -> Answer:
    text = "&".join(f"{key}={value}" for key, value in {"fieldManager": manager, **query}.items())
    headers = {"Content-Type": "application/apply-patch+yaml"}
    return api.request("PATCH", f"{path}?{text}", body, headers)


def owners(answer: Answer) -> dict[tuple[str, str], Any]:
    entries = answer.body["metadata"].get("managedFields", [])
    return {(entry["manager"], entry["operation"]): entry["fieldsV1"] for entry in entries}


def test_an_apply_creates_and_owns_what_it_names(api: Api) -> None:
    first = apply(api, f"{MAPS}/c", config(a="1"))
    assert (first.status, first.body["data"]) == (201, {"a": "1"})
    assert owners(first) == {("me", "Apply"): {"f:data": {"f:a": {}}}}
    again = apply(api, f"{MAPS}/c", config(a="1"))
    assert (again.status, again.body) == (200, first.body)


def test_yaml_is_read(api: Api) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\ndata:\n  a: one\n"
    assert apply(api, f"{MAPS}/c", text).body["data"] == {"a": "one"}
    assert apply(api, f"{MAPS}/c", b"a: [").status == 400


def test_what_is_no_longer_applied_goes_unless_somebody_else_owns_it(api: Api) -> None:
    apply(api, f"{MAPS}/c", config(a="1", b="2", shared="3"))
    apply(api, f"{MAPS}/c", config(shared="3", theirs="4"), "you")
    left = apply(api, f"{MAPS}/c", config(a="1"))
    assert left.body["data"] == {"a": "1", "shared": "3", "theirs": "4"}
    assert owners(left) == {
        ("me", "Apply"): {"f:data": {"f:a": {}}},
        ("you", "Apply"): {"f:data": {"f:shared": {}, "f:theirs": {}}},
    }


def test_a_value_of_somebody_elses_is_a_conflict_unless_forced(api: Api) -> None:
    apply(api, f"{MAPS}/c", config(a="1", b="1"), "you")
    refused = apply(api, f"{MAPS}/c", config(a="2", b="1"))
    assert (refused.status, refused.body["reason"]) == (409, "Conflict")
    assert refused.body["message"] == 'Apply failed with 1 conflict: conflict with "you": .data.a'
    assert refused.body["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "you"', "field": ".data.a"}
    ]
    both = apply(api, f"{MAPS}/c", config(a="2", b="2"))
    assert both.body["message"] == (
        'Apply failed with 2 conflicts: conflicts with "you":\n- .data.a\n- .data.b'
    )
    forced = apply(api, f"{MAPS}/c", config(a="2", b="1"), force="true")
    assert forced.body["data"] == {"a": "2", "b": "1"}
    assert owners(forced)["you", "Apply"] == {"f:data": {"f:b": {}}}


def test_a_write_owns_what_it_changes(api: Api) -> None:
    apply(api, f"{MAPS}/c", config(a="1", b="1"))
    written = api.patch(f"{MAPS}/c?fieldManager=tool", {"data": {"a": "2"}})
    assert owners(written) == {
        ("me", "Apply"): {"f:data": {"f:b": {}}},
        ("tool", "Update"): {"f:data": {"f:a": {}}},
    }
    refused = apply(api, f"{MAPS}/c", config(a="1", b="1"))
    assert 'conflict with "tool" using v1 at 20' in refused.body["message"]
    agent = api.request("PUT", f"{MAPS}/c", config(a="3"), {"User-Agent": "kubectl/v1.36"})
    assert owners(agent) == {("kubectl", "Update"): {"f:data": {"f:a": {}}}}


MAIN = {"name": "main", "image": "app:1"}
SIDE = {"name": "side", "image": "log:1", "env": [{"name": "A", "value": "1"}]}


def test_elements_of_lists_have_owners_by_their_keys(api: Api) -> None:
    created = apply(api, WEB, deployment(MAIN, SIDE, replicas=1, tier="x"))
    pods = owners(created)["me", "Apply"]["f:spec"]["f:template"]["f:spec"]
    assert pods["f:containers"]['k:{"name":"main"}'] == {".": {}, "f:image": {}, "f:name": {}}
    other = {"name": "main", "ports": [{"containerPort": 80}]}
    theirs = deployment(other)
    del theirs["spec"]["selector"]
    assert apply(api, WEB, theirs, "you").status == 200
    left = apply(api, WEB, deployment(MAIN)).body
    (container,) = left["spec"]["template"]["spec"]["containers"]
    assert (container["name"], container["image"]) == ("main", "app:1")
    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert "labels" not in left["metadata"]
    assert left["spec"]["replicas"] == 1


def test_a_scaled_deployment_belongs_to_who_scaled_it(api: Api) -> None:
    apply(api, WEB, deployment(MAIN, replicas=1))
    api.patch(f"{WEB}/scale?fieldManager=autoscaler", {"spec": {"replicas": 3}})
    refused = apply(api, WEB, deployment(MAIN, replicas=1))
    assert (
        'conflict with "autoscaler" with subresource "scale" using apps/v1'
        in (refused.body["message"])
    )
    assert apply(api, WEB, deployment(MAIN)).body["spec"]["replicas"] == 3


def test_a_conflict_names_the_place_in_a_list(api: Api) -> None:
    apply(api, WEB, deployment(MAIN))
    refused = apply(api, WEB, deployment({"name": "main", "image": "app:2"}), "you")
    field = '.spec.template.spec.containers[name="main"].image'
    assert [cause["field"] for cause in refused.body["details"]["causes"]] == [field]


@pytest.mark.parametrize(
    ("body", "query", "status", "message"),
    [
        (config(a="1"), {"fieldManager": ""}, 422, "fieldManager: Required value"),
        (
            config(a="1") | {"date": {}}, {}, 500,
            "failed to create typed patch object (rec/c; v1, Kind=ConfigMap): .date: field not "
            "declared in schema",
        ),
        ([], {}, 400, "it is not an object"),
    ],
)  # fmt: skip
def test_a_wrong_apply_is_refused(
    api: Api, body: Any, query: dict[str, str], status: int, message: str
) -> None:
    answer = apply(api, f"{MAPS}/c", body, **{"manager": query.get("fieldManager", "me")})
    assert answer.status == status
    assert message in answer.body["message"]


def test_a_dry_run_stores_nothing(api: Api) -> None:
    assert apply(api, f"{MAPS}/c", config(a="1"), dryRun="All").status == 201
    assert api.get(f"{MAPS}/c").status == 404


def test_a_custom_object_is_applied_field_by_field(api: Api) -> None:
    api.cluster.behaviour.definition_seconds = 0
    api.post(DEFINITIONS, definition())
    things = "/apis/example.org/v1/namespaces/rec/things"
    eventually(lambda: api.get(things).status, lambda status: status == 200, "things are served")
    thing = {"apiVersion": "example.org/v1", "kind": "Thing", "spec": {"a": {"b": 1}, "c": [1, 2]}}
    assert apply(api, f"{things}/t", thing).status == 201
    changed = apply(api, f"{things}/t", {**thing, "spec": {"c": [3]}}).body
    assert changed["spec"] == {"a": {}, "c": [3]}
