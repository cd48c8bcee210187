# SPDX-License-Identifier: Apache-2.0
"""What a whole manifest makes of a live object, and the way back."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from container_update.model.objects import Json, Manifest, ObjectKey, Source
from container_update.model.plan import Action
from container_update.planning.steps import ManifestStep
from container_update.planning.steps.manifest import manifest_digest, with_recorded_digest
from container_update.planning.steps.metadata import dropped_metadata
from container_update.workloads.pod_template import DIGEST_ANNOTATION

TEMPLATE = {
    "metadata": {"labels": {"app": "w"}, "annotations": {"theirs": "kept"}},
    "spec": {"containers": [{"name": "main", "image": "a:1", "imagePullPolicy": "Always"}]},
}
LIVE: Json = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "w",
        "namespace": "n",
        "uid": "1",
        "resourceVersion": "5",
        "labels": {"tacker_vnf_instance_id": "i", "old": "x"},
    },
    "spec": {
        "replicas": 7,
        "selector": {"matchLabels": {"app": "w"}},
        "template": TEMPLATE,
        "progressDeadlineSeconds": 600,
    },
    "status": {"replicas": 7},
}
MANIFEST: Json = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "w", "labels": {"new": "y"}},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "w"}},
        "template": {
            "metadata": {"labels": {"app": "w"}},
            "spec": {"containers": [{"name": "main", "image": "a:2"}]},
        },
    },
}
SERVICE: Json = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "s", "namespace": "n", "uid": "2", "resourceVersion": "6"},
    "spec": {
        "type": "NodePort",
        "clusterIP": "10.0.0.1",
        "clusterIPs": ["10.0.0.1"],
        "ipFamilies": ["IPv4"],
        "selector": {"app": "old"},
        "ports": [{"port": 80, "protocol": "TCP", "nodePort": 30001, "targetPort": 80}],
    },
}


def only_in_old(old: Json, new: Json) -> Any:
    """The labels and annotations that only the old manifest has."""
    key, source = ObjectKey.of(new), Source("m.yaml", 1)
    return dropped_metadata(Manifest(key, old, source), Manifest(key, new, source))


def step(manifest: Json = MANIFEST, live: Json = LIVE, **more: Any) -> ManifestStep:
    """The step that makes the live object of the manifest."""
    content = with_recorded_digest(manifest, manifest_digest(manifest))
    key = ObjectKey.of(live)
    return ManifestStep(key, Action.ROLL, live, content, **more)


def service(**spec: Any) -> Json:
    """A manifest of the Service."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"selector": {"app": "new"}, "ports": [{"port": 80}], **spec},
    }


def test_everything_is_the_manifest_s_but_what_the_cluster_owns() -> None:
    wanted = step().with_change(LIVE)
    assert wanted["spec"]["replicas"] == 7
    assert wanted["spec"]["template"]["spec"] == MANIFEST["spec"]["template"]["spec"]
    assert "progressDeadlineSeconds" not in wanted["spec"]
    assert wanted["metadata"]["uid"] == "1"
    assert wanted["status"] == LIVE["status"]


def test_labels_are_laid_over_and_those_of_the_old_manifest_alone_go() -> None:
    old = {**MANIFEST, "metadata": {"name": "w", "labels": {"old": "x"}}}
    wanted = step(dropped=only_in_old(old, MANIFEST)).with_change(LIVE)
    assert wanted["metadata"]["labels"] == {"tacker_vnf_instance_id": "i", "new": "y"}


def test_the_digest_of_the_configuration_is_on_the_pod_template() -> None:
    wanted = step(digest="d").with_change(LIVE)
    assert wanted["spec"]["template"]["metadata"]["annotations"] == {DIGEST_ANNOTATION: "d"}


def test_there_and_back_is_where_it_was() -> None:
    old = {**MANIFEST, "metadata": {"name": "w", "labels": {"old": "x"}}}
    there = step(dropped=only_in_old(old, MANIFEST), digest="d")
    written = there.with_change(LIVE)
    assert there.is_applied(written)
    assert there.is_own(written)
    assert there.with_change(written) is written
    back = there.without_change(written)
    assert there.is_restored(back)
    assert back == LIVE


def test_what_a_log_shows_of_a_step_has_no_content() -> None:
    assert "a:2" not in repr(step())


def test_replicas_that_changed_meanwhile_stay_on_the_way_back() -> None:
    written = step().with_change(LIVE)
    written["spec"]["replicas"] = 3
    assert step().without_change(written)["spec"]["replicas"] == 3


@pytest.mark.parametrize(
    ("change", "untouched"),
    [
        pytest.param(lambda live: None, True, id="nothing"),
        pytest.param(lambda live: live["spec"].update(replicas=2), True, id="replicas"),
        pytest.param(lambda live: live["metadata"].update(labels={}), True, id="labels"),
        pytest.param(lambda live: live.update(status={}), True, id="status"),
        pytest.param(lambda live: live["spec"].update(paused=True), False, id="another field"),
        pytest.param(
            lambda live: live["spec"].update(template=MANIFEST["spec"]["template"]),
            True,
            id="what the step wants itself",
        ),
        pytest.param(lambda live: live["metadata"].update(uid="9"), False, id="made again"),
    ],
)
def test_it_is_untouched_while_every_field_is_as_it_was_or_is_to_be(
    change: Any, untouched: bool
) -> None:
    live = copy.deepcopy(LIVE)
    change(live)
    assert step().is_untouched(live) is untouched


