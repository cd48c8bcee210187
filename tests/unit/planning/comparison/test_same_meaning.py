# SPDX-License-Identifier: Apache-2.0
"""What means the same to the server is the same, however it is spelled."""

from __future__ import annotations

from typing import Any

import pytest

from container_update.planning.comparison.live_objects import is_same

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
