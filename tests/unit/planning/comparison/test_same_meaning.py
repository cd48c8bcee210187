# SPDX-License-Identifier: Apache-2.0
"""What means the same to the server is the same, however it is spelled."""

from __future__ import annotations

from typing import Any

import pytest

from container_update.planning.comparison.live_objects import covers
from container_update.planning.comparison.meaning import is_same

APP = {"matchLabels": {"app": "w"}}
SAME: dict[str, tuple[Any, Any]] = {
    "an empty list in a selector": ({**APP, "matchExpressions": []}, APP),
    "null in a selector": ({**APP, "matchExpressions": None}, APP),
    "no labels in a selector": ({"matchLabels": {}, "x": 1}, {"x": 1}),
    "values of an expression": (
        [{"key": "a", "operator": "Exists", "values": []}], [{"key": "a", "operator": "Exists"}],
    ),
    "false": ({"globalDefault": False, "value": 1}, {"value": 1}),
    "0": ({"value": 1, "weight": 0}, {"value": 1}),
    "a pod's overhead": ({"podFixed": {"cpu": "1000m"}}, {"podFixed": {"cpu": "1"}}),
    "a default": ({"protocol": "TCP", "port": 1}, {"port": 1}),
    "a default of the place": (
        {"webhooks": [{"timeoutSeconds": 10, "a": 1}]}, {"webhooks": [{"a": 1}]},
    ),
    "a port of the same number": ({"port": 80, "targetPort": 80}, {"port": 80}),
    "the pull policy of a tag": (
        {"image": "a:1", "imagePullPolicy": "IfNotPresent"}, {"image": "a:1"},
    ),
    "the pull policy of the latest": (
        {"image": "r:5/a", "imagePullPolicy": "Always"}, {"image": "r:5/a"},
    ),
    "requests that are the limits": (
        {"limits": {"cpu": 1}, "requests": {"cpu": "1000m"}}, {"limits": {"cpu": 1}},
    ),
    "the order of what has a name": (
        [{"name": "a"}, {"name": "b", "value": ""}], [{"name": "b"}, {"name": "a"}],
    ),
    "a probe with 0 for its defaults": (
        {"livenessProbe": {"periodSeconds": 0, "failureThreshold": 0, "exec": {"command": ["a"]}}},
        {"livenessProbe": {"exec": {"command": ["a"]}}},
    ),
    "directions that follow from the rules": (
        {"podSelector": {}, "egress": [{}], "policyTypes": ["Ingress", "Egress"]},
        {"podSelector": {}, "egress": [{}]},
    ),
    "a limit by default that is the largest one": (
        {"limits": [{"max": {"cpu": 1}, "default": {"cpu": "1000m"}}]},
        {"limits": [{"max": {"cpu": 1}}]},
    ),
    "a list by default": ({"volumeLifecycleModes": ["Persistent"], "a": 1}, {"a": 1}),
    "a LimitRange": (
        {"limits": [{"type": "Container", "max": {"memory": "1024Mi"}}]},
        {"limits": [{"type": "Container", "max": {"memory": "1Gi"}}]},
    ),
}  # fmt: skip
OTHERS: dict[str, tuple[Any, Any]] = {
    "a label": (APP, {"matchLabels": {"app": "x"}}),
    "true": ({"globalDefault": True}, {}),
    "false where no value means true": ({"automountServiceAccountToken": False, "a": 1}, {"a": 1}),
    "root where no value means the image's user": ({"runAsUser": 0, "a": 1}, {"a": 1}),
    "0 where no value means a default": ({"replicas": 0, "a": 1}, {"a": 1}),
    "false where no value means true by default": ({"enableServiceLinks": False, "a": 1}, {"a": 1}),
    "a default of another place": ({"webhooks": [{"timeoutSeconds": 1}]}, {"webhooks": [{}]}),
    "a delay of 0 where the other one waits": (
        {"livenessProbe": {"initialDelaySeconds": 0, "a": 1}},
        {"livenessProbe": {"initialDelaySeconds": 5, "a": 1}},
    ),
    "a policy that lets nothing out": (
        {"podSelector": {"a": 1}, "policyTypes": ["Ingress", "Egress"]},
        {"podSelector": {"a": 1}},
    ),
    "every namespace, or this one": (
        [{"podSelector": {}, "namespaceSelector": {}}],
        [{"podSelector": {}}],
    ),
    "a subresource that is served": ({"subresources": {"status": {}}}, {}),
    "an empty label": ({"labels": {"a": "", "b": "1"}}, {"labels": {"b": "1"}}),
    "a label that looks like a default": ({"labels": {"protocol": "TCP"}}, {}),
    "no default in a schema": ({"default": 0, "type": "integer"}, {"type": "integer"}),
    "no rule, or one for everything": ({"ingress": []}, {"ingress": [{}]}),
    "no request, or one of nothing": ({"requests": {"cpu": 0}}, {}),
    "the pull policy of another tag": (
        {"image": "a:latest", "imagePullPolicy": "IfNotPresent"},
        {"image": "a:latest"},
    ),
    "another amount": ({"podFixed": {"cpu": "1000m"}}, {"podFixed": {"cpu": "2"}}),
    "a text that looks like a quantity": ({"value": "1000m"}, {"value": "1"}),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_another_spelling_is_no_difference(one: Any, other: Any) -> None:
    assert is_same(one, other)
    assert is_same(other, one)


@pytest.mark.parametrize(("one", "other"), OTHERS.values(), ids=OTHERS)
def test_another_meaning_is_a_difference(one: Any, other: Any) -> None:
    assert not is_same(one, other)


def custom(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.org/v1", "kind": "Fw", "metadata": {"name": "a"}, "spec": spec}


@pytest.mark.parametrize("said", [False, 0, "", [], {}, "1000m"])
def test_what_the_object_of_an_operator_says_is_not_taken_for_something_else(said: Any) -> None:
    assert not covers(custom(limits="1"), custom(limits="1", protocol=said))
    assert not covers(custom(limits="1", protocol="1"), custom(limits="1", protocol=said))
    assert covers(custom(limits="1", protocol=said), custom(protocol=said))
