# SPDX-License-Identifier: Apache-2.0
"""What a step makes of a live object, how it is put back, and the body of a Pod created again."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from container_update.model.objects import Json, ObjectKey
from container_update.model.plan import Action
from container_update.planning.steps import ConfigStep, ObjectStep, RestartStep
from container_update.planning.steps.new_objects import new_object, recreated_pod
from container_update.workloads import pod_template
from tests.unit.build import b64, config_map, live, secret, yaml_of
from tests.unit.build import workload as make

SPEC = "{initContainers: [{name: i, image: init:1}], containers: [{name: c, image: app:1}]}"


def config_step(content: Json, before: Json | None, *removed: str) -> ConfigStep:
    action = Action.REPLACE if before else Action.CREATE
    key = ObjectKey.of(content, "ns")
    return ConfigStep(key, action, before, content=content, removed=removed)


def workload_step(before: Json, images: dict[str, str], digest: str | None = None) -> RestartStep:
    return RestartStep(ObjectKey.of(before), Action.ROLL, before, images=images, digest=digest)


def deployment(**more: Any) -> Json:
    return live(make("Deployment", SPEC, replicas=2), **more)


# --- configuration ------------------------------------------------------------------------------

CONTENTS: dict[str, tuple[Json, Json, dict[str, Any]]] = {
    "a key of the manifest is written": (
        config_map(data={"a": "2"}), config_map(data={"a": "1"}), {"data": {"a": "2"}},
    ),
    "a key that only the old manifest had goes": (
        config_map(data={"a": "1"}), config_map(data={"a": "1", "gone": "1"}),
        {"data": {"a": "1"}},
    ),
    "a key that no manifest has stays": (
        config_map(data={"a": "2"}), config_map(data={"a": "1", "theirs": "3"}),
        {"data": {"a": "2", "theirs": "3"}},
    ),
    "a manifest without content leaves what others filled in": (
        secret(data={}), secret(data={"theirs": "3"}), {"data": {"theirs": b64("3")}},
    ),
    "binaryData that no manifest has stays": (
        config_map(data={}, binaryData={"k": b64("x")}), config_map(binaryData={"l": b64("y")}),
        {"data": {"a": "1"}, "binaryData": {"k": b64("x"), "l": b64("y")}},
    ),
    "a key moves from data to binaryData": (
        config_map(data={}, binaryData={"a": b64("x")}), config_map(data={"a": "1"}),
        {"binaryData": {"a": b64("x")}},
    ),
    "binaryData that only the old manifest had goes": (
        config_map(), config_map(binaryData={"gone": b64("y")}), {"data": {"a": "1"}},
    ),
    "a value that is null is empty": (
        config_map(data={"a": None}), config_map(), {"data": {"a": ""}},
    ),
    "null is absent": (
        {**config_map(), "data": None, "immutable": None}, config_map(data={"gone": "1"}), {},
    ),
    "immutable is taken over": (
        config_map(immutable=True), config_map(), {"data": {"a": "1"}, "immutable": True},
    ),
    "immutable goes": (config_map(), config_map(immutable=True), {"data": {"a": "1"}}),
    "stringData are laid over data": (
        secret(data={"a": "1", "b": "1"}, stringData={"b": "2"}), secret(data={"theirs": "3"}),
        {"data": {"a": b64("1"), "b": b64("2"), "theirs": b64("3")}},
    ),
    "stringData of a ConfigMap are nothing": (
        config_map(stringData={"b": "2"}), config_map(), {"data": {"a": "1"}},
    ),
    "binaryData of a Secret are nothing": (
        secret(binaryData={"b": b64("2")}), secret(), {"data": {"a": b64("1")}},
    ),
    "a Secret's type": (
        secret(type="x"), secret(type="y"), {"data": {"a": b64("1")}, "type": "x"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("new", "found", "content"), CONTENTS.values(), ids=CONTENTS.keys())
def test_configuration_gets_the_manifests_keys_and_keeps_those_of_others(
    new: Json, found: Json, content: dict[str, Any]
) -> None:
    before = live(found)
    original = copy.deepcopy(before)
    step = config_step(new, before, "gone")
    after = step.with_change(before)
    rest = {"apiVersion": "v1", "kind": new["kind"], "metadata": before["metadata"]}
    assert after == {**rest, **content}
    assert before == original
    assert step.is_applied(after)
    assert step.without_change(after) == before


def test_what_others_fill_in_meanwhile_stays_and_is_no_change_of_what_is_written() -> None:
    before = live(config_map(data={"a": "1", "gone": "1", "theirs": "1"}))
    step = config_step(config_map(data={"a": "2"}), before, "gone")
    meanwhile = live(config_map(data={"a": "1", "gone": "1", "theirs": "2", "ca": "3"}))
    assert step.is_untouched(meanwhile)
    written = step.with_change(meanwhile)
    assert written["data"] == {"a": "2", "theirs": "2", "ca": "3"}
    assert step.is_own(written)
    assert step.without_change(written)["data"] == meanwhile["data"]


def test_what_is_written_shares_nothing_with_the_manifest() -> None:
    new = config_map(data={"a": "2"})
    before = live(config_map())
    config_step(new, before).with_change(before)["data"]["a"] = "changed"
    assert new["data"] == {"a": "2"}


def test_live_labels_and_annotations_stay_and_the_manifests_are_laid_over_them() -> None:
    before = live(
        config_map(), labels={"tacker_vnf_instance_id": "i", "v": "1"}, annotations={"by": "them"}
    )
    new = config_map(data={"a": "2"}, metadata={"labels": {"v": "2"}, "annotations": {"our": "s"}})
    metadata = config_step(new, before).with_change(before)["metadata"]
    assert metadata["labels"] == {"tacker_vnf_instance_id": "i", "v": "2"}
    assert metadata["annotations"] == {"by": "them", "our": "s"}
    assert metadata["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_a_label_that_is_null_is_an_empty_one() -> None:
    before = live(config_map(), labels={"a": "", "b": "1"})
    step = config_step(config_map(metadata={"labels": {"a": None}}), before)
    assert step.is_applied(before)
    changed = config_step(config_map(metadata={"labels": {"b": None}}), before)
    assert changed.with_change(before)["metadata"]["labels"] == {"a": "", "b": ""}


def test_what_others_wrote_meanwhile_stays() -> None:
    before = live(config_map(data={"a": "1"}))
    now = live(config_map(data={"a": "1"}), version="8", labels={"new": "label"})
    after = config_step(config_map(data={"a": "2"}), before).with_change(now)
    assert after["metadata"] == now["metadata"]
    scaled = deployment(version="9")
    scaled["spec"]["replicas"] = 5
    after = workload_step(deployment(), {"c": "app:2"}).with_change(scaled)
    assert after["spec"]["replicas"] == 5
    assert after["metadata"]["resourceVersion"] == "9"


def test_configuration_is_put_back_with_the_labels_that_were_laid_over() -> None:
    before = live(
        secret(data={"a": "1"}),
        labels={"v": "1", "tacker_vnf_instance_id": "i"},
        annotations={"theirs": "1"},
    )
    new = secret(
        data={}, stringData={"b": "2"},
        metadata={"labels": {"v": "2", "w": "2"}, "annotations": {"ours": "2"}},
    )  # fmt: skip
    step = config_step(new, before)
    written = live(step.with_change(before), uid=before["metadata"]["uid"], version="8")
    written["metadata"]["labels"]["others"] = "3"
    assert step.is_applied(written)
    assert not step.is_restored(written)
    after = step.without_change(written)
    assert after["data"] == before["data"]
    assert "stringData" not in after
    assert after["metadata"]["labels"] == {**before["metadata"]["labels"], "others": "3"}
    assert after["metadata"]["annotations"] == before["metadata"]["annotations"]
    assert after["metadata"]["resourceVersion"] == "8"
    assert step.is_restored(after)


def test_putting_back_takes_away_the_first_label_that_there_was() -> None:
    before = live(config_map(data={"a": "1"}))
    new = config_map(data={"a": "2"}, metadata={"labels": {"v": "2"}, "annotations": {"w": "2"}})
    step = config_step(new, before)
    after = step.without_change(step.with_change(before))
    assert not after["metadata"].get("labels")
    assert not after["metadata"].get("annotations")


# --- workloads ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Deployment", "Pod", "CronJob"])
def test_a_workload_gets_its_new_images_and_a_digest_only_where_the_step_has_one(kind: str) -> None:
    before = live(make(kind, SPEC))
    images = workload_step(before, {"i": "init:2"}).with_change(before)
    assert pod_template.config_digest(images) is None
    assert images == pod_template.with_images(before, {"i": "init:2"})
    both = workload_step(before, {"i": "init:2"}, "d").with_change(before)
    assert both == pod_template.with_digest(images, "d")


def test_a_digest_from_before_stays_where_only_images_change() -> None:
    before = pod_template.with_digest(deployment(), "old")
    after = workload_step(before, {"c": "app:2"}).with_change(before)
    assert pod_template.config_digest(after) == "old"


@pytest.mark.parametrize("old_digest", [None, "old"])
def test_a_workload_is_put_back_to_its_images_and_its_digest(old_digest: str | None) -> None:
    before = pod_template.with_digest(deployment(), old_digest)
    step = workload_step(before, {"c": "app:2"}, "new")
    now = step.with_change(before)
    now["spec"]["replicas"] = 7
    after = step.without_change(now)
    assert after["spec"].pop("replicas") == 7
    expected = copy.deepcopy(before)
    expected["spec"].pop("replicas")
    after["spec"]["template"]["metadata"].pop("annotations", None)
    expected["spec"]["template"]["metadata"].pop("annotations", None)
    assert after == expected
    assert pod_template.config_digest(step.without_change(now)) == old_digest


def test_a_digest_of_somebody_else_stays_where_only_images_are_put_back() -> None:
    step = workload_step(deployment(), {"c": "app:2"})
    now = pod_template.with_digest(step.with_change(deployment()), "later")
    assert pod_template.config_digest(step.without_change(now)) == "later"


def test_images_that_the_step_does_not_change_are_not_put_back() -> None:
    step = workload_step(deployment(), {"c": "app:2", "gone": "x"})
    now = pod_template.with_images(deployment(), {"c": "app:2", "i": "init:9"})
    assert step.without_change(now) == pod_template.with_images(deployment(), {"i": "init:9"})


# --- where a step is ----------------------------------------------------------------------------

BEFORE = live(config_map(data={"a": "1"}))
STEP = config_step(config_map(data={"a": "2"}), BEFORE)
IMAGES = workload_step(deployment(), {"c": "app:2"})
DIGEST = workload_step(deployment(), {"c": "app:2"}, "new")
ONLY_DIGEST = workload_step(deployment(), {}, "new")


def changed(images: dict[str, str], digest: str | None = None) -> Json:
    return pod_template.with_digest(pod_template.with_images(deployment(), images), digest)


STATES: dict[str, tuple[ObjectStep, Json, bool, bool, bool]] = {
    "configuration as before": (STEP, BEFORE, False, True, True),
    "configuration as wanted": (STEP, live(config_map(data={"a": "2"})), True, False, False),
    "configuration that another client wrote": (
        STEP, live(config_map(data={"a": "3"})), False, False, False,
    ),
    "the same configuration, created again by somebody": (
        STEP, live(config_map(data={"a": "1"}), uid="other"), False, True, False,
    ),
    "configuration with another label": (
        STEP, live(config_map(data={"a": "1"}), version="9", labels={"x": "y"}), False, True, True,
    ),
    "the content as wanted without the manifest's labels": (
        config_step(config_map(data={"a": "2"}, metadata={"labels": {"v": "2"}}), BEFORE),
        live(config_map(data={"a": "2"})), False, False, False,
    ),
    "a workload as before": (IMAGES, deployment(), False, True, True),
    "a workload with the new image": (IMAGES, changed({"c": "app:2"}), True, False, True),
    "a workload with another image of somebody": (
        IMAGES, changed({"c": "app:3"}), False, False, False,
    ),
    "another container's image is not looked at": (IMAGES, changed({"i": "x"}), False, True, True),
    "a digest that another client wrote does not matter where only images change": (
        IMAGES, changed({}, "other"), False, True, True,
    ),
    "a digest is not looked at where only images change": (
        IMAGES, changed({"c": "app:2"}, "other"), True, False, True,
    ),
    "image and digest as wanted": (DIGEST, changed({"c": "app:2"}, "new"), True, False, False),
    "the image without the digest": (DIGEST, changed({"c": "app:2"}), False, False, True),
    "the digest without the image": (DIGEST, changed({}, "new"), False, False, False),
    "only a digest, as wanted": (ONLY_DIGEST, changed({}, "new"), True, False, False),
    "only a digest, as before": (ONLY_DIGEST, deployment(), False, True, True),
}  # fmt: skip


@pytest.mark.parametrize(
    ("step", "now", "applied", "restored", "untouched"), STATES.values(), ids=STATES.keys()
)
def test_a_step_knows_whether_it_was_done_undone_or_overtaken(
    step: ObjectStep, now: Json, applied: bool, restored: bool, untouched: bool
) -> None:
    assert step.is_applied(now) is applied
    assert step.is_restored(now) is restored
    assert step.is_untouched(now) is untouched


NONE_OF = {
    "nothing of it": (DIGEST, changed({}), True),
    "another image and another digest": (DIGEST, changed({"c": "app:3"}, "other"), True),
    "its image": (DIGEST, changed({"c": "app:2"}), False),
    "its digest": (DIGEST, changed({}, "new"), False),
    "one of its two images": (
        workload_step(deployment(), {"c": "app:2", "i": "init:2"}), changed({"i": "init:2"}), False,
    ),
    "nothing of a step without digest": (IMAGES, changed({}), True),
    "no image where the step has no digest": (IMAGES, changed({}, "new"), True),
    "no digest where the step has no image": (ONLY_DIGEST, changed({"c": "app:2"}), True),
}  # fmt: skip


@pytest.mark.parametrize(("step", "now", "none"), NONE_OF.values(), ids=NONE_OF.keys())
def test_a_workload_has_nothing_of_a_step_or_it_has(
    step: ObjectStep, now: Json, none: bool
) -> None:
    assert step.has_traces(now) is not none


def test_what_a_step_wrote_is_its_own_only_where_all_of_it_is_there() -> None:
    assert DIGEST.is_own(changed({"c": "app:2"}, "new")) is True
    assert DIGEST.is_own(changed({"c": "app:2"})) is False
    assert STEP.is_own(live(config_map(data={"a": "2"}))) is True
    assert STEP.is_own(BEFORE) is False


# --- configuration whose labels count too -------------------------------------------------------

LABELLED = live(config_map(data={"a": "1"}), labels={"v": "1", "old": "1"})
WHOLE = replace(
    config_step(config_map(data={"a": "2"}, metadata={"labels": {"v": "2"}}), LABELLED),
    dropped=(("labels", "old"), ("annotations", "never there")),
)
LABELS: dict[str, tuple[str, dict[str, str], bool, bool]] = {
    "as before": ("1", {"v": "1", "old": "1"}, False, True),
    "as wanted": ("2", {"v": "2"}, True, False),
    "as wanted, beside a label of others": ("2", {"v": "2", "theirs": "3"}, True, False),
    "the content without the labels": ("2", {}, False, False),
    "the content with the old labels": ("2", {"v": "1", "old": "1"}, False, False),
    "a label that was to go is there": ("2", {"v": "2", "old": "1"}, False, False),
    "the labels without the content": ("1", {"v": "2"}, False, False),
}


@pytest.mark.parametrize(
    ("value", "labels", "applied", "restored"), LABELS.values(), ids=LABELS.keys()
)
def test_configuration_that_takes_effect_as_a_whole_is_judged_with_its_labels(
    value: str, labels: dict[str, str], applied: bool, restored: bool
) -> None:
    now = live(config_map(data={"a": value}), labels=labels)
    assert WHOLE.is_applied(now) is applied
    assert WHOLE.is_own(now) is applied
    assert WHOLE.is_restored(now) is restored
    assert WHOLE.is_untouched(now) is restored


def test_labels_that_only_the_old_manifest_had_go_and_come_back() -> None:
    after = WHOLE.with_change(LABELLED)
    assert after["metadata"]["labels"] == {"v": "2"}
    again = WHOLE.without_change(after)
    assert again["metadata"]["labels"] == {"v": "1", "old": "1"}
    assert not again["metadata"].get("annotations")


# --- new objects --------------------------------------------------------------------------------


def test_a_new_object_brings_along_nothing_that_the_server_sets() -> None:
    body = live(config_map(), labels={"l": "own"}, annotations={"a": "1"}, finalizers=["f"])
    body["metadata"].update(
        creationTimestamp="t", deletionTimestamp="t", deletionGracePeriodSeconds=1, generation=3,
        managedFields=[{}], selfLink="/x", ownerReferences=[{"uid": "u"}],
    )  # fmt: skip
    body["status"] = {"x": 1}
    original = copy.deepcopy(body)
    assert new_object(body, "other", {"l": "ours", "m": "ours"}) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "cm",
            "namespace": "other",
            "labels": {"l": "own", "m": "ours"},
            "annotations": {"a": "1"},
            "finalizers": ["f"],
            "ownerReferences": [{"uid": "u"}],
        },
        "data": {"a": "1"},
    }
    assert body == original


def test_a_new_object_whose_labels_are_null_gets_ours() -> None:
    body = config_map(metadata={"labels": None})
    assert new_object(body, "", {"l": "1"})["metadata"]["labels"] == {"l": "1"}


def test_a_new_object_without_namespace_and_labels_gets_none() -> None:
    assert new_object(config_map(), "", {})["metadata"] == {"name": "cm"}


POD = """
nodeName: node-1
priority: 0
serviceAccountName: default
ephemeralContainers: [{name: e, image: debug}]
initContainers:
- name: i
  image: init:1
  volumeMounts: [{name: kube-api-access-x7k2p, mountPath: /t}]
