# SPDX-License-Identifier: Apache-2.0
"""How each kind replaces its pods, and what an update leaves alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from container_update import UpdateFailedError, describe
from tests.functional.cnf import BAD_IMAGE, IMAGES, Cnf
from tests.functional.conftest import overwrite
from tests.functional.manifests import ENV, ENV_FROM, MOUNT, VOLUME, config_map, secret, workload
from tests.internals.core import (
    OPT_OUT_ANNOTATION,
    Action,
    Collection,
    Informer,
    Json,
    StepState,
    is_ready,
)
from tests.unit.fakes import Everything

OLD, NEW = config_map(setting="old"), config_map(setting="new")
ON_DELETE = "updateStrategy: {type: OnDelete}"


@contextmanager
def fewest_ready(cnf: Cnf, kind: str, name: str) -> Iterator[list[int]]:
    """Record the number of ready pods after each change while the block runs."""
    counts: list[int] = []
    live = cnf.get(kind, name)
    pods = Collection("", "Pod", cnf.namespace)
    finished = threading.Event()
    with Informer(cnf.cluster, Everything()) as informer:
        informer.list([pods])
        informer.watch([pods])

        def follow() -> None:
            while not finished.is_set():
                with informer.lock:
                    counts.append(sum(1 for pod in informer.pods_of(live) if is_ready(pod)))
                    informer.wait(0.05)

        thread = threading.Thread(target=follow)
        thread.start()
        try:
            yield counts
        finally:
            finished.set()
            thread.join()


def test_a_replica_set_of_four_always_has_three_ready(cnf: Cnf) -> None:
    cnf.instantiate(w=workload("ReplicaSet", replicas=4))
    before = cnf.pods("ReplicaSet", "w")
    with fewest_ready(cnf, "ReplicaSet", "w") as ready:
        cnf.update({"w": workload("ReplicaSet", replicas=4, image=IMAGES[1])})
    after = cnf.pods("ReplicaSet", "w")
    assert len(after) == 4
    assert not set(after) & set(before)
    assert {pod.image for pod in after.values()} == {IMAGES[1]}
    assert min(ready) >= 3


@pytest.mark.parametrize("kind", ["DaemonSet", "StatefulSet"])
def test_pods_of_an_on_delete_strategy_are_evicted_in_turn(cnf: Cnf, kind: str) -> None:
    cnf.instantiate(cm=OLD, w=workload(kind, container=ENV, spec=ON_DELETE, replicas=2))
    before = {pod.uid for pod in cnf.pods(kind, "w").values()}
    outcome = cnf.update(
        {"cm": NEW, "w": workload(kind, container=ENV, spec=ON_DELETE, replicas=2)}
    )
    assert outcome.results[1].step.action is Action.EVICT
    after = {pod.uid for pod in cnf.pods(kind, "w").values()}
    assert len(after) == len(before)
    assert not after & before


@pytest.mark.parametrize("first", [0, 5])
def test_a_partition_keeps_the_pods_below_it(cnf: Cnf, first: int) -> None:
    """It is counted from the first ordinal."""
    spec = f"""\
        ordinals: {{start: {first}}}
        updateStrategy: {{type: RollingUpdate, rollingUpdate: {{partition: 1}}}}
        """
    cnf.instantiate(w=workload("StatefulSet", spec=spec, replicas=2))
    before = cnf.pods("StatefulSet", "w")
    outcome = cnf.update({"w": workload("StatefulSet", spec=spec, replicas=2, image=IMAGES[1])})
    after = cnf.pods("StatefulSet", "w")
    assert after[f"w-{first}"] == before[f"w-{first}"]
    assert after[f"w-{first + 1}"].image == IMAGES[1]
    assert f"keeps the pods with ordinals below {first + 1} as" in str(outcome.plan.notes)
    assert "Plan: 1 to restart (1 pod)." in describe(outcome.plan)


@pytest.mark.parametrize(
    "strategy",
    [
        "strategy: {type: Recreate}",
        "strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}",
        "strategy: {rollingUpdate: {maxSurge: 2, maxUnavailable: 0}}",
        "minReadySeconds: 1",
    ],
)
def test_a_deployment_rolls_by_its_own_strategy(cnf: Cnf, strategy: str) -> None:
    cnf.instantiate(cm=OLD, w=workload("Deployment", container=ENV, spec=strategy, replicas=3))
    before = cnf.pods("Deployment", "w")
    cnf.update({"cm": NEW, "w": workload("Deployment", container=ENV, spec=strategy, replicas=3)})
    after = cnf.pods("Deployment", "w")
    assert len(after) == 3
    assert not set(after) & set(before)


def test_replicas_that_were_scaled_are_kept(cnf: Cnf) -> None:
    cnf.instantiate(w=workload("Deployment", replicas=1))
    live = cnf.get("Deployment", "w")
    live["spec"]["replicas"] = 3
    overwrite(cnf.admin, live)
    outcome = cnf.update({"w": workload("Deployment", replicas=2, image=IMAGES[1])})
    assert len(cnf.pods("Deployment", "w")) == 3
    assert any("spec.replicas differs" in str(note) for note in outcome.plan.ignored)


def test_a_deployment_without_replicas_is_updated_too(cnf: Cnf) -> None:
    cnf.instantiate(w=workload("Deployment", replicas=0))
    cnf.update({"w": workload("Deployment", replicas=0, image=IMAGES[1])})
    (container,) = cnf.get("Deployment", "w")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == IMAGES[1]


def test_a_cron_job_gets_a_new_template_and_a_job_is_reported(cnf: Cnf) -> None:
    cnf.instantiate(c=workload("CronJob", "c"), j=workload("Job", "j"))
    outcome = cnf.update(
        {"c": workload("CronJob", "c", image=IMAGES[1]), "j": workload("Job", "j", image=IMAGES[1])}
    )
    template = cnf.get("CronJob", "c")["spec"]["jobTemplate"]["spec"]["template"]
    assert template["spec"]["containers"][0]["image"] == IMAGES[1]
    noted = {note.key.kind: note.text for note in outcome.plan.notes}
    assert noted.keys() == {"CronJob", "Job"}
    assert "cannot change" in noted["Job"]


def test_a_config_map_and_a_secret_of_one_name_are_two_objects(cnf: Cnf) -> None:
    by_secret = ENV_FROM.replace("configMapRef", "secretRef")
    files = {
        "cm": config_map("cm", setting="old"),
        "sec": secret("cm", setting="same"),
        "a": workload("Pod", "a", container=ENV_FROM),
        "b": workload("Pod", "b", container=by_secret),
    }
    cnf.instantiate(**files)
    outcome = cnf.update({**files, "cm": config_map("cm", setting="new")})
    names = [result.step.key.name for result in outcome.results if not result.step.is_config]
    assert names == ["a"]


def test_a_new_optional_object_restarts_the_workloads_that_use_it(cnf: Cnf) -> None:
    optional = "envFrom: [{configMapRef: {name: late, optional: true}}]"
    files = {"w": workload("Deployment", container=optional)}
    cnf.instantiate(**files)
    before = cnf.pods("Deployment", "w")
    new = {**files, "late": config_map("late", setting="x")}
    outcome = cnf.update(new, config_paths=("Files/late.yaml",))
    assert not set(cnf.pods("Deployment", "w")) & set(before)
    assert outcome.plan.def_files == ("Files/w.yaml", "Files/late.yaml")


@pytest.mark.parametrize(
    ("choice", "use", "restarts"),
    [
        ("ignore", {"container": ENV}, False),
        ("reload", {"container": MOUNT, "pod": VOLUME}, False),
        ("reload", {"container": ENV}, True),
    ],
)
def test_an_annotation_excludes_a_workload(
    cnf: Cnf, choice: str, use: dict[str, str], restarts: bool
) -> None:
    metadata = f"annotations: {{{OPT_OUT_ANNOTATION}: {choice}}}"
    user = workload("Deployment", metadata=metadata, **use)
    cnf.instantiate(cm=OLD, w=user)
    before = cnf.pods("Deployment", "w")
    cnf.update({"cm": NEW, "w": user})
    assert cnf.get("ConfigMap", "cm")["data"] == {"setting": "new"}
    assert (cnf.pods("Deployment", "w") != before) is restarts


def test_an_annotation_of_no_effect_is_noted_once(cnf: Cnf) -> None:
    """Two containers use the configuration."""
    metadata = f"annotations: {{{OPT_OUT_ANNOTATION}: relaod}}"
    more = f"initContainers: [{{name: first, image: '{IMAGES[0]}', {ENV_FROM}}}]"
    user = workload("Deployment", metadata=metadata, container=ENV_FROM, pod=more)
    cnf.instantiate(cm=OLD, w=user)
    (note,) = cnf.plan({"cm": NEW, "w": user}).notes
    assert "is neither ignore nor reload" in str(note)


def test_a_secret_of_another_type_is_recreated(cnf: Cnf) -> None:
    basic = {"username": "u", "password": "p"}
    cnf.instantiate(sec=secret(**basic))
    cnf.update({"sec": secret(kind="kubernetes.io/basic-auth", **basic)})
    assert cnf.get("Secret", "sec")["type"] == "kubernetes.io/basic-auth"


def test_labels_and_annotations_of_live_objects_stay(cnf: Cnf) -> None:
    cnf.instantiate(cm=OLD)
    live = cnf.get("ConfigMap", "cm")
    live["metadata"]["annotations"] = {"who": "operator"}
    cnf.admin.replace(live)
    cnf.update({"cm": NEW})
    metadata: Json = cnf.get("ConfigMap", "cm")["metadata"]
    assert metadata["annotations"]["who"] == "operator"
    assert "tacker_vnf_instance_id" in metadata["labels"]


def test_a_recreated_pod_keeps_the_settings_of_its_live_spec(cnf: Cnf) -> None:
    cnf.instantiate(cm=OLD, w=workload("Pod", container=ENV, metadata="labels: {role: db}"))
    before = cnf.get("Pod", "w")
    cnf.update({"cm": NEW, "w": workload("Pod", container=ENV)})
    after = cnf.get("Pod", "w")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    tokens = [v for v in after["spec"]["volumes"] if v["name"].startswith("kube-api-access-")]
    assert len(tokens) == 1


def test_an_image_that_differs_only_in_the_cluster_is_reported_as_drift(cnf: Cnf) -> None:
    cnf.instantiate(w=workload("Deployment"))
    live = cnf.get("Deployment", "w")
    live["spec"]["template"]["spec"]["containers"][0]["image"] = IMAGES[1]
    overwrite(cnf.admin, live)
    plan = cnf.plan({"w": workload("Deployment")})
    assert plan.is_empty
    (note,) = plan.notes
    assert "drift" in note.text


LEAVES_PODS = [("ReplicaSet", ""), ("StatefulSet", ON_DELETE), ("DaemonSet", ON_DELETE)]
"""Kinds that replace no pod because of a new template."""


def set_finalizers(cnf: Cnf, name: str, finalizers: list[str]) -> None:
    body = cnf.get("Pod", name)
    overwrite(cnf.admin, {**body, "metadata": {**body["metadata"], "finalizers": finalizers}})


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet"])
def test_an_old_pod_that_only_a_finalizer_keeps_is_not_waited_for(cnf: Cnf, kind: str) -> None:
    cnf.instantiate(w=workload(kind, replicas=2))
    pod, *_ = cnf.pods(kind, "w")
    set_finalizers(cnf, pod, ["example.com/hold"])
    try:
        outcome = cnf.update({"w": workload(kind, replicas=2, image=IMAGES[1])})
        assert cnf.get("Pod", pod)["metadata"]["deletionTimestamp"]
    finally:
        set_finalizers(cnf, pod, [])
    assert {result.state for result in outcome.results} == {StepState.DONE}
    assert {each.image for each in cnf.pods(kind, "w").values()} == {IMAGES[1]}


def write_template(cnf: Cnf, kind: str, image: str) -> None:
    """Give the template of ``w`` another image, as another tool does."""
    live = cnf.get(kind, "w")
    live["spec"]["template"]["spec"]["containers"][0]["image"] = image
    overwrite(cnf.admin, live)


@pytest.mark.parametrize(("kind", "spec"), LEAVES_PODS)
def test_pods_that_another_tools_new_template_left_as_they_were_are_replaced(
    cnf: Cnf, kind: str, spec: str
) -> None:
    cnf.instantiate(w=workload(kind, spec=spec))
    write_template(cnf, kind, IMAGES[1])
    new = {"w": workload(kind, spec=spec, image=IMAGES[1])}
    (step,) = cnf.update(new).plan.steps
    assert [str(reason) for reason in step.reasons] == [
        f"container main: image {IMAGES[0]} -> {IMAGES[1]}"
    ]
    assert {pod.image for pod in cnf.pods(kind, "w").values()} == {IMAGES[1]}
    assert cnf.update(new).plan.is_empty


@pytest.mark.parametrize(("kind", "spec"), LEAVES_PODS)
def test_such_pods_get_new_configuration_in_the_same_restart(
    cnf: Cnf, kind: str, spec: str
) -> None:
    cnf.instantiate(cm=OLD, w=workload(kind, spec=spec, container=ENV))
    write_template(cnf, kind, IMAGES[1])
    before = cnf.pods(kind, "w")
    new = {"cm": NEW, "w": workload(kind, spec=spec, container=ENV, image=IMAGES[1])}
    _, step = cnf.update(new).plan.steps
    assert len(step.reasons) == 2
    after = cnf.pods(kind, "w")
    assert {pod.image for pod in after.values()} == {IMAGES[1]}
    assert not {pod.uid for pod in after.values()} & {pod.uid for pod in before.values()}
    assert cnf.update(new).plan.is_empty


@pytest.mark.parametrize(("kind", "spec"), LEAVES_PODS)
def test_where_such_pods_cannot_be_replaced_the_template_gets_back_what_they_run(
    cnf: Cnf, kind: str, spec: str
) -> None:
    cnf.instantiate(w=workload(kind, spec=spec))
    write_template(cnf, kind, BAD_IMAGE)
    new = {"w": workload(kind, spec=spec, image=BAD_IMAGE)}
    with pytest.raises(UpdateFailedError):
        cnf.update(new, replace(cnf.options, grace_period=0.5))
    live = cnf.get(kind, "w")
    assert live["spec"]["template"]["spec"]["containers"][0]["image"] == IMAGES[0]
    assert {pod.image for pod in cnf.pods(kind, "w").values()} == {IMAGES[0]}


def test_objects_stay_in_the_vnfms_namespace_whatever_their_manifests_say(cnf: Cnf) -> None:
    def elsewhere(text: str) -> str:
        return text.replace("metadata: {name: cm}", "metadata: {name: cm, namespace: elsewhere}")

    cnf.instantiate(cm=OLD, w=workload("Deployment", container=ENV))
    before = cnf.pods("Deployment", "w")
    files = {"cm": elsewhere(NEW), "w": workload("Deployment", container=ENV)}
    old = cnf.package({"cm.yaml": elsewhere(OLD), "w.yaml": files["w"]})
    cnf.old = old
    cnf.update(files, one_namespace=True)
    assert cnf.get("ConfigMap", "cm")["data"] == {"setting": "new"}
    assert not set(cnf.pods("Deployment", "w")) & set(before)
