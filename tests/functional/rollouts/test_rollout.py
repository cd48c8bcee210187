# SPDX-License-Identifier: Apache-2.0
"""A third-party kind of workload is one class: restarted, awaited, recorded and undone.

Argo Rollouts' Rollout: known by a plugin that is installed, as a distribution with an entry point,
for these tests only; on a real cluster it takes Argo Rollouts there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from container_update import PlanError, UpdateFailedError
from tests import packages, plugins
from tests.functional import role
from tests.functional.cnf import BAD_IMAGE, IMAGES, Cnf
from tests.functional.conftest import REAL, until
from tests.functional.manifests import ENV, config_map, workload
from tests.functional.rollouts.controller import DEFINITION, HASH_LABEL
from tests.internals.core import (
    Action,
    Baseline,
    Collection,
    Json,
    ObjectKey,
    RolloutState,
    StepState,
    is_deleting,
    registry,
    samples,
)

PLUGIN, NAME = samples.root() / "08-custom-resource/plugin", "container_update_argo_rollouts"
OLD, NEW = config_map(setting="old", other="old"), config_map(setting="new", other="old")
OTHER = config_map(setting="old", other="new")


def rollout(image: str = IMAGES[0], spec: str = "") -> str:
    text = workload("Deployment", "w", image=image, container=ENV, replicas=2, spec=spec)
    return text.replace("apps/v1", "argoproj.io/v1alpha1").replace("Deployment", "Rollout")


def is_established(definition: Json | None) -> bool:
    """Tell whether the server serves what was defined."""
    conditions = ((definition or {}).get("status") or {}).get("conditions") or ()
    return any(entry["type"] == "Established" for entry in conditions)


@pytest.fixture(autouse=True)
def served(cnf: Cnf) -> None:
    """The cluster has the kind, and the account that updates may read and write it."""
    definition = ObjectKey.of(DEFINITION)
    if cnf.admin.get(definition) is None:
        if REAL:
            pytest.skip("the cluster has no Argo Rollouts")
        cnf.admin.create(DEFINITION)
    until(lambda: is_established(cnf.admin.get(definition)))
    bound = cnf.admin.get(role.key(cnf.namespace))
    assert bound is not None
    verbs = ["get", "list", "watch", "update"]
    rule = {"apiGroups": ["argoproj.io"], "resources": ["rollouts"], "verbs": verbs}
    cnf.admin.replace({**bound, "rules": [*bound["rules"], rule]})


@pytest.fixture(scope="module")
def distribution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin of the sample, as a distribution."""
    module = (PLUGIN / f"{NAME}.py").read_text()
    entry_point = f"[{registry.ENTRY_POINTS}]\nRollout = {NAME}:Rollout\n"
    return plugins.distribution(tmp_path_factory.mktemp("plugin"), entry_point, **{NAME: module})


@pytest.fixture
def plugin(distribution: Path) -> Iterator[None]:
    """Install the plugin for the length of a test."""
    with plugins.installed(distribution):
        yield


def pods(cnf: Cnf) -> dict[str, Json]:
    """Return the Rollout's pods by UID, selected by its controller's label."""
    listed = cnf.admin.list(Collection("", "Pod", cnf.namespace)).items
    return {
        pod["metadata"]["uid"]: pod
        for pod in listed
        if HASH_LABEL in pod["metadata"]["labels"] and not is_deleting(pod)
    }


def images(pods: Mapping[str, Json]) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in pods.values()}


def live(cnf: Cnf) -> Json:
    body = cnf.admin.get(ObjectKey("argoproj.io", "Rollout", cnf.namespace, "w"))
    assert body is not None
    return body


def template(cnf: Cnf) -> Any:
    return live(cnf)["spec"]["template"]


