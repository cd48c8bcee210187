# SPDX-License-Identifier: Apache-2.0
"""An object of a kind that is not known is never restarted, and never passed over in silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from container_update import plan_update
from container_update.model.errors import ClusterError
from container_update.model.objects import Json, ObjectKey
from container_update.model.plan import Plan
from container_update.model.requests import UpdateRequest
from tests.unit.build import config_map, live
from tests.unit.fakes import FakeCluster

USES_A: Json = {
    "name": "main",
    "image": "app:1",
    "env": [{"name": "E", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "a"}}}],
}
OLD, NEW = config_map(data={"a": "1", "b": "1"}), config_map(data={"a": "2", "b": "1"})
NOTE = (
    "Rollout ns/r: env E of container main uses key a of ConfigMap ns/cm, which changed; the kind "
    "Rollout is not known: restart it yourself, or install a plugin for container_update.workloads"
)


def rollout(*containers: Any, **metadata: Any) -> Json:
    return {
        "apiVersion": "example.org/v1",
        "kind": "Rollout",
        "metadata": {"name": "r", **metadata},
        "spec": {"template": {"spec": {"containers": list(containers)}}},
    }


def planned(folder: Path, manifest: Json, cluster: FakeCluster) -> Plan:
    for name, config in (("old", OLD), ("new", NEW)):
        path = folder / name / "Files/cnf.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(yaml.safe_dump_all([config, manifest]))
    old, new = str(folder / "old"), str(folder / "new")
    return plan_update(UpdateRequest(old, new, namespace="ns"), cluster)


def notes(plan: Plan) -> list[str]:
    assert [str(step.key) for step in plan.steps] == ["ConfigMap ns/cm"]
    return [str(note) for note in plan.notes]


def test_a_live_object_that_uses_a_changed_key_gets_a_note(tmp_path: Path) -> None:
    body = rollout(USES_A)
    assert notes(planned(tmp_path, body, FakeCluster(live(OLD), live(body)))) == [NOTE]


def test_what_is_live_counts_not_the_manifest(tmp_path: Path) -> None:
    cluster = FakeCluster(live(OLD), live(rollout({"name": "main", "image": "app:1"})))
    assert notes(planned(tmp_path, rollout(USES_A), cluster)) == []


def test_another_key_is_no_reason_for_a_note(tmp_path: Path) -> None:
    body = yaml.safe_load(yaml.safe_dump(rollout(USES_A)).replace("key: a", "key: b"))
    assert notes(planned(tmp_path, body, FakeCluster(live(OLD), live(body)))) == []


def test_its_annotation_can_opt_out(tmp_path: Path) -> None:
    body = rollout(USES_A, annotations={"container-update/on-config-change": "ignore"})
    (note,) = notes(planned(tmp_path, body, FakeCluster(live(OLD), live(body))))
    assert note == (
        "Rollout ns/r: its annotation says ignore, so env E of container main does not restart it"
    )


@pytest.mark.parametrize(("status", "expected"), [(403, [NOTE]), (None, [])])
def test_where_it_cannot_be_read_the_manifest_counts_unless_the_kind_is_not_there(
    tmp_path: Path, status: int | None, expected: list[str]
) -> None:
    cluster = FakeCluster(live(OLD))

    def refuse(verb: str, key: ObjectKey) -> None:
        if status and (verb, key.kind) == ("get", "Rollout"):
            raise ClusterError("refused", status=status)

    cluster.hooks.append(refuse)
    assert notes(planned(tmp_path, rollout(USES_A), cluster)) == expected


def test_another_refusal_is_an_error(tmp_path: Path) -> None:
    cluster = FakeCluster(live(OLD))

    def refuse(verb: str, key: ObjectKey) -> None:
        if (verb, key.kind) == ("get", "Rollout"):
            raise ClusterError("refused", status=401)

    cluster.hooks.append(refuse)
    with pytest.raises(ClusterError, match="refused"):
        planned(tmp_path, rollout(USES_A), cluster)


@pytest.mark.parametrize(
    "containers",
    [
        pytest.param(["main"], id="texts"),
        pytest.param([{"name": "c", "env": {"A": "b"}}], id="env as a mapping"),
        pytest.param([{"name": "c", "env": ["A=b"]}], id="env as texts"),
        pytest.param([{"name": "c", "envFrom": 1}], id="envFrom as a number"),
    ],
)
def test_a_kind_that_means_something_else_by_those_fields_is_left_alone(
    tmp_path: Path, containers: list[Any]
) -> None:
    body = rollout(*containers)
    assert notes(planned(tmp_path, body, FakeCluster(live(OLD), live(body)))) == []


def test_an_object_without_a_pod_template_is_not_read(tmp_path: Path) -> None:
    thing = {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "t"}}
    cluster = FakeCluster(live(OLD))
    assert notes(planned(tmp_path, thing, cluster)) == []
    assert not [call for call in cluster.calls if "Thing" in call]
