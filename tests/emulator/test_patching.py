# SPDX-License-Identifier: Apache-2.0
"""The effect of each kind of patch."""

import copy
from typing import Any

import pytest

from container_update.emulator.kubernetes import ApiError
from container_update.emulator.kubernetes.api import patching
from container_update.emulator.kubernetes.api.patching import (
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
)
from container_update.emulator.kubernetes.resources import Catalogue, of_definition

PODS = Catalogue()["pods"]
CUSTOM = of_definition(
    {
        "spec": {
            "group": "example.org",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": True, "storage": True}],
        }
    }
)
A, B = {"name": "a", "image": "app:1"}, {"name": "b", "image": "app:1"}


@pytest.mark.parametrize(
    ("base", "patch", "result"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"a": None}, {}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"x": None}}, {"a": {"y": 2}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": 1}, {"a": {"b": None, "c": 2}}, {"a": {"c": 2}}),
    ],
)
def test_a_merge_patch_merges_maps_and_replaces_the_rest(
    base: Any, patch: Any, result: Any
) -> None:
    assert patched(MERGE_PATCH, base, patch) == result


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        ([{"op": "add", "path": "/b", "value": 1}], {"a": {"x~/y": 1}, "b": 1}),
        ([{"op": "replace", "path": "/a/x~0~1y", "value": 2}], {"a": {"x~/y": 2}}),
        ([{"op": "remove", "path": "/a"}], {}),
        ([{"op": "test", "path": "/a/x~0~1y", "value": 1}], {"a": {"x~/y": 1}}),
        ([{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"x~/y": 1}, "c": {"x~/y": 1}}),
    ],
)
def test_a_json_patch_is_applied_in_order(patch: Any, result: Any) -> None:
    assert patched(JSON_PATCH, {"a": {"x~/y": 1}}, patch) == result


@pytest.mark.parametrize(
    ("patch", "code"),
    [
        ([{"op": "test", "path": "/a", "value": 9}], 422),
        ([{"op": "remove", "path": "/nowhere"}], 422),
        ([{"op": "replace", "path": "/no/where", "value": 1}], 422),
        ([{"op": "jump", "path": "/a"}], 400),
        ({"op": "test"}, 400),
    ],
)
def test_a_json_patch_that_does_not_fit_is_refused(patch: Any, code: int) -> None:
    with pytest.raises(ApiError) as caught:
        patched(JSON_PATCH, {"a": 1}, patch)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("base", "patch", "result"),
    [
        pytest.param(
            {"containers": [A, B]},
            {"containers": [{"name": "b", "image": "app:2"}]},
            {"containers": [A, {"name": "b", "image": "app:2"}]},
            id="elements are merged by their key",
        ),
        pytest.param(
            {"containers": [A]}, {"containers": [B]}, {"containers": [A, B]}, id="new ones go last"
        ),
        pytest.param(
            {"containers": [A, B]},
            {"containers": [{"name": "a", "$patch": "delete"}]},
            {"containers": [B]},
            id="one element is deleted",
        ),
        pytest.param(
            {"containers": [A, B]},
            {"containers": [{"$patch": "replace"}, {"name": "c"}]},
            {"containers": [{"name": "c"}]},
            id="a list is replaced",
        ),
        pytest.param(
            {"volumeMounts": [{"name": "v", "mountPath": "/a"}]},
            {"volumeMounts": [{"name": "v", "mountPath": "/b"}]},
            {"volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}]},
            id="mounts are identified by their path",
        ),
        pytest.param(
            {"ports": [{"containerPort": 80, "name": "x"}]},
            {"ports": [{"containerPort": 80, "name": "y"}]},
            {"ports": [{"containerPort": 80, "name": "y"}]},
            id="a container's ports by containerPort",
        ),
        pytest.param(
            {"ports": [{"port": 80, "name": "x"}]},
            {"ports": [{"port": 81, "name": "y"}]},
            {"ports": [{"port": 80, "name": "x"}, {"port": 81, "name": "y"}]},
            id="a service's ports by port",
        ),
        pytest.param(
            {"webhooks": [{"name": "a", "sideEffects": "None"}]},
            {"webhooks": [{"name": "a", "timeoutSeconds": 5}]},
            {"webhooks": [{"name": "a", "sideEffects": "None", "timeoutSeconds": 5}]},
            id="webhooks by name",
        ),
        pytest.param(
            {"tolerations": [{"key": "a"}]},
            {"tolerations": [{"key": "b"}]},
            {"tolerations": [{"key": "b"}]},
            id="tolerations are replaced",
        ),
        pytest.param(
            {"args": ["a", "b"]}, {"args": ["c"]}, {"args": ["c"]}, id="texts are replaced"
        ),
        pytest.param(
            {"finalizers": ["a"]},
            {"finalizers": ["b", "a"]},
            {"finalizers": ["a", "b"]},
            id="finalizers are added",
        ),
        pytest.param(
            {"finalizers": ["a", "b"]},
            {"$deleteFromPrimitiveList/finalizers": ["a"]},
            {"finalizers": ["b"]},
            id="texts are deleted by name",
        ),
        pytest.param(
            {"emptyDir": {}, "name": "v"},
            {"$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}},
            {"name": "v", "configMap": {"name": "c"}},
            id="only the retained keys stay",
        ),
        pytest.param(
            {"template": {"a": 1, "b": 2}},
            {"template": {"$patch": "replace", "c": 3}},
            {"template": {"c": 3}},
            id="a map is replaced",
        ),
        pytest.param(
            {"template": {"a": 1}},
            {"template": {"$patch": "delete"}},
            {"template": {}},
            id="a map is emptied",
        ),
        pytest.param(
            {"env": [{"name": "x", "value": "1"}, {"name": "y", "value": "2"}]},
            {
                "$setElementOrder/env": [{"name": "z"}, {"name": "y"}, {"name": "x"}],
                "env": [{"name": "z", "value": "3"}],
            },
            {
                "env": [
                    {"name": "z", "value": "3"},
                    {"name": "y", "value": "2"},
                    {"name": "x", "value": "1"},
                ]
            },
            id="elements are put in order",
        ),
        pytest.param(
            {"env": [{"name": "x", "value": "1"}]},
            {"env": [{"name": "x", "value": None, "valueFrom": {"fieldRef": {}}}]},
            {"env": [{"name": "x", "valueFrom": {"fieldRef": {}}}]},
            id="a null removes a field of an element",
        ),
        pytest.param(
            {"labels": {"a": "1"}}, {"labels": None}, {}, id="a null removes a field of a map"
        ),
    ],
)
def test_a_strategic_merge_patch(base: Any, patch: Any, result: Any) -> None:
    assert patched(STRATEGIC_PATCH, base, patch) == result


def test_an_unknown_directive_is_a_bad_request() -> None:
    with pytest.raises(ApiError, match="unknown patch type found: turn"):
        patched(STRATEGIC_PATCH, {}, {"a": {"$patch": "turn"}})


@pytest.mark.parametrize(
    ("kind", "content_type"),
    [
        (PODS, "application/json"),
        (CUSTOM, STRATEGIC_PATCH),
    ],
)
def test_a_kind_of_patch_that_is_not_accepted_is_415(kind: Any, content_type: str) -> None:
    with pytest.raises(ApiError, match="accepted media types include") as caught:
        patching.apply(kind, content_type, {}, {})
    assert caught.value.code == 415


def patched(content_type: str, base: Any, patch: Any) -> Any:
    """Return the result, after checking that neither argument was changed."""
    before = copy.deepcopy((base, patch))
    result = patching.apply(PODS, content_type, base, patch)
    assert (base, patch) == before
    return result