@pytest.mark.parametrize(
    ("manifest", "kept"),
    [
        (
            service(type="NodePort"),
            {"clusterIP": "10.0.0.1", "ipFamilies": ["IPv4"], "nodePort": 30001},
        ),
        (
            service(type="NodePort", ports=[{"port": 80, "nodePort": 30002}]),
            {"clusterIP": "10.0.0.1", "ipFamilies": ["IPv4"], "nodePort": 30002},
        ),
        (service(), {"clusterIP": "10.0.0.1", "ipFamilies": ["IPv4"], "nodePort": None}),
        (service(type="ExternalName"), {"clusterIP": None, "ipFamilies": None, "nodePort": None}),
        (
            service(clusterIP="None"),
            {"clusterIP": "None", "ipFamilies": ["IPv4"], "nodePort": None},
        ),
    ],
)
def test_a_service_keeps_the_addresses_and_ports_that_the_cluster_chose(
    manifest: Json, kept: dict[str, Any]
) -> None:
    spec = step(manifest, SERVICE).with_change(SERVICE)["spec"]
    found = {name: spec.get(name) for name in ("clusterIP", "ipFamilies")}
    assert {**found, "nodePort": spec["ports"][0].get("nodePort")} == kept
    assert spec["selector"] == {"app": "new"}


@pytest.mark.parametrize(
    ("kind", "field"), [("Ingress", "ingressClassName"), ("Service", "loadBalancerClass")]
)
def test_the_class_that_admission_chose_stays_where_the_manifest_names_none(
    kind: str, field: str
) -> None:
    """It chooses one for a new object alone, and not again when that is replaced."""
    manifest = {"kind": kind, "metadata": {"name": "x"}, "spec": {}}
    live = {"kind": kind, "metadata": {"name": "x", "uid": "1"}, "spec": {field: "default"}}
    assert step(manifest, live).with_change(live)["spec"] == {field: "default"}
    named = {**manifest, "spec": {field: "other"}}
    assert step(named, live).with_change(live)["spec"] == {field: "other"}


def test_a_service_that_a_script_switched_is_there_to_be_taken_back() -> None:
    switched = copy.deepcopy(SERVICE)
    switched["spec"]["selector"] = {"app": "new"}
    there = step(service(), SERVICE)
    assert there.is_untouched(switched)
    assert there.is_own(switched)
    assert not there.is_restored(switched)
    assert there.without_change(switched)["spec"] == SERVICE["spec"]


def test_the_way_back_leaves_what_another_client_has_changed_and_the_step_has_not() -> None:
    ports = [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    manifest = {
        **SERVICE,
        "metadata": {"name": "s", "labels": {"team": "a", "release": "2"}},
        "spec": {"type": "NodePort", "selector": {"app": "new"}, "ports": ports},
    }
    before = copy.deepcopy(SERVICE)
    before["metadata"]["labels"] = {"team": "a", "release": "1"}
    there = step(manifest, before)
    live = copy.deepcopy(there.with_change(before))
    live["spec"]["ports"][0]["targetPort"] = 8080
    live["metadata"]["labels"]["team"] = "theirs"
    back = there.without_change(live)
    assert back["spec"]["selector"] == {"app": "old"}
    assert back["spec"]["ports"][0]["targetPort"] == 8080
    assert back["metadata"]["labels"] == {"team": "theirs", "release": "1"}


def test_a_pod_tells_by_its_configuration_digest_whether_the_step_started_it() -> None:
    pod = {"kind": "Pod", "metadata": {"annotations": {DIGEST_ANNOTATION: "d"}}}
    assert step(digest="d").is_applied(pod)
    assert not step(digest="e").is_applied(pod)
    assert not step().is_applied(pod)


def test_an_image_that_somebody_changed_since_is_not_as_applied() -> None:
    written = step().with_change(LIVE)
    written["spec"]["template"]["spec"]["containers"][0]["image"] = "a:3"
    assert not step().is_applied(written)
    assert step().is_own(written)


def test_two_manifests_have_two_digests_and_the_order_of_fields_has_none() -> None:
    turned = dict(reversed(list(MANIFEST.items())))
    assert manifest_digest(MANIFEST) == manifest_digest(turned)
    assert manifest_digest(MANIFEST) != manifest_digest({**MANIFEST, "spec": {}})


def test_a_step_of_another_manifest_is_not_applied() -> None:
    written = step().with_change(LIVE)
    other = replace(step(), content=with_recorded_digest(MANIFEST, "another"))
    assert not other.is_applied(written)
