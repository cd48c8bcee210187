# SPDX-License-Identifier: Apache-2.0
"""Which labels and fields a selector selects."""

import pytest

from container_update.emulator.kubernetes import ApiError, selectors

LABELS = {"app": "web", "tier": "front", "empty": ""}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app=db", False),
        ("app!=db", True),
        ("app!=web", False),
        ("absent!=x", True),
        ("app", True),
        ("absent", False),
        ("!absent", True),
        ("!app", False),
        ("empty=", True),
        ("app in (web, db)", True),
        ("app in (db)", False),
        ("app notin (db,cache)", True),
        ("app notin (web)", False),
        ("absent notin (x)", True),
        ("app=web,tier=front", True),
        ("app=web,tier=back", False),
        ("app in (web,db),tier!=back,!absent", True),
        (" app = web , tier in ( front ) ", True),
        ("example.org/name=x", False),
    ],
)
def test_a_label_selector_selects(text: str, selected: bool) -> None:
    assert selectors.parse(text)(LABELS) is selected


@pytest.mark.parametrize("text", ["app=web,", "=web", "app in web", "app in (web", "a b", ",a=b"])
def test_a_label_selector_that_cannot_be_read_is_a_bad_request(text: str) -> None:
    with pytest.raises(ApiError, match="unable to parse requirement") as caught:
        selectors.parse(text)
    assert caught.value.code == 400


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "db"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
        (
            {
                "matchLabels": {"app": "web"},
                "matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}],
            },
            False,
        ),
    ],
)
def test_a_selector_object_selects(selector: dict | None, selected: bool) -> None:
    assert selectors.matches(selector, LABELS) is selected


def test_a_selector_object_reads_as_a_text() -> None:
    expressions = [
        {"key": "a", "operator": "In", "values": ["y", "x"]},
        {"key": "b", "operator": "NotIn", "values": ["z"]},
        {"key": "c", "operator": "Exists"},
        {"key": "d", "operator": "DoesNotExist"},
    ]
    selector = {"matchLabels": {"app": "web"}, "matchExpressions": expressions}
    assert selectors.text_of(selector) == "app=web,a in (x,y),b notin (z),c,!d"
    assert selectors.text_of({}) == "<none>"


POD = {
    "metadata": {"name": "p", "namespace": "n"},
    "spec": {"nodeName": "node-1"},
    "status": {"phase": "Running"},
}
EVENT = {
    "metadata": {"name": "e"},
    "involvedObject": {"kind": "Pod", "name": "p"},
    "source": {"component": "kubelet"},
}


@pytest.mark.parametrize(
    ("resource", "item", "text", "selected"),
    [
        ("pods", POD, "metadata.name=p", True),
        ("pods", POD, "metadata.name=q", False),
        ("pods", POD, "metadata.name!=q", True),
        ("pods", POD, "metadata.namespace==n,spec.nodeName=node-1", True),
        ("pods", POD, "spec.nodeName=", False),
        ("pods", POD, "status.phase!=Running", False),
        ("pods", POD, "status.podIP=", True),
        ("events", EVENT, "involvedObject.name=p,involvedObject.kind=Pod", True),
        ("events", EVENT, "source=kubelet", True),
        ("secrets", {"metadata": {}, "type": "Opaque"}, "type=Opaque", True),
        ("nodes", {"metadata": {}, "spec": {}}, "spec.unschedulable=false", True),
        (
            "nodes",
            {"metadata": {}, "spec": {"unschedulable": True}},
            "spec.unschedulable=true",
            True,
        ),
    ],
)
def test_a_field_selector_selects(resource: str, item: dict, text: str, selected: bool) -> None:
    assert selectors.parse_fields(resource, text)(item) is selected


@pytest.mark.parametrize(
    ("resource", "text", "message"),
    [
        ("configmaps", "data.k=v", "field label not supported: data.k"),
        ("pods", "spec.containers=x", "field label not supported: spec.containers"),
        ("pods", "metadata.name", "can't understand 'metadata.name'"),
    ],
)
def test_a_field_that_has_no_index_is_a_bad_request(resource: str, text: str, message: str) -> None:
    with pytest.raises(ApiError, match=message) as caught:
        selectors.parse_fields(resource, text)
    assert caught.value.code == 400