@pytest.mark.usefixtures("plugin")
def test_a_rollout_restarts_for_a_changed_key_and_its_pods_are_recorded(cnf: Cnf) -> None:
    cnf.instantiate(cm=OLD, w=rollout())
    before = pods(cnf)
    assert len(before) == 2

    vnfd = packages.with_vnfd({"simple.yaml": packages.flavour("simple", {"VDU1": "w"})})
    files = {"Files/cm.yaml": NEW, "Files/w.yaml": rollout()}
    new = packages.write_folder(cnf.folder / "with-vnfd", {**vnfd, **files})
    outcome = cnf.update_to(new, def_files=tuple(files))

    assert [(r.step.action, r.state) for r in outcome.results] == [
        (Action.REPLACE, StepState.DONE), (Action.ROLL, StepState.DONE)
    ]  # fmt: skip
    after = pods(cnf)
    assert len(after) == 2
    assert not set(before) & set(after)
    names = {pod["metadata"]["name"] for pod in after.values()}
    key = ObjectKey("argoproj.io", "Rollout", cnf.namespace, "w")
    assert set(outcome.restarted[key]) == names
    assert {(v.vdu_id, v.pod_name, v.workload_kind) for v in outcome.vnfcs} == {
        ("VDU1", name, "Rollout") for name in names
    }


@pytest.mark.usefixtures("plugin")
def test_another_key_does_not_restart_a_rollout(cnf: Cnf) -> None:
    cnf.instantiate(cm=OLD, w=rollout())
    before = pods(cnf)
    outcome = cnf.update({"cm": OTHER, "w": rollout()})
    assert [result.step.key.kind for result in outcome.results] == ["ConfigMap"]
    assert set(pods(cnf)) == set(before)


@pytest.mark.usefixtures("plugin")
def test_an_image_that_does_not_exist_is_undone(cnf: Cnf) -> None:
    cnf.instantiate(cm=OLD, w=rollout())
    before, spec = pods(cnf), template(cnf)

    with pytest.raises(UpdateFailedError, match=r"ErrImagePull|ImagePullBackOff") as failed:
        cnf.update({"cm": NEW, "w": rollout(image=BAD_IMAGE)})

    assert failed.value.outcome is not None
    assert {result.state for result in failed.value.outcome.results} == {StepState.UNDONE}
    assert template(cnf) == spec
    assert live(cnf)["status"]["phase"] == "Healthy"
    after = pods(cnf)
    assert images(after) == {IMAGES[0]}
    assert len(after) == len(before)


@pytest.mark.usefixtures("plugin")
def test_a_paused_rollout_is_refused_before_anything_is_written(cnf: Cnf) -> None:
    cnf.instantiate(cm=OLD, w=rollout())
    body = live(cnf)
    cnf.admin.replace({**body, "spec": {**body["spec"], "paused": True}})
    with pytest.raises(PlanError, match=r"Rollout .*/w: is paused.*spec\.paused to false"):
        cnf.update({"cm": NEW, "w": rollout()})
    assert cnf.get("ConfigMap", "cm")["data"]["setting"] == "old"


@pytest.mark.usefixtures("plugin")
def test_a_rollout_step_that_waits_for_a_person_is_reported(cnf: Cnf) -> None:
    cnf.instantiate(cm=OLD, w=rollout())
    body = live(cnf)
    steps = [{"setWeight": 20}, {"pause": {}}, {"pause": {"duration": "1s"}}]
    cnf.admin.replace({**body, "spec": {**body["spec"], "strategy": {"canary": {"steps": steps}}}})
    plan = cnf.plan({"cm": NEW, "w": rollout()})
    assert [note.text for note in plan.notes] == [
        "its canary step 1 waits until it is promoted: promote it in time"
    ]


def test_without_the_plugin_a_rollout_is_reported_and_left_alone(
    cnf: Cnf, distribution: Path
) -> None:
    with plugins.installed(distribution):
        cnf.instantiate(cm=OLD, w=rollout())
    before = pods(cnf)
    outcome = cnf.update({"cm": NEW, "w": rollout()})
    (note,) = outcome.plan.notes
    assert "uses key setting of ConfigMap" in note.text
    assert "the kind Rollout is not known" in note.text
    assert set(pods(cnf)) == set(before)


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize(
    ("observed", "state"), [("2", RolloutState.FAILED), ("1", RolloutState.PROGRESSING)]
)  # fmt: skip
def test_the_controllers_status_is_final_once_it_observed_the_change(
    observed: str, state: RolloutState
) -> None:
    body = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "w", "generation": 2},
        "spec": {"replicas": 1},
        "status": {"phase": "Degraded", "message": "too slow", "observedGeneration": observed},
    }
    kind = registry.kind_of_body(body)
    assert kind is not None
    judged = kind.readiness(body, [], Baseline())
    assert judged.state is state
    assert (judged.message == "Degraded: too slow") is (state is RolloutState.FAILED)
