# SPDX-License-Identifier: Apache-2.0
"""Where each kind keeps its pod template, and how a copy with other images or a digest is made."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from container_update.workloads import pod_template, registry
from tests.unit import build

SPEC = "{initContainers: [{name: i, image: init:1}], containers: [{name: c, image: app:1}]}"
DIGEST = "container-update/config-digest"
PATHS = {
    "Pod": "spec",
    "Deployment": "spec.template.spec",
    "DaemonSet": "spec.template.spec",
    "ReplicaSet": "spec.template.spec",
    "StatefulSet": "spec.template.spec",
    "Job": "spec.template.spec",
    "CronJob": "spec.jobTemplate.spec.template.spec",
}


def at(body: Any, path: str) -> Any:
    for name in path.split("."):
        body = body[name]
    return body


@pytest.mark.parametrize(("kind", "path"), PATHS.items())
def test_the_pod_spec_of_each_kind_is_found_in_its_place(kind: str, path: str) -> None:
    body = build.workload(kind, SPEC)
    kind = registry.kind_of_body(body)
    assert kind is not None
    assert ".".join((*kind.template_path, "spec")) == path
    assert pod_template.pod_spec(body) is at(body, path)
    assert pod_template.pod_template(body)["spec"] is at(body, path)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"kind": "Pod"}, id="a Pod without spec"),
        pytest.param({"kind": "Pod", "spec": None}, id="a Pod whose spec is null"),
        pytest.param({"kind": "Deployment", "spec": {}}, id="a Deployment without template"),
        pytest.param(
            {"apiVersion": "batch/v1", "kind": "CronJob", "spec": {"jobTemplate": None}},
            id="a CronJob with null",
        ),
        pytest.param({"kind": "Other", "spec": "text"}, id="another kind with text"),
        pytest.param({"kind": "Other", "spec": {"template": [1]}}, id="another kind with a list"),
    ],
)
def test_a_manifest_without_a_pod_spec_has_no_containers(body: dict[str, Any]) -> None:
    assert pod_template.pod_spec(body) == {}
    assert list(pod_template.containers(pod_template.pod_spec(body))) == []
    assert pod_template.with_images(body, {"c": "app:2"}) == body
    assert pod_template.config_digest(body) is None


@pytest.mark.parametrize("containers", [{"main": {}}, ["main"], "main"])
def test_a_kind_that_means_something_else_by_containers_has_none(containers: Any) -> None:
    spec = {"containers": containers}
    assert list(pod_template.containers(spec)) == []


def test_init_containers_come_first_and_say_what_they_are() -> None:
    body = build.workload("Deployment", SPEC)
    found = [
        (group, c["name"]) for group, c in pod_template.containers(pod_template.pod_spec(body))
    ]
    assert found == [("initContainers", "i"), ("containers", "c")]


@pytest.mark.parametrize(
    ("group", "container", "ends"),
    [
        pytest.param("initContainers", {}, True, id="an init container ends"),
        pytest.param("initContainers", {"restartPolicy": "Always"}, False, id="a sidecar does not"),
        pytest.param("containers", {}, False, id="a container does not"),
    ],
)
def test_which_containers_run_to_their_end(group: str, container: Any, ends: bool) -> None:
    assert pod_template.runs_to_its_end(group, container) is ends


@pytest.mark.parametrize(("kind", "path"), PATHS.items())
def test_a_copy_with_other_images_leaves_the_original_alone(kind: str, path: str) -> None:
    body = build.workload(kind, SPEC)
    original = copy.deepcopy(body)
    changed = pod_template.with_images(body, {"i": "init:2", "stranger": "x"})
    assert body == original
    assert at(changed, path)["initContainers"] == [{"name": "i", "image": "init:2"}]
    assert at(changed, path)["containers"] == [{"name": "c", "image": "app:1"}]


DIGESTS = {
    "no metadata": (None, {"annotations": {DIGEST: "new"}}),
    "metadata that is null, as YAML may have it": (
        {"annotations": None, "labels": {"l": "1"}},
        {"labels": {"l": "1"}, "annotations": {DIGEST: "new"}},
    ),
    "annotations of others": (
        {"annotations": {"other": "1"}},
        {"annotations": {"other": "1", DIGEST: "new"}},
    ),
    "an old digest": (
        {"annotations": {"other": "1", DIGEST: "old"}},
        {"annotations": {"other": "1", DIGEST: "new"}},
    ),
}


def with_template_metadata(metadata: Any) -> dict[str, Any]:
    body = build.workload("Deployment", SPEC)
    template = body["spec"]["template"]
    del template["metadata"]
    if metadata is not None:
        template["metadata"] = copy.deepcopy(metadata)
    return body


@pytest.mark.parametrize(("before", "after"), DIGESTS.values(), ids=DIGESTS.keys())
def test_a_digest_is_put_on_the_template_beside_what_is_there(before: Any, after: Any) -> None:
    body = with_template_metadata(before)
    original = copy.deepcopy(body)
    changed = pod_template.with_digest(body, "new")
    assert changed["spec"]["template"]["metadata"] == after
    assert pod_template.config_digest(changed) == "new"
    assert body == original


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({"annotations": {"o": "1"}}, {"annotations": {"o": "1"}}, id="other ones"),
        pytest.param({"labels": {"l": "1"}}, {"labels": {"l": "1"}}, id="only labels"),
        pytest.param(None, None, id="nothing at all"),
    ],
)
def test_taking_the_digest_away_again_leaves_what_was_there(before: Any, after: Any) -> None:
    body = with_template_metadata(before)
    undone = pod_template.with_digest(pod_template.with_digest(body, "new"), None)
    assert pod_template.config_digest(undone) is None
    assert (undone["spec"]["template"].get("metadata") or None) == after


def test_a_pod_has_its_digest_on_itself() -> None:
    pod = pod_template.with_digest(build.workload("Pod", SPEC), "new")
    assert pod["metadata"]["annotations"] == {DIGEST: "new"}
    assert pod["metadata"]["name"] == "w"
