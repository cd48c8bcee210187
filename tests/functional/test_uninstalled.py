# SPDX-License-Identifier: Apache-2.0
"""What is kept of an instance that is gone: which operations it had, by whom, and why."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from container_update import Options, UpdateRequest, connect, history, install, terminate, update
from tests.functional.cnf import Cnf
from tests.functional.manifests import workload
from tests.internals.core import Collection, Json, main


def said(cnf: Cnf, kubeconfig: str, *words: str, status: int = 0) -> Any:
    """Return the document that a command about the namespace writes."""
    out = io.StringIO()
    command = [*words, "--kubeconfig", kubeconfig, "-n", cnf.namespace, "-o", "json"]
    assert main(command, out) == status, out.getvalue()
    return json.loads(out.getvalue())


def gone(cnf: Cnf, kubeconfig: str, *more: str) -> list[tuple[str, str, str]]:
    """Return instance, kind and reason of the operations of the instances that are gone."""
    found = said(cnf, kubeconfig, "history", "--uninstalled", *more)["revisions"]
    return [(each["instanceId"], each["type"], each["why"]) for each in found]


def secrets(cnf: Cnf) -> list[Json]:
    listed = cnf.admin.list(Collection("", "Secret", cnf.namespace)).items
    return [body for body in listed if body["metadata"]["name"].startswith("container-update")]


@pytest.fixture
def packages(cnf: Cnf) -> list[str]:
    images = ("nginx:1.27-alpine", "nginx:1.28-alpine")
    return [cnf.package({"w.yaml": workload("Deployment", "a", image=image)}) for image in images]


@pytest.fixture
def where(cnf: Cnf) -> dict[str, Any]:
    return {"namespace": cnf.namespace, "instance_id": "one"}


def test_who_removed_an_instance_and_why_is_shown_after_it_and_is_not_the_history_of_the_next_one(
    cnf: Cnf, packages: list[str], where: dict[str, Any], admin_kubeconfig: str
) -> None:
    old, new = packages
    install(old, cnf.admin, cnf.options, **where)
    update(UpdateRequest("", new, **where), cnf.admin, cnf.options)
    assert said(cnf, admin_kubeconfig, "list", "--uninstalled")["instances"] == []
    command = ["uninstall", "--yes", "-m", "the site is closed", "--instance-id", "one"]
    assert said(cnf, admin_kubeconfig, *command)
    operations = [("one", "uninstall", "the site is closed"), ("one", "update", "")]
    assert gone(cnf, admin_kubeconfig) == [*operations, ("one", "install", "")]
    other = ("history", "--uninstalled", "--instance-id", "two")
    assert said(cnf, admin_kubeconfig, *other, status=2)["revisions"] == []
    (instance,) = said(cnf, admin_kubeconfig, "list", "--uninstalled")["instances"]
    assert (instance["state"], instance["result"]) == ("uninstalled", "done")
    assert instance["underWay"].endswith(": the site is closed")
    assert said(cnf, admin_kubeconfig, "list")["instances"] == []
    assert history(cnf.admin, cnf.options, **where) == ()
    address = f"--kubeconfig {admin_kubeconfig} --namespace {cnf.namespace}"
    hint = f". What was uninstalled: container-update list --uninstalled {address}\n"
    for verb in ("list", "status", "history"):
        told = io.StringIO()
        main([verb, "-n", cnf.namespace, "--kubeconfig", admin_kubeconfig], told)
        assert told.getvalue().endswith(hint)

    install(old, cnf.admin, cnf.options, **where)
    (revision,) = history(cnf.admin, cnf.options, **where)
    assert (revision.number, revision.origin.kind) == (4, "install"), "numbers go on"
    assert len(gone(cnf, admin_kubeconfig)) == 3
    terminate(None, cnf.admin, cnf.options, **where)
    assert [kind for _, kind, _ in gone(cnf, admin_kubeconfig)] == ["uninstall", "install"]
    (kept,) = secrets(cnf)
    assert "container-update/kept" not in kept["metadata"]["labels"]


def test_it_holds_nothing_of_the_objects_and_is_no_more_than_ten_instances(
    cnf: Cnf, packages: list[str], where: dict[str, Any], admin_kubeconfig: str
) -> None:
    for number in range(12):
        where["instance_id"] = f"i{number:02}"
        install(packages[0], cnf.admin, cnf.options, **where)
        terminate(None, cnf.admin, cnf.options, **where)
    kept = secrets(cnf)
    assert len(kept) == 10
    assert {each["metadata"]["annotations"]["container-update/instance"] for each in kept} > {
        "i11",
        "i10",
    }
    assert sum(len(json.dumps(body)) for body in kept) < 60_000


@pytest.mark.parametrize("how", ["no history", "of a VNFM"])
def test_it_is_not_kept_where_no_history_is(
    how: str, cnf: Cnf, packages: list[str], where: dict[str, Any]
) -> None:
    options = Options(history=0) if how == "no history" else cnf.options.for_vnfm()
    install(packages[0], cnf.admin, options, **where)
    terminate(packages[0], cnf.admin, options, **where)
    assert secrets(cnf) == []


def test_one_of_another_key_is_named_in_a_warning_and_left_out(
    cnf: Cnf,
    packages: list[str],
    where: dict[str, Any],
    admin_kubeconfig: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with connect(admin_kubeconfig, options=Options(journal_key="of another host")) as other:
        install(packages[0], other, cnf.options, **where)
        terminate(None, other, cnf.options, **where)
    assert said(cnf, admin_kubeconfig, "list", "--uninstalled")["instances"] == []
    assert "what is kept of an instance that is gone" in caplog.text
