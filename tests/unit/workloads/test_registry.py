# SPDX-License-Identifier: Apache-2.0
"""Which kinds are known, what plugins add, and what is said of a plugin that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from container_update.model.errors import ContainerUpdateError, PlanError
from container_update.model.objects import Collection, ObjectKey
from container_update.workloads import registry
from tests import plugins

KIND = """
from container_update.workloads.kind import WorkloadKind

class Other(WorkloadKind):
    group, kind = "{group}", "{kind}"
    replica_set_label = "hash"
"""
OTHER = KIND.format(group="example.org", kind="Other")
KEY = ObjectKey("example.org", "Other", "ns", "w")


def entries(*targets: str) -> str:
    lines = "".join(f"kind{number} = {target}\n" for number, target in enumerate(targets))
    return f"[{registry.ENTRY_POINTS}]\n{lines}"


@pytest.mark.parametrize(
    ("group", "kind", "is_known"),
    [
        ("", "Pod", True),
        ("apps", "Deployment", True),
        ("apps", "DaemonSet", True),
        ("apps", "ReplicaSet", True),
        ("apps", "StatefulSet", True),
        ("batch", "Job", True),
        ("batch", "CronJob", True),
        ("example.org", "Deployment", False),
        ("apps", "Pod", False),
        ("", "Service", False),
        ("", "ConfigMap", False),
    ],
)
def test_a_kind_is_known_by_group_and_kind(group: str, kind: str, is_known: bool) -> None:
    key = ObjectKey(group, kind, "ns", "w")
    assert registry.is_workload(key) is is_known
    found = registry.kind_of(key)
    assert (found is not None) is is_known
    assert found is None or (found.group, found.kind) == (group, kind)
    version = f"{group}/v1" if group else "v1"
    assert registry.kind_of_body({"apiVersion": version, "kind": kind}) is found


def test_a_plugin_adds_a_kind_while_it_is_installed(tmp_path: Path) -> None:
    folder = plugins.distribution(tmp_path / "d", entries("other_kind:Other"), other_kind=OTHER)
    assert not registry.is_workload(KEY)
    with plugins.installed(folder):
        kind = registry.known_kind(KEY)
        assert kind.watched_collections("ns") == {
            Collection("example.org", "Other", "ns"),
            Collection("apps", "ReplicaSet", "ns"),
            Collection("", "Pod", "ns"),
        }
        assert kind.controller_of_pods("w", {"hash": "5d4f"}) == ("ReplicaSet", "w-5d4f")
    assert not registry.is_workload(KEY)


def test_a_plan_with_a_kind_that_is_not_known_here_is_refused() -> None:
    expected = (
        "Other ns/w: expected a known kind of workload, found Other of the API group example.org: "
        "install the plugin for container_update.workloads that the plan was made with"
    )
    with pytest.raises(PlanError) as raised:
        registry.known_kind(KEY)
    assert str(raised.value) == expected


@pytest.mark.parametrize(
    ("text", "targets", "message"),
    [
        pytest.param(
            "import nothing_of_that_name", ["wrong_kind:Other"],
            "wrong_kind:Other.* cannot be loaded: No module named 'nothing_of_that_name'",
            id="cannot be imported",
        ),
        pytest.param(
            OTHER, ["wrong_kind:Missing"], "wrong_kind:Missing.* cannot be loaded",
            id="does not have the class",
        ),
        pytest.param(
            "Other = 1", ["wrong_kind:Other"],
            "wrong_kind:Other.*: expected a subclass of container_update.workloads.kind."
            "WorkloadKind, found 1",
            id="is no kind of workload",
        ),
        pytest.param(
            KIND.format(group="apps", kind="Deployment"), ["wrong_kind:Other"],
            "wrong_kind:Other.*: expected a kind that is not known yet, found Deployment of the "
            "API group apps",
            id="is for a kind of Kubernetes",
        ),
        pytest.param(
            OTHER, ["wrong_kind:Other", "wrong_kind:Other"],
            "wrong_kind:Other.*: expected a kind that is not known yet, found Other",
            id="is for the same kind as another",
        ),
    ],
)  # fmt: skip
def test_a_plugin_is_refused_by_its_name_that(
    tmp_path: Path, text: str, targets: list[str], message: str
) -> None:
    folder = plugins.distribution(tmp_path / "d", entries(*targets), wrong_kind=text)
    with plugins.installed(folder), pytest.raises(ContainerUpdateError, match=message):
        registry.is_workload(KEY)


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret", "Service"])
def test_no_plugin_is_loaded_for_what_runs_no_containers(tmp_path: Path, kind: str) -> None:
    broken = plugins.distribution(tmp_path / "d", entries("broken_kind:Other"), broken_kind="1 / 0")
    with plugins.installed(broken):
        assert not registry.is_workload(ObjectKey("", kind, "ns", "x"))
