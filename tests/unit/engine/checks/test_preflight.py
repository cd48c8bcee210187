# SPDX-License-Identifier: Apache-2.0
"""What is checked before an update, by value."""

from __future__ import annotations

import pytest

from container_update.engine.checks import image_check, preflight
from container_update.model.cluster import ClusterContext
from container_update.model.errors import (
    ClusterError,
    NextStep,
    PackageError,
    PlanError,
    UpdateInProgressError,
)
from container_update.model.objects import ObjectKey
from container_update.model.operation import Status
from container_update.package.findings import Finding
from tests.unit.fakes import FakeCluster

ERROR = Finding.error("a.yaml", "is wrong", "correct it")
NOTE = Finding.note("b.yaml", "is odd", "look at it")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("v1.36.2", "Kubernetes v1.36.2"),
        ("v1.36.0-eks-1", "Kubernetes v1.36.0-eks-1"),
        ("v1.22.0", "Kubernetes v1.22.0; the tests are made with 1.36"),
        ("1.40", "Kubernetes 1.40; the tests are made with 1.36"),
        ("someone's", "Kubernetes someone's; the tests are made with 1.36"),
    ],
)
def test_the_servers_version_is_told_with_the_one_of_the_tests(text: str, told: str) -> None:
    assert preflight.version(text) == told


@pytest.mark.parametrize("text", ["v1.21.14", "v1.9.0", "v0.36.0"])
def test_a_server_without_policy_v1_is_too_old(text: str) -> None:
    with pytest.raises(PlanError, match=f"{text}: expected 1.22 or later"):
        preflight.version(text)


def test_a_package_with_errors_is_told_with_the_first_one() -> None:
    assert preflight.package("new", [NOTE]) == "new: no errors, 1 other finding"
    with pytest.raises(PackageError, match=r"^new: error: a.yaml: is wrong.*\(and 1 more error\)"):
        preflight.package("new", [ERROR, NOTE, ERROR])


def test_a_namespace_that_is_missing_or_cannot_be_read_is_told() -> None:
    cluster = FakeCluster({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})
    assert preflight.namespace("ns", cluster) == "ns exists"
    with pytest.raises(PlanError, match="namespace nope does not exist"):
        preflight.namespace("nope", cluster)

    def forbid(verb: str, key: ObjectKey) -> None:
        raise ClusterError("no", status=status)

    cluster.hooks.append(forbid)
    status = 403
    assert "may not read namespaces" in preflight.namespace("ns", cluster)
    status = 500
    with pytest.raises(ClusterError):
        preflight.namespace("ns", cluster)


@pytest.mark.parametrize(
    ("status", "step"),
    [
        (Status(None, "host-1", "since 10:00", expired=False), NextStep.WAIT),
        (Status(None, "host-1", "since 10:00", expired=True), NextStep.RESUME_OR_ROLLBACK),
    ],
    ids=["runs", "interrupted"],
)
def test_an_operation_that_has_not_ended_is_a_problem(status: Status, step: NextStep) -> None:
    with pytest.raises(UpdateInProgressError, match=r"^Held by host-1 since 10:00") as raised:
        preflight.idle(status)
    assert raised.value.next_step is step


@pytest.mark.parametrize(
    ("context", "told"),
    [
        (
            ClusterContext("https://k:1", "east", "c", "admin", "cnf"),
            "context east, cluster c, https://k:1, user admin, namespace cnf",
        ),
        (
            ClusterContext("https://k:1", "east", "c", None, "cnf"),
            "context east, cluster c, https://k:1, user (none), namespace cnf",
        ),
        (
            ClusterContext("https://k:1", namespace="cnf"),
            "the service account of this pod, https://k:1, namespace cnf",
        ),
    ],
    ids=["user", "no user", "pod"],
)
def test_the_cluster_is_told_with_its_names(context: ClusterContext, told: str) -> None:
    assert preflight.place(context) == told


def test_a_check_says_in_values_what_is_in_order_or_what_is_wrong() -> None:
    def fails() -> str:
        raise PlanError("is wrong")

    assert preflight.check("a", lambda: "fine").as_dict() == {
        "check": "a",
        "ok": True,
        "message": "fine",
    }
    failed = preflight.check("a", fails).as_dict()
    assert (failed["ok"], failed["message"], failed["error"]) == (False, "is wrong", "PlanError")


@pytest.mark.parametrize(
    ("reason", "message", "told"),
    [
        ("InvalidImageName", "", "not found"),
        ("ErrImagePull", "manifest unknown", "not found"),
        ("ErrImagePull", "unexpected status: 404 Not Found", "not found"),
        ("ErrImagePull", "not found, or authorization failed", "not allowed"),
        ("ErrImagePull", "pull access denied", "not allowed"),
        ("ErrImagePull", "i/o timeout", ""),
    ],
)
def test_what_a_kubelet_says_of_a_pull_is_final_or_may_pass(
    reason: str, message: str, told: str
) -> None:
    assert image_check.lasting_cause(reason, [message]) == told
