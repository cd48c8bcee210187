# SPDX-License-Identifier: Apache-2.0
"""What an update does and why: what is written, what restarts and how, what is refused."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from container_update.model.errors import MissingError, PackageError, PlanError
from container_update.model.objects import Collection, Json, ObjectKey
from container_update.model.plan import CHANGED_OBJECTS, Action, Plan, Step
from container_update.planning import plan_json
from container_update.planning.comparison.match import match
from container_update.planning.steps import ConfigStep, RestartStep
from container_update.planning.update import collections, make_plan
from container_update.reports import plan_report
from container_update.reports.lines import text_of
from container_update.workloads import pod_template
from tests.unit import build
from tests.unit.build import (
    b64,
    by_identity,
    config_map,
    live,
    manifests,
    planned,
    secret,
    yaml_of,
)

A1, A2 = config_map(data={"a": "1", "b": "1"}), config_map(data={"a": "2", "b": "1"})

OURS: dict[str, Any] = {"labels": {"tacker_vnf_instance_id": "ours"}}
USES_A = "containers: [{name: c, image: app:1, env: [{name: E, valueFrom: {configMapKeyRef: {name: cm, key: a}}}]}]"  # noqa: E501
USES_B = USES_A.replace("key: a", "key: b")
USES_NONE = "containers: [{name: c, image: app:1}]"
ENV_FROM = "containers: [{name: c, image: app:1, envFrom: [{configMapRef: {name: cm}}]}]"
VOLUME = """
containers: [{name: c, image: app:1, volumeMounts: [{name: v, mountPath: /v}]}]
volumes: [{name: v, configMap: {name: cm}}]
"""


def image(spec: str, new: str = "app:2") -> str:
    return spec.replace("app:1", new)


def deployment(spec: str, **more: Any) -> Json:
    return build.workload("Deployment", spec, replicas=1, **more)


def plan_for(
    old: Json, new: Json, *, config: tuple[Json, Json] = (A1, A1), found: Json | None = None
) -> Plan:
    """The plan for a workload and a ConfigMap or Secret, which are live as the old package says."""
    return planned(
        [config[0], old], [config[1], new], [live(config[0]), live(old) if found is None else found]
    )


def restarts(plan: Plan) -> list[Step]:
    return [step for step in plan.steps if not step.is_config]


def reasons(plan: Plan) -> list[str]:
    return [str(reason) for step in restarts(plan) for reason in step.reasons]


def notes(plan: Plan) -> list[str]:
    return [str(note) for note in plan.notes]


# --- configuration against what is live ---------------------------------------------------------


def test_configuration_is_compared_with_what_is_live_not_with_the_old_package() -> None:
    a3 = config_map(data={"a": "3", "b": "1"})
    (step,) = planned([A1], [A2], [live(a3)]).steps
    assert (step.action, step.before, step.content) == (Action.REPLACE, live(a3), A2)
    assert [str(reason) for reason in step.reasons] == ["key a: changed"]
    assert planned([A1], [A2], [live(A2)]).is_empty
    drifted = planned([A1], [A1], [live(a3)])
    assert [str(step.key) for step in drifted.steps] == ["ConfigMap ns/cm"]


USED = "containers: [{name: c, envFrom: [{configMapRef: {name: cm}}]}]"
ON_A_NODE = {**yaml_of(USED), "nodeName": "n"}
FIXED, FIXED_NEW = {**A1, "immutable": True}, {**A2, "immutable": True}


def running(spec: Json, phase: str = "Running", **metadata: Any) -> Json:
    return {**live(build.workload("Pod", spec), **metadata), "status": {"phase": phase}}


def active(kind: str, number: Any) -> Json:
    return {**live(build.workload(kind, USED)), "status": {"active": number}}


REFERRERS: dict[str, tuple[Json, bool]] = {
    "a pod on a node": (running(ON_A_NODE), True),
    "one that is being deleted": (running(ON_A_NODE, deletionTimestamp="2026-01-01"), True),
    "one whose image is missing": (running(ON_A_NODE, "Pending"), True),
    "one that no node has": (running(yaml_of(USED), "Pending"), False),
    "one that has ended": (running(ON_A_NODE, "Succeeded"), False),
    "one that was evicted": (running(ON_A_NODE, "Failed"), False),
    "one that refers to another": (
        running({**yaml_of(USED.replace("cm}", "other}")), "nodeName": "n"}), False,
    ),
    "one of another namespace": (running(ON_A_NODE, namespace="other"), False),
    "a Deployment, whose pods are looked at": (live(deployment(USED)), False),
    "a Job that runs": (active("Job", 1), True),
    "a Job that is done": (active("Job", 0), False),
    "a CronJob with a Job that runs": (active("CronJob", [{"name": "j"}]), True),
    "a CronJob between two Jobs": (active("CronJob", []), False),
    "an object of an unknown kind": (
        live({**deployment(USED), "apiVersion": "example.org/v1"}), True,
    ),
    "one with something else by that name": (
        live({**deployment("containers: [{envFrom: x}]"), "apiVersion": "example.org/v1"}), False,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("other", "is_refused"), REFERRERS.values(), ids=REFERRERS)
def test_what_is_immutable_gets_no_other_content_while_a_pod_that_runs_refers_to_it(
    other: Json, is_refused: bool
) -> None:
    cluster = by_identity(live(FIXED), other)
    changes = {"other content": FIXED_NEW, "no longer immutable": A1}
    for new in changes.values():
        matching = build.matched([FIXED], [new])
        if is_refused:
            with pytest.raises(
                PlanError, match=r"cm \(f.yaml:1\) is immutable .* a change of the package\."
            ):
                make_plan(matching, cluster, namespace="ns")
        else:
            (step,) = make_plan(matching, cluster, namespace="ns").steps
            assert step.action is Action.RECREATE


def test_what_was_immutable_and_is_gone_counts_as_well() -> None:
    pod = running(ON_A_NODE)
    with pytest.raises(PlanError, match="found Pod ns/w: "):
        planned([FIXED], [FIXED_NEW], [pod])
    (step,) = planned([FIXED], [FIXED], [pod]).steps
    assert step.action is Action.CREATE


IN_PLACE = {
    "it becomes immutable": (A1, FIXED),
    "its labels change": (FIXED, {**FIXED, "metadata": {"name": "cm", "labels": {"v": "2"}}}),
    "it is not immutable": (A1, A2),
}


@pytest.mark.parametrize(("old", "new"), IN_PLACE.values(), ids=IN_PLACE)
def test_a_pod_may_refer_to_what_is_replaced_where(old: Json, new: Json) -> None:
    (step,) = planned([old], [new], [live(old), running(ON_A_NODE)]).steps
    assert step.action is Action.REPLACE


@pytest.mark.parametrize("wrong", [5, ["a"], "text", {"port": 8080}], ids=str)
@pytest.mark.parametrize("immutable", [True, False])
def test_content_that_is_none_is_an_error_of_the_package(wrong: Any, immutable: bool) -> None:
    bad = {**A1, "data": wrong, "immutable": immutable}
    with pytest.raises(PackageError, match=r"^f.yaml:1: ConfigMap ns/cm: data"):
        planned([A1], [bad], [live(A1)])
    gone = [live(deployment(USES_A)), running(ON_A_NODE)]
    if immutable:
        with pytest.raises(PackageError, match=r"^f.yaml:1: ConfigMap ns/cm: data"):
            planned([bad], [A2], gone)
    else:
        assert not planned([bad], [A2], [live(A1)]).is_empty


KEYS = {"a": "1", "b": "1"}
DRIFTS = {
    "edited": ({"a": "mine", "b": "1"}, ["key a was edited"]),
    "removed": ({"a": "1"}, ["key b was removed"]),
    "added before the new package had it": ({**KEYS, "n": "mine"}, ["key n was added"]),
    "not at all": (KEYS, []),
    "what the new package says too": ({"a": "2", "b": "1"}, []),
    "both": ({"a": "2", "b": "mine"}, ["key b was edited"]),
}


@pytest.mark.parametrize(("data", "expected"), DRIFTS.values(), ids=DRIFTS)
@pytest.mark.parametrize("build_one", [config_map, secret])
def test_what_somebody_changed_in_configuration_is_named_before_it_is_replaced(
    build_one: Callable[..., Json], data: dict[str, str], expected: list[str]
) -> None:
    old, new = build_one(data=KEYS), build_one(data={"a": "2", "b": "1", "n": "new"})
    plan = planned([old], [new], [live(build_one(data=data))])
    text = " since the old package: the new content replaces that"
    assert [note.text for note in plan.notes] == [f"drift: {words}{text}" for words in expected]
    assert "mine" not in str(plan.notes)


CONFIG_ACTIONS = {
    "replaced": (A2, [live(A1)], Action.REPLACE),
    "recreated when it is immutable": (A2, [live({**A1, "immutable": True})], Action.RECREATE),
    "created when it is not there": (A2, [], Action.CREATE),
}


@pytest.mark.parametrize(
    ("new", "cluster", "action"), CONFIG_ACTIONS.values(), ids=CONFIG_ACTIONS.keys()
)
def test_configuration_is(new: Json, cluster: list[Json], action: Action) -> None:
    (step,) = planned([A1], [new], cluster).steps
    assert step.action is action
    assert step.before == (cluster[0] if cluster else None)


def test_new_configuration_of_a_kept_file_is_created_and_other_new_objects_are_not() -> None:
    plan = planned([A1], [A1, secret("new"), deployment(USES_NONE)], [live(A1)])
    assert [(str(step.key), step.action) for step in plan.steps] == [
        ("Secret ns/new", Action.CREATE)
    ]
    assert [str(note) for note in plan.ignored] == [
        "Deployment ns/w: is new in f.yaml:21 and is not created by a modify operation"
    ]


def test_an_object_that_the_new_package_does_not_have_is_left_alone_and_said_so() -> None:
    cluster = [live(A1, **OURS), live(deployment(USES_A))]
    plan = planned([A1, deployment(USES_A)], [], cluster, "ours")
    assert plan.is_empty
    assert notes(plan) == [
        "ConfigMap ns/cm: is not in the new package: kept",
        "Deployment ns/w: is not in the new package: kept, and without this VNF's label no change "
        "deletes it",
    ]
    assert [str(key) for key in plan.left] == ["ConfigMap ns/cm"], "a change deletes this alone"
    assert [str(key) for key in plan.unchanged] == ["ConfigMap ns/cm", "Deployment ns/w"]
    assert [m.body for m in plan.manifests] == [A1, deployment(USES_A)]


def test_a_workload_that_the_new_package_does_not_have_restarts_for_configuration() -> None:
    plan = planned([A1, deployment(USES_A)], [A2], [live(A1), live(deployment(USES_A))])
    assert [str(step.key) for step in restarts(plan)] == ["Deployment ns/w"]


# --- who restarts, and why ----------------------------------------------------------------------

WHY: dict[str, tuple[str, tuple[Json, Json], list[str]]] = {
    "the changed key in its environment": (
        USES_A, (A1, A2),
        ["env E of container c uses key a of ConfigMap ns/cm, which changed"],
    ),
    "all keys, of which one changed": (
        ENV_FROM, (A1, A2),
        ["envFrom of container c uses all keys of ConfigMap ns/cm, of which a changed"],
    ),
    "two changed keys in a volume": (
        VOLUME.replace("{name: cm}", "{name: cm, items: [{key: a}, {key: b}, {key: c}]}"),
        (A1, config_map(data={"a": "2"})),
        ["volume v uses keys a, b of ConfigMap ns/cm, which changed"],
    ),
    "a key that vanishes": (
        USES_B, (A1, config_map(data={"a": "1"})),
        ["env E of container c uses key b of ConfigMap ns/cm, which changed"],
    ),
    "an optional key that appears": (
        USES_A.replace("key: a", "key: z, optional: true"),
        (A1, config_map(data={"a": "1", "b": "1", "z": "1"})),
        ["env E of container c uses key z of ConfigMap ns/cm, which changed"],
    ),
    "a Secret whose type changed, by a key whose value did not": (
        USES_A.replace("configMapKeyRef", "secretKeyRef").replace("cm", "sec"),
        (secret(), secret(type="x")),
        ["env E of container c uses key a of Secret ns/sec, which changed"],
    ),
    "a Secret whose type changed, by all keys": (
        "containers: [{name: c, image: app:1}]\nimagePullSecrets: [{name: sec}]",
        (secret(), secret(type="x")),
        ["imagePullSecrets of the pod uses all keys of Secret ns/sec, of which its type changed"],
    ),
    "each use of it, the same one once": (
        VOLUME.replace("image: app:1,", "image: app:1, envFrom: [{configMapRef: {name: cm}},"
                       " {prefix: P_, configMapRef: {name: cm}}],"),
        (A1, A2),
        [
            "envFrom of container c uses all keys of ConfigMap ns/cm, of which a changed",
            "volume v uses all keys of ConfigMap ns/cm, of which a changed",
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "config", "expected"), WHY.values(), ids=WHY.keys())
def test_a_workload_restarts_because_it_uses(
    spec: str, config: tuple[Json, Json], expected: list[str]
) -> None:
    plan = plan_for(deployment(spec), deployment(spec), config=config)
    assert reasons(plan) == expected


def test_a_use_of_what_did_not_change_hides_no_other_use() -> None:
    spec = ENV_FROM.replace("envFrom: [", "envFrom: [{configMapRef: {name: x}}, ")
    body = deployment(spec)
    assert len(reasons(plan_for(body, body, config=(A1, A2)))) == 1


def test_all_images_and_all_uses_are_given_as_reasons_images_first() -> None:
    new = deployment(image(USES_A))
    assert reasons(plan_for(deployment(USES_A), new, config=(A1, A2))) == [
        "container c: image app:1 -> app:2",
        "env E of container c uses key a of ConfigMap ns/cm, which changed",
    ]


APPEARS = {
    "a key": (
        USES_A.replace("key: a", "key: a, optional: true"),
        "env E of container c uses key a of ConfigMap ns/cm, which appears",
    ),
    "all keys": (
        ENV_FROM, "envFrom of container c uses all keys of ConfigMap ns/cm, which appears",
    ),
    "two keys": (
        VOLUME.replace("{name: cm}", "{name: cm, items: [{key: b}, {key: a}], optional: true}"),
        "volume v uses keys a, b of ConfigMap ns/cm, which appears",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "expected"), APPEARS.values(), ids=APPEARS.keys())
def test_a_workload_restarts_when_an_object_appears_of_which_it_uses(
    spec: str, expected: str
) -> None:
    body = deployment(spec)
    assert reasons(planned([body], [body, A1], [live(body)])) == [expected]
    assert reasons(planned([body, A1], [body, A1], [live(body)])) == [expected]


NOT: dict[str, tuple[str, tuple[Json, Json]]] = {
    "another key changed": (USES_B, (A1, A2)),
    "another key of the items changed": (
        VOLUME.replace("{name: cm}", "{name: cm, items: [{key: b, path: b}]}"), (A1, A2),
    ),
    "another key than the one of its subPath changed": (
        VOLUME.replace("/v}", "/v, subPath: b}"), (A1, A2),
    ),
    "a Secret of the ConfigMap's name changed": (
        USES_A, (secret("cm", {"a": "1"}), secret("cm", {"a": "2"})),
    ),
    "an object of another namespace changed": (
        USES_A,
        (
            config_map(data={"a": "1"}, metadata={"namespace": "other"}),
            config_map(data={"a": "2"}, metadata={"namespace": "other"}),
        ),
    ),
    "the object only becomes immutable": (ENV_FROM, (A1, {**A1, "immutable": True})),
    "the object only ceases to be immutable": (VOLUME, ({**A1, "immutable": True}, A1)),
    "it uses nothing of it": (USES_NONE, (A1, A2)),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "config"), NOT.values(), ids=NOT.keys())
def test_a_workload_does_not_restart_when(spec: str, config: tuple[Json, Json]) -> None:
    plan = plan_for(deployment(spec), deployment(spec), config=config)
    assert [step.key.kind for step in plan.steps] == [config[0]["kind"]]
    assert [str(key) for key in plan.unchanged] == ["Deployment ns/w"]


BY_OBJECT: dict[str, tuple[str, tuple[Json, Json], bool]] = {
    "another key than the one of its variable": (USES_B, (A1, A2), True),
    "the key that it uses": (USES_A, (A1, A2), True),
    "its labels alone": (
        USES_A, (A1, {**A1, "metadata": {"name": "cm", "labels": {"v": "2"}}}), False,
    ),
    "that it becomes immutable": (USES_A, (A1, {**A1, "immutable": True}), False),
    "nothing": (USES_A, (A1, A1), False),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "config", "does"), BY_OBJECT.values(), ids=BY_OBJECT)
def test_by_the_option_any_change_of_an_object_restarts_who_uses_it(
    spec: str, config: tuple[Json, Json], does: bool
) -> None:
    workloads = deployment(spec), build.workload("Deployment", USES_NONE, "other")
    plan = make_plan(
        build.matched([config[0], *workloads], [config[1], *workloads]),
        by_identity(*map(live, (config[0], *workloads))),
        namespace="ns",
        restart_for=CHANGED_OBJECTS,
    )
    assert [str(step.key) for step in restarts(plan)] == ["Deployment ns/w"] * does


def test_the_live_pod_spec_decides_what_a_workload_uses() -> None:
    plain, injected = deployment(USES_NONE), deployment(USES_A)
    assert restarts(plan_for(plain, plain, config=(A1, A2), found=live(injected)))
    assert not restarts(plan_for(injected, injected, config=(A1, A2), found=live(plain)))


def test_every_object_of_the_configuration_comes_before_every_workload() -> None:
    old = [deployment(USES_A), A1, build.workload("Pod", USES_A, "p"), secret()]
    new = [deployment(USES_A), A2, build.workload("Pod", USES_A, "p"), secret(data={"a": "2"})]
    plan = planned(old, new, [live(body) for body in old])
    assert [str(step.key) for step in plan.steps] == [
        "ConfigMap ns/cm",
        "Secret ns/sec",
        "Deployment ns/w",
        "Pod ns/p",
    ]


# --- opting out ---------------------------------------------------------------------------------

SUB_PATH = VOLUME.replace("mountPath: /v", "mountPath: /v, subPath: a")
INIT_MOUNT = VOLUME + "initContainers: [{name: i, volumeMounts: [{name: v, mountPath: /v}]}]"

OPT_OUTS: list[tuple[str, str, bool]] = [
    (VOLUME, "reload", False),
    (ENV_FROM, "reload", True),
    (SUB_PATH, "reload", True),
    (INIT_MOUNT, "reload", True),
    (VOLUME, "ignore", False),
    (ENV_FROM, "ignore", False),
    (INIT_MOUNT, "ignore", False),
    (VOLUME, "", True),
    (VOLUME, "another word", True),
]


def annotated(body: Json, choice: str) -> Json:
    metadata = {**body["metadata"], "annotations": {"container-update/on-config-change": choice}}
    return {**body, "metadata": metadata}


@pytest.mark.parametrize(("spec", "choice", "does"), OPT_OUTS)
@pytest.mark.parametrize("where", ["workload", "live object", "new manifest"])
def test_a_workload_opts_out_of_restarts(spec: str, choice: str, does: bool, where: str) -> None:
    body, now, after = deployment(spec), A1, A2
    if where == "workload":
        body = annotated(body, choice)
    elif where == "live object":
        now = annotated(A1, choice)
    else:
        after = annotated(A2, choice)
    plan = planned([A1, body], [after, body], [live(now), live(body)])
    assert bool(restarts(plan)) is does
    owner = "its" if where == "workload" else "ConfigMap ns/cm's"
    said = [note for note in notes(plan) if f"{owner} annotation says {choice}" in note]
    assert bool(said) is not does


def test_a_word_that_is_no_choice_is_told() -> None:
    body = annotated(deployment(VOLUME), "Ignore")
    assert notes(plan_for(body, body, config=(A1, A2))) == [
        "Deployment ns/w: its annotation container-update/on-config-change is neither ignore nor "
        "reload: it has no effect"
    ]


@pytest.mark.parametrize(
    ("strategy", "told"),
    [
        ({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}, True),
        ({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}, False),
        ({"type": "OnDelete", "rollingUpdate": {"partition": 2}}, False),
        ({}, False),
    ],
)
def test_what_a_partition_keeps_is_told(strategy: Json, told: bool) -> None:
    old = build.workload("StatefulSet", USES_A, updateStrategy=strategy)
    text = "StatefulSet ns/w: its partition keeps the pods with ordinals below 2 as they are"
    assert (text in notes(plan_for(old, old, config=(A1, A2)))) is told


def test_the_new_manifests_choice_is_stronger_than_the_live_objects() -> None:
    body = deployment(ENV_FROM)
    plan = plan_for(body, body, config=(annotated(A1, "ignore"), annotated(A2, "reload")))
    assert restarts(plan)


def test_a_choice_that_the_new_manifest_takes_away_counts_no_more() -> None:
    body = deployment(ENV_FROM)
    assert restarts(plan_for(body, body, config=(annotated(A1, "ignore"), A2)))


def test_a_workload_opts_out_for_one_use_and_restarts_for_another() -> None:
    body = deployment(VOLUME.replace("app:1,", "app:1, envFrom: [{configMapRef: {name: cm}}],"))
    plan = plan_for(body, body, config=(annotated(A1, "reload"), annotated(A2, "reload")))
    assert reasons(plan) == [
        "envFrom of container c uses all keys of ConfigMap ns/cm, of which a changed"
    ]
    assert notes(plan) == [
        "Deployment ns/w: ConfigMap ns/cm's annotation says reload, so the kubelet refreshes "
        "volume v"
    ]


def test_ignoring_configuration_does_not_ignore_images() -> None:
    old = annotated(deployment(ENV_FROM), "ignore")
    plan = plan_for(old, annotated(deployment(image(ENV_FROM)), "ignore"), config=(A1, A2))
    assert reasons(plan) == ["container c: image app:1 -> app:2"]
    assert restarts(plan)[0].digest is None
    assert notes(plan) == [
        "Deployment ns/w: its annotation says ignore, so envFrom of container c does not restart it"
    ]


# --- images -------------------------------------------------------------------------------------

TWO = "{initContainers: [{name: i, image: init:1}], containers: [{name: c, image: app:1}]}"


def test_images_of_init_containers_change_too() -> None:
    new = TWO.replace(":1", ":2")
    (step,) = restarts(plan_for(deployment(TWO), deployment(new)))
    assert step.images == {"i": "init:2", "c": "app:2"}
    assert step.digest is None
    assert [str(reason) for reason in step.reasons] == [
        "init container i: image init:1 -> init:2",
        "container c: image app:1 -> app:2",
    ]


DRIFT = {
    "the packages agree, the cluster does not": (
        "app:1", "app:1", "mirror/app:1", None,
        ["Deployment ns/w: drift: container c has image mirror/app:1, both packages say app:1: "
         "left alone"],
    ),
    "the packages differ and the cluster has a third image": (
        "app:1", "app:2", "mirror/app:1", "container c: image mirror/app:1 -> app:2",
        ["Deployment ns/w: drift: container c had image mirror/app:1, the old package says app:1"],
    ),
    "the cluster has the new image already": ("app:1", "app:2", "app:2", None, []),
    "the cluster has the old image": (
        "app:1", "app:2", "app:1", "container c: image app:1 -> app:2", [],
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "found", "reason", "expected"), DRIFT.values(), ids=DRIFT.keys()
)
def test_images_when(
    old: str, new: str, found: str, reason: str | None, expected: list[str]
) -> None:
    plan = plan_for(
        deployment(image(USES_NONE, old)),
        deployment(image(USES_NONE, new)),
        found=live(deployment(image(USES_NONE, found))),
    )
    assert reasons(plan) == ([reason] if reason else [])
    assert notes(plan) == expected


def test_a_container_that_only_the_cluster_lacks_is_drift_unless_its_image_changes() -> None:
    found = live(deployment("containers: [{name: other, image: x}]"))
    plan = plan_for(deployment(USES_NONE), deployment(USES_NONE), found=found)
    assert plan.is_empty
    assert notes(plan) == [
        "Deployment ns/w: drift: container c of f.yaml:11 is not in the live object"
    ]
    with pytest.raises(
        PlanError, match=r"Deployment ns/w: container c of f.yaml:11 .* RollingUpdate"
    ):
        plan_for(deployment(USES_NONE), deployment(image(USES_NONE)), found=found)


def test_a_container_that_a_webhook_added_is_left_alone() -> None:
    found = live(deployment("containers: [{name: proxy, image: p}, {name: c, image: app:1}]"))
    plan = plan_for(deployment(USES_NONE), deployment(image(USES_NONE)), found=found)
    assert restarts(plan)[0].images == {"c": "app:2"}
    assert not plan.notes


# --- how each kind restarts ---------------------------------------------------------------------

ON_DELETE = {"updateStrategy": {"type": "OnDelete"}}
KINDS: dict[str, tuple[str, dict[str, Any], Action | None]] = {
    "a Deployment": ("Deployment", {}, Action.ROLL),
    "a DaemonSet": ("DaemonSet", {}, Action.ROLL),
    "a DaemonSet that says RollingUpdate": (
        "DaemonSet", {"updateStrategy": {"type": "RollingUpdate"}}, Action.ROLL,
    ),
    "a DaemonSet that waits for deletions": ("DaemonSet", ON_DELETE, Action.EVICT),
    "a StatefulSet": ("StatefulSet", {}, Action.ROLL),
    "a StatefulSet that waits for deletions": ("StatefulSet", ON_DELETE, Action.EVICT),
    "a ReplicaSet": ("ReplicaSet", {}, Action.EVICT),
    "a CronJob": ("CronJob", {}, Action.TEMPLATE),
    "a Job, which cannot": ("Job", {}, None),
}  # fmt: skip


@pytest.mark.parametrize("cause", ["image", "configuration", "both"])
@pytest.mark.parametrize(("kind", "spec", "action"), KINDS.values(), ids=KINDS.keys())
def test_this_kind_restarts_by_its_own_way(
    kind: str, spec: dict[str, Any], action: Action | None, cause: str
) -> None:
    old = build.workload(kind, USES_A, **spec)
    new = build.workload(kind, USES_A if cause == "configuration" else image(USES_A), **spec)
    plan = plan_for(old, new, config=(A1, A1 if cause == "image" else A2))
    if action is None:
        why = "env E of container c" if cause == "configuration" else "container c: image"
        assert restarts(plan) == []
        assert [str(note) for note in plan.notes if why in str(note)] == notes(plan)
        assert notes(plan)[0].startswith(f"{kind} ns/w: a Job cannot change, it would restart")
        return
    (step,) = restarts(plan)
    assert step.action is action
    assert step.before == live(old)
    assert step.images == ({} if cause == "configuration" else {"c": "app:2"})
    assert (step.digest is None) is (cause == "image")


POD = """
initContainers:
- {name: init, image: init:1}
- {name: side, image: side:1, restartPolicy: Always}
containers:
- {name: a, image: app:1}
- {name: b, image: app:1}
"""

ENV = {"envFrom": [{"configMapRef": {"name": "cm"}}]}
MOUNT = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
SUB = {"volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "a"}]}
IN_PLACE: dict[str, tuple[dict[str, Any], str, bool]] = {
    "only images of containers": ({}, "a b", True),
    "only the image of a sidecar": ({}, "side", True),
    "the image of an init container": ({}, "init", False),
    "the image of an init container and of a container": ({}, "init a", False),
    "only its environment": ({"a": ENV}, "", False),
    "the environment of the container whose image changes": ({"a": ENV}, "a", True),
    "the environment of another container": ({"b": ENV}, "a", False),
    "the environment of both, whose images change": ({"a": ENV, "b": ENV}, "a b", True),
    "the environment of a sidecar whose image changes": ({"side": ENV}, "side", True),
    "the environment of an init container": ({"init": ENV}, "a", False),
    "a volume of the container whose image changes": ({"a": MOUNT}, "a", True),
    "a volume of another container": ({"b": MOUNT}, "a", False),
    "a volume of both, one image": ({"a": MOUNT, "b": MOUNT}, "a", False),
    "a volume of an init container too": ({"a": MOUNT, "init": MOUNT}, "a", False),
    "a volume that nobody mounts": ({"volumes": {}}, "a", True),
    "a subPath of the container whose image changes": ({"a": SUB}, "a", True),
    "imagePullSecrets, read with each image": ({"imagePullSecrets": {}}, "a", True),
    "imagePullSecrets alone": ({"imagePullSecrets": {}}, "", False),
    "the Secret that a volume is mounted with": ({"csi": {}}, "a", False),
}


def pod_that(uses: dict[str, Any], changed: str) -> tuple[Json, Json]:
    """The old and the new Pod: which containers use the configuration, which images change."""
    old, new = yaml_of(POD), yaml_of(POD)
    for spec in (old, new):
        for container in (*spec["initContainers"], *spec["containers"]):
            container.update(uses.get(container["name"], {}))
            if spec is new and container["name"] in changed.split():
                container["image"] += "-new"
        if "imagePullSecrets" in uses:
            spec["imagePullSecrets"] = [{"name": "sec"}]
        if "csi" in uses:
            reference = {"name": "sec"}
            spec["volumes"] = [{"name": "v", "csi": {"nodePublishSecretRef": reference}}]
        elif "volumes" in uses or any("volumeMounts" in use for use in uses.values()):
            spec["volumes"] = [{"name": "v", "configMap": {"name": "cm"}}]
    return build.workload("Pod", old, "p"), build.workload("Pod", new, "p")


def plan_of_pod(old: Json, new: Json, phase: str = "Running") -> Plan:
    found = {**live(old), "status": {"phase": phase}}
    old_config, new_config = [A1, secret()], [A2, secret(data={"a": "2"})]
    cluster = [found, *(live(body) for body in old_config)]
    return planned([old, *old_config], [new, *new_config], cluster)


@pytest.mark.parametrize(("uses", "images", "in_place"), IN_PLACE.values(), ids=IN_PLACE.keys())
def test_a_pod_is_restarted_in_place_if_that_restarts_all_that_must(
    uses: dict[str, Any], images: str, in_place: bool
) -> None:
    (step,) = restarts(plan_of_pod(*pod_that(uses, images)))
    assert step.action is (Action.RESTART_CONTAINERS if in_place else Action.RECREATE_POD)
    assert set(step.images) == set(images.split())
    assert (step.digest is None) is (not uses)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_is_created_again(phase: str) -> None:
    (step,) = restarts(plan_of_pod(*pod_that({}, "a"), phase=phase))
    assert step.action is Action.RECREATE_POD


def test_a_pod_without_a_status_yet_is_restarted_in_place() -> None:
    old, new = pod_that({}, "a")
    (step,) = planned([old], [new], [live(old)]).steps
    assert step.action is Action.RESTART_CONTAINERS


# --- the digest ---------------------------------------------------------------------------------


def digest_of(config: Json, found: Json) -> str:
    plan = planned([A1, deployment(USES_A)], [A2, deployment(USES_A)], [config, found])
    digest = restarts(plan)[0].digest
    assert digest is not None
    return digest


def test_the_digest_is_another_for_another_version_of_what_changed() -> None:
    found = live(deployment(USES_A), version="1")
    cases = [
        (live(A1, version="1"), found),
        (live(A1, version="2"), found),
        (live(A1, version="1"), live(deployment(USES_A), version="2")),
        (live(A1, version="1"), live(deployment(USES_A), uid="other", version="1")),
    ]
    digests = [digest_of(*case) for case in cases]
    assert len(set(digests)) == len(cases)
    assert digests == [digest_of(*case) for case in cases]
    assert all(len(digest) == 32 for digest in digests)


def test_the_digest_does_not_depend_on_the_content() -> None:
    found = live(deployment(USES_A))
    other = live(config_map(data={"a": "4", "b": "1"}))
    assert digest_of(live(A1), found) == digest_of(other, found)


def test_the_digest_is_another_for_other_objects_that_changed() -> None:
    spec = yaml_of(USES_A)
    spec["containers"][0]["envFrom"] = [{"secretRef": {"name": "sec", "optional": True}}]
    body = build.workload("Deployment", spec)
    old, cluster = [A1, secret(), body], [live(A1), live(secret()), live(body)]
    one = planned(old, [A2, secret(), body], cluster)
    both = planned(old, [A2, secret(data={"a": "2"}), body], cluster)
    appears = planned([A1, body], [A2, secret(), body], [live(A1), live(body)])
    digests = [restarts(plan)[0].digest for plan in (one, both, appears)]
    assert len({*digests}) == 3


# --- refused ------------------------------------------------------------------------------------

DELETING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
OTHERS: dict[str, Any] = {"labels": {"tacker_vnf_instance_id": "theirs"}}
UNFIT: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], list[str]]] = {
    "a workload that is being deleted": ({}, DELETING, {}, ["Deployment ns/w: is being deleted"]),
    "configuration that is being deleted": (
        DELETING, {}, {}, ["ConfigMap ns/cm: is being deleted"],
    ),
    "a workload of another instance": (
        {}, OTHERS, {}, ["Deployment ns/w: expected an object of VNF instance ours",
                         "tacker_vnf_instance_id=theirs"],
    ),
    "configuration of another instance": (
        OTHERS, OURS, {}, ["ConfigMap ns/cm: expected an object of VNF instance ours"],
    ),
    "a paused Deployment": (
        {}, {}, {"paused": True},
        ["Deployment ns/w: is paused", "kubectl rollout resume deployment w -n ns"],
    ),
}  # fmt: skip


def plan_with(
    config: dict[str, Any],
    metadata: dict[str, Any],
    spec: dict[str, Any],
    *,
    new: Json = A2,
    instance_id: str | None = "ours",
) -> Plan:
    old = deployment(USES_A)
    found = live(deployment(USES_A, **spec), **metadata)
    return planned([A1, old], [new, old], [live(A1, **config), found], instance_id)


@pytest.mark.parametrize(("config", "metadata", "spec", "words"), UNFIT.values(), ids=UNFIT.keys())
def test_an_update_is_refused_that_would_change(
    config: dict[str, Any], metadata: dict[str, Any], spec: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(PlanError) as caught:
        plan_with(config, metadata, spec)
    for word in words:
        assert word in str(caught.value)
    assert plan_with(config, metadata, spec, new=A1).is_empty, "nothing of it would be changed"


@pytest.mark.parametrize(
    ("labels", "instance_id"),
    [
        pytest.param(OURS, "ours", id="its own label"),
        pytest.param({}, "ours", id="no label, as objects made by hand have it"),
        pytest.param({"labels": None}, "ours", id="labels that are null"),
        pytest.param(OTHERS, None, id="any label where the instance is not known"),
    ],
)
def test_an_update_is_not_refused_for(labels: dict[str, Any], instance_id: str | None) -> None:
    assert len(plan_with(labels, labels, {}, instance_id=instance_id).steps) == 2
    assert plan_with({}, {}, {}, instance_id=instance_id).instance_id == instance_id


def test_configuration_that_would_be_added_over_another_instances_is_refused() -> None:
    with pytest.raises(PlanError, match="belongs to another instance"):
        planned([A1], [A1, secret()], [live(A1), live(secret(data={"a": "2"}), **OTHERS)], "ours")


def test_new_configuration_that_somebody_elses_object_stands_in_the_way_of_is_refused() -> None:
    other = secret(data={"a": "2"})
    with pytest.raises(PlanError, match=r"Secret ns/sec \(f.yaml:11\) is new in the package"):
        planned([A1], [A1, secret()], [live(A1), live(other)], "ours")
    ours: dict[str, Any] = {"labels": {"tacker_vnf_instance_id": "ours"}}
    for cluster, instance_id, steps in (
        ([live(A1), live(other, **ours)], "ours", 1),
        ([live(A1), live(other)], None, 1),
        ([live(A1), live(secret())], "ours", 0),
        ([live(A1)], "ours", 1),
    ):
        assert len(planned([A1], [A1, secret()], cluster, instance_id).steps) == steps


def test_a_paused_daemonset_does_not_exist() -> None:
    body = build.workload("DaemonSet", USES_A, paused=True)
    assert restarts(plan_for(body, body, config=(A1, A2)))


def test_a_workload_that_is_gone_is_left_alone_unless_its_image_changes() -> None:
    old = deployment(USES_A)
    plan = planned([A1, old], [A2, old], [live(A1)])
    assert notes(plan) == ["Deployment ns/w: is not in the cluster: left alone"]
    assert restarts(plan) == []
    with pytest.raises(
        MissingError, match=r"^Deployment ns/w: is not in the cluster, so its image cannot change"
    ):
        planned([A1, old], [A1, deployment(image(USES_A))], [live(A1)])


def test_a_container_that_vanished_from_the_package_is_refused() -> None:
    with pytest.raises(PackageError, match="expected a container c"):
        plan_for(deployment(USES_NONE), deployment("containers: [{name: d, image: x}]"))


def test_an_object_that_runs_nothing_is_never_written() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"x": 1}}
    plan = planned([service], [{**service, "spec": {"x": 2}}], [])
    assert plan.is_empty
    assert not plan.notes, "it is not read, so nothing can be said of it"
    assert [str(note) for note in plan.ignored] == [
        "Service ns/s: spec.x differs and does not take effect (f.yaml:1)"
    ]


# --- what is ignored, and what is in force afterwards -------------------------------------------


def test_replicas_are_named_as_ignored_and_never_written() -> None:
    old, new = deployment(USES_NONE), deployment(image(USES_NONE))
    new["spec"]["replicas"] = 5
    plan = plan_for(old, new)
    assert [str(note) for note in plan.ignored] == [
        "Deployment ns/w: spec.replicas differs and does not take effect (f.yaml:11)"
    ]


def test_what_is_ignored_is_named_after_an_object_that_is_nowhere_too() -> None:
    old = deployment(USES_NONE)
    plan = planned([A1, old], [{**old, "spec": {**old["spec"], "replicas": 5}}], [live(A1)])
    assert [note.change and note.change.path for note in plan.ignored] == ["spec.replicas"]


def test_what_a_change_of_the_package_would_not_apply_either_is_no_part_of_what_it_would() -> None:
    old, new = build.workload("Job", USES_NONE), build.workload("Job", USES_NONE, completions=2)
    plan = plan_for(old, new)
    assert plan.ignored == ()
    (note,) = notes(plan)
    assert note.startswith("Job ns/w: a Job cannot change: spec.completions: none -> 2 (f.yaml:")
    plan = plan_for(old, build.workload("Job", USES_NONE, parallelism=2))
    assert [note.change and note.change.path for note in plan.ignored] == ["spec.parallelism"]
    assert notes(plan) == []


def test_another_field_of_configuration_that_is_written_is_ignored() -> None:
    new = config_map(data={"a": "2"}, metadata={"finalizers": ["f"], "labels": {"v": "2"}})
    plan = planned([A1], [new], [live(A1)])
    assert [note.change and note.change.path for note in plan.ignored] == ["metadata.finalizers"]


@pytest.mark.parametrize("cluster", [[live(A1)], []], ids=["replaced", "created"])
def test_labels_of_configuration_that_is_written_are_not_called_ignored(
    cluster: list[Json],
) -> None:
    metadata = {"labels": {"v": "2"}, "annotations": {"w": "2"}}
    plan = planned([A1], [{**A2, "metadata": {"name": "cm", **metadata}}], cluster)
    assert len(plan.steps) == 1
    assert not plan.ignored


def test_labels_of_a_workload_that_is_written_are_ignored() -> None:
    new = deployment(image(USES_NONE))
    new["metadata"]["labels"] = {"v": "2"}
    plan = plan_for(deployment(USES_NONE), new)
    assert [note.change and note.change.path for note in plan.ignored] == ["metadata.labels"]


def test_a_namespace_that_does_not_count_is_listed() -> None:
    moved = build.manifest(config_map(data=A1["data"], metadata={"namespace": "other"}))
    old = build.manifest(A1)
    plan = make_plan(
        match({"f": (old,)}, {}, {"f": (replace(moved, key=old.key),)}, {}),
        by_identity(live(A1)),
        namespace="ns",
    )
    assert plan.is_empty
    assert [note.change and note.change.path for note in plan.ignored] == ["metadata.namespace"]


def test_of_listed_files_the_configuration_is_written_and_no_other() -> None:
    """So an operator holds back a change of the package: ``configmap_secret_paths``."""
    user, same = deployment(USES_A), config_map("same")
    listed, new = secret("s", {"a": "2"}), config_map("new")
    matching = build.matched(
        [A1, secret("s"), same, user], [A2, secret("s"), same, user, new], [listed]
    )
    live_objects = by_identity(*map(live, (A1, secret("s"), same, user)))
    plan = make_plan(matching, live_objects, namespace="ns")
    unlisted = "configmap_secret_paths does not list that file"
    assert [str(step.key) for step in plan.steps] == ["Secret ns/s"]
    assert [str(note) for note in (*plan.notes, *plan.ignored)] == [
        f"ConfigMap ns/cm: differs from f.yaml:1: {unlisted}, so it is not written",
        f"ConfigMap ns/new: is new in f.yaml:41: {unlisted}, so it is not created by a modify "
        "operation",
    ]
    in_force = {manifest.key: manifest.body for manifest in plan.manifests}
    assert in_force[ObjectKey.of(live(A1))] == A1
    assert in_force[ObjectKey.of(live(listed))] == listed


def test_labels_of_configuration_take_effect_and_restart_nothing() -> None:
    labelled = config_map(data=A1["data"], metadata={"labels": {"v": "2"}})
    workload = deployment(USES_A)
    plan = planned([A1, workload], [labelled, workload], [live(A1), live(workload)])
    (step,) = plan.steps
    assert [str(reason) for reason in step.reasons] == ["metadata.labels differs (f.yaml:1)"]
    assert isinstance(step, ConfigStep)
    assert step.with_change(live(A1))["metadata"]["labels"] == {"v": "2"}
    assert not plan.ignored


def test_the_manifests_in_force_are_the_old_ones_with_what_takes_effect() -> None:
    service = {**deployment(USES_A), "apiVersion": "example.org/v1", "kind": "Service"}
    old = [A1, deployment(USES_A), service]
    new_deployment = deployment(image(USES_A))
    new_deployment["spec"]["replicas"] = 9
    new_service = {**deployment(image(USES_A)), "apiVersion": "example.org/v1", "kind": "Service"}
    new = [new_service, A2, new_deployment, secret()]
    plan = planned(old, new, [live(A1), live(old[1]), live(service)])
    assert [(m.body, str(m.source)) for m in plan.manifests] == [
        (A2, "f.yaml:11"),
        (deployment(image(USES_A)), "f.yaml:21"),
        (service, "f.yaml:1"),
        (secret(), "f.yaml:31"),
    ]


def test_the_plan_hands_on_what_it_was_made_for() -> None:
    plan = planned([A1], [A1], [live(A1)], "i-1")
    assert (plan.namespace, plan.instance_id, plan.def_files) == ("ns", "i-1", ("f.yaml",))


# --- twice --------------------------------------------------------------------------------------


def applied(plan: Plan, cluster: list[Json]) -> list[Json]:
    """The cluster after the plan, without its controllers."""
    after = by_identity(*cluster)
    for number, step in enumerate(plan.steps):
        if step.is_config:
            assert step.content is not None
            after[step.key] = live(step.content, version=f"1{number}")
        else:
            changed = pod_template.with_images(after[step.key], step.images)
            after[step.key] = live(
                pod_template.with_digest(changed, step.digest), version=f"1{number}"
            )
    return list(after.values())


def test_the_same_update_a_second_time_does_nothing() -> None:
    specs = {"Deployment": USES_A, "Pod": ENV_FROM, "CronJob": VOLUME, "ReplicaSet": USES_B}
    old = [
        A1,
        secret(),
        *(build.workload(kind, spec, kind.lower()) for kind, spec in specs.items()),
    ]
    new = [
        A2, secret(data={}, stringData={"a": "2"}), config_map("more"),
        *(build.workload(kind, image(spec), kind.lower()) for kind, spec in specs.items()),
    ]  # fmt: skip
    cluster = [live(body) for body in old]
    first = planned(old, new, cluster)
    assert len(first.steps) == 7
    assert planned(old, new, applied(first, cluster)).is_empty


def test_an_update_with_nothing_changed_does_nothing() -> None:
    old = [A1, secret(), deployment(USES_A)]
    plan = planned(old, old, [live(body) for body in old])
    assert plan == Plan(
        namespace="ns",
        instance_id=None,
        steps=(),
        unchanged=tuple(ObjectKey.of(live(body)) for body in old),
        def_files=("f.yaml",),
        manifests=manifests("f.yaml", *old),
    )


# --- what is read of the cluster ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "kind", "expected"),
    [
        ("", "ConfigMap", ["ConfigMap"]),
        ("", "Secret", ["Secret"]),
        ("", "Pod", ["Pod"]),
        ("apps", "Deployment", ["Deployment", "Pod", "ReplicaSet"]),
        ("apps", "DaemonSet", ["DaemonSet", "Pod"]),
        ("apps", "ReplicaSet", ["Pod", "ReplicaSet"]),
        ("apps", "StatefulSet", ["Pod", "StatefulSet"]),
        ("batch", "Job", ["Job", "Pod"]),
        ("batch", "CronJob", ["CronJob"]),
        ("", "Service", []),
        ("example.org", "Deployment", []),
    ],
)
def test_only_what_a_plan_needs_is_read(group: str, kind: str, expected: list[str]) -> None:
    found = collections([ObjectKey(group, kind, "n", "x"), ObjectKey(group, kind, "n", "y")])
    assert sorted(c.kind for c in found) == expected
    groups = {"Pod": "", "ReplicaSet": "apps"}
    assert {*found} == {Collection(groups.get(k, group), k, "n") for k in expected}


# --- no word of a Secret ------------------------------------------------------------------------


def test_no_secrets_word_is_in_what_an_update_says() -> None:
    words = ["canary-old", "canary-new", "canary-more"]
    body = deployment(ENV_FROM.replace("configMapRef", "secretRef").replace("cm", "sec"))
    old = [secret(data={"p": words[0], "q": "x"}), body]
    new = [secret(data={"p": words[1]}, stringData={"r": words[2]}, type="t"), body]
    plan = planned(old, new, [live(one) for one in old])
    said = [
        text_of(plan_report.plan_lines(plan)),
        json.dumps(plan_json.plan_dict(plan)),
        *map(str, plan.notes),
        *map(str, plan.ignored),
        *(str(reason) for step in plan.steps for reason in step.reasons),
        *(str(step.digest) for step in plan.steps if isinstance(step, RestartStep)),
    ]
    assert any("of which p, q, r changed" in text for text in said)
    for word, text in itertools.product([*words, *map(b64, words)], said):
        assert word not in text


def test_the_listed_file_counts_before_the_one_of_the_same_path() -> None:
    matching = match(
        {"f": manifests("f", A1)}, {"l": manifests("l", A2)}, {"f": manifests("f", A1)}, {}
    )
    plan = make_plan(matching, by_identity(live(A1)), namespace="ns")
    assert plan.steps[0].content == A2
    assert plan.def_files == ("l",)
    assert plan.instance_id is None