containers:
- name: c
  image: app:1
  volumeMounts:
  - {name: data, mountPath: /d}
  - {name: kube-api-access-x7k2p, mountPath: /t, readOnly: true}
- {name: bare, image: app:1}
volumes:
- name: data
  emptyDir: {}
- name: kube-api-access-x7k2p
  projected:
    sources: [{serviceAccountToken: {path: token}}, {configMap: {name: kube-root-ca.crt}}]
"""


def test_a_pod_is_created_again_from_its_live_spec_without_what_the_server_put_in() -> None:
    old = live(make("Pod", POD, "p"), labels={"app": "p"}, creationTimestamp="t", generation=2)
    old["status"] = {"phase": "Running"}
    original = copy.deepcopy(old)
    assert recreated_pod(old, {"c": "app:2", "i": "init:2"}) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ns", "labels": {"app": "p"}},
        "spec": {
            "priority": 0,
            "serviceAccountName": "default",
            "initContainers": [{"name": "i", "image": "init:2", "volumeMounts": []}],
            "containers": [
                {
                    "name": "c",
                    "image": "app:2",
                    "volumeMounts": [{"name": "data", "mountPath": "/d"}],
                },
                {"name": "bare", "image": "app:1", "volumeMounts": []},
            ],
            "volumes": [{"name": "data", "emptyDir": {}}],
        },
    }
    assert old == original


@pytest.mark.parametrize(
    "volume",
    [
        pytest.param(
            "{name: token, projected: {sources: [{serviceAccountToken: {path: token}}]}}",
            id="a token volume of the manifest",
        ),
        pytest.param(
            "{name: kube-api-access-x7k2p, projected: {sources: [{configMap: {name: m}}]}}",
            id="a volume of that name without a token",
        ),
        pytest.param(
            "{name: kube-api-access-x7k2p, emptyDir: {}}", id="a volume of that name, otherwise"
        ),
        pytest.param(
            "{name: my-kube-api-access-x7k2p, projected: {sources: [{serviceAccountToken: {}}]}}",
            id="a volume with a longer name",
        ),
        pytest.param(
            "{name: kube-api-access-x7k2pq, projected: {sources: [{serviceAccountToken: {}}]}}",
            id="a volume with a longer end",
        ),
    ],
)  # fmt: skip
def test_a_volume_of_the_manifest_stays_with_its_mounts(volume: str) -> None:
    body = yaml_of(f"containers: [{{name: c, image: i}}]\nvolumes: [{volume}]")
    body["containers"][0]["volumeMounts"] = [{"name": body["volumes"][0]["name"]}]
    assert recreated_pod(live(make("Pod", body)), {})["spec"] == body


def test_a_pod_without_volumes_can_be_created_again() -> None:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    spec_again = recreated_pod(live(make("Pod", spec)), {})["spec"]
    assert not spec_again["volumes"]
    assert not spec_again["containers"][0]["volumeMounts"]
