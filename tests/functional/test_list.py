# SPDX-License-Identifier: Apache-2.0
"""``list``: which VNF instances there are, what they run from, and what is under way."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
import yaml

from container_update import ContainerUpdateError, Options, connect, install, terminate
from tests.functional.cnf import BAD_IMAGE, Cnf
from tests.functional.conftest import overwrite, until
from tests.functional.manifests import workload
from tests.internals.core import ObjectKey, main


def listed(cnf: Cnf, kubeconfig: str, *more: str) -> list[dict[str, Any]]:
    """Return what the command lists of the CNF's namespace."""
    out = io.StringIO()
    assert main(["list", "--kubeconfig", kubeconfig, *more, "-o", "json"], out) == 0
    instances: list[dict[str, Any]] = json.loads(out.getvalue())["instances"]
    return [each for each in instances if each["namespace"] == cnf.namespace]


def said(cnf: Cnf, kubeconfig: str, *words: str) -> str:
    """Return what a command about the CNF's namespace writes as text."""
    out = io.StringIO()
    assert main([*words, "-n", cnf.namespace, "--kubeconfig", kubeconfig], out) in (0, 2)
    return out.getvalue()


def test_each_instance_is_listed_with_its_package_its_pods_and_what_is_under_way(
    cnf: Cnf, admin_kubeconfig: str, caplog: pytest.LogCaptureFixture
) -> None:
    here: dict[str, Any] = {"namespace": cnf.namespace, "options": cnf.options}
    assert listed(cnf, admin_kubeconfig, "-n", cnf.namespace) == []
    for verb in ("list", "status"):
        told = said(cnf, admin_kubeconfig, verb)
        assert told == f"No VNF instance is known in namespace {cnf.namespace}.\n"
    good = cnf.package({"w.yaml": workload("Deployment", "a", replicas=2)})
    bad = cnf.package({"w.yaml": workload("Deployment", "b", image=BAD_IMAGE)})
    install(good, cnf.admin, instance_id="one", **here)
    with pytest.raises(ContainerUpdateError):
        install(bad, cnf.admin, instance_id="two", leave_failed=True, **here)

    one, two = listed(cnf, admin_kubeconfig, "--all-namespaces")
    assert (one["instanceId"], one["ready"], one["desired"]) == ("one", 2, 2)
    assert (one["operation"], one["result"], one["underWay"]) == ("install", "done", "")
    assert (one["state"], two["state"]) == ("ready", "interrupted")
    assert one["created"][:19] <= one["ended"][:19]
    assert good.endswith(one["package"])
    assert (two["instanceId"], two["package"], two["result"]) == ("two", "", None)
    assert "not finished" in two["underWay"]
    assert [one] == listed(cnf, admin_kubeconfig, "-n", cnf.namespace, "--instance-id", "one")
    with pytest.raises(ContainerUpdateError):
        install(bad, cnf.admin, instance_id="undone", **here)
    assert [one, two] == listed(cnf, admin_kubeconfig, "-n", cnf.namespace)

    with connect(admin_kubeconfig, options=Options(journal_key="of another host")) as other:
        foreign = cnf.package({"w.yaml": workload("Deployment", "c")})
        install(foreign, other, instance_id="three", **here)
        more = cnf.package({"w.yaml": workload("Deployment", "d")})
        install(more, other, instance_id="four", **here)
    caplog.clear()
    fourth, first, third, second = listed(cnf, admin_kubeconfig, "-n", cnf.namespace)
    assert [first, second] == [one, two]
    assert (third["instanceId"], third["package"], third["result"]) == ("three", "", None)
    assert third["state"] == "unknown"
    assert caplog.text.count(": expected a revision") == 1
    assert "four.v1: expected a revision" in caplog.text
    assert "; 1 more instances have untrusted records" in caplog.text

    terminate(None, cnf.admin, instance_id="one", **here)
    assert [fourth, third, two] == listed(cnf, admin_kubeconfig, "-n", cnf.namespace)


def test_an_instance_with_a_pod_in_trouble_is_degraded_although_the_old_pod_is_ready(
    cnf: Cnf, admin_kubeconfig: str
) -> None:
    package = cnf.package({"w.yaml": workload("Deployment", "a")})
    install(package, cnf.admin, namespace=cnf.namespace, instance_id="one", options=cnf.options)
    where = ("-n", cnf.namespace)
    (good,) = listed(cnf, admin_kubeconfig, *where)
    assert (good["state"], good["ready"]) == ("ready", 1)
    key = ObjectKey("apps", "Deployment", cnf.namespace, "a")
    broken = cnf.admin.get(key)
    assert broken
    broken["spec"]["template"]["spec"]["containers"][0]["image"] = BAD_IMAGE
    overwrite(cnf.admin, broken)
    until(lambda: listed(cnf, admin_kubeconfig, *where)[0]["state"] == "degraded")
    table = io.StringIO()
    assert main(["list", "--kubeconfig", admin_kubeconfig, *where], table) == 0
    head, row = table.getvalue().splitlines()
    assert head.split()[:6] == ["NAMESPACE", "INSTANCE", "PACKAGE", "STATE", "READY", "AGE"]
    assert row.split()[3:5] == ["degraded", "1/1"]


def test_an_instance_whose_workload_was_deleted_by_hand_is_degraded(
    cnf: Cnf, admin_kubeconfig: str
) -> None:
    package = cnf.package({"w.yaml": workload("Deployment", "a", replicas=2)})
    job = cnf.package({"j.yaml": workload("Job", "j")})
    for name, each in {"one": package, "two": job}.items():
        install(each, cnf.admin, namespace=cnf.namespace, instance_id=name, options=cnf.options)
    cnf.admin.delete(ObjectKey("apps", "Deployment", cnf.namespace, "a"))
    cnf.admin.delete(ObjectKey("batch", "Job", cnf.namespace, "j"))
    one, two = listed(cnf, admin_kubeconfig, "-n", cnf.namespace)
    assert (one["state"], one["ready"], one["desired"]) == ("degraded", 0, 2)
    assert two["state"] == "ready", "a Job is not missed once it has run"
    table = said(cnf, admin_kubeconfig, "status", "--instance-id", "one")
    assert f"Deployment {cnf.namespace}/a  0/2" in table
    assert "\n    is not in the cluster\n" in table


def test_the_state_of_a_vnf_that_another_program_created_is_shown_after_an_update_was_undone(
    cnf: Cnf, admin_kubeconfig: str
) -> None:
    old = cnf.package({"w.yaml": workload("Deployment", "a")})
    new = cnf.package({"w.yaml": workload("Deployment", "a", image=BAD_IMAGE)})
    body = yaml.safe_load(workload("Deployment", "a"))
    cnf.admin.create({**body, "metadata": {**body["metadata"], "namespace": cnf.namespace}})
    command = ["apply", old, new, "--yes", "-n", cnf.namespace, "--kubeconfig", admin_kubeconfig]
    assert main([*command, "--grace-period", "100ms"], io.StringIO()) == 7
    assert f"Deployment {cnf.namespace}/a  1/1" in said(cnf, admin_kubeconfig, "status")


def test_the_history_of_all_namespaces_names_the_instance_of_each_operation(
    cnf: Cnf, admin_kubeconfig: str
) -> None:
    package = cnf.package({"w.yaml": workload("Deployment", "a")})
    for name in ("one", "two"):
        install(
            cnf.package({"w.yaml": workload("Deployment", name)}) if name == "two" else package,
            cnf.admin, namespace=cnf.namespace, instance_id=name, options=cnf.options,
        )  # fmt: skip
    where = ("--kubeconfig", admin_kubeconfig)
    out = io.StringIO()
    assert main(["history", "-A", *where, "-o", "json"], out) == 0
    kept = [
        (each["instanceId"], each["type"], each["result"])
        for each in json.loads(out.getvalue())["revisions"]
        if each["namespace"] == cnf.namespace
    ]
    assert sorted(kept) == [("one", "install", "done"), ("two", "install", "done")]
    table = io.StringIO()
    assert main(["history", "-A", *where], table) == 0
    head, *rows = table.getvalue().splitlines()
    assert head.split()[:3] == ["NAMESPACE", "INSTANCE", "REV"]
    assert sorted(row.split()[:3] for row in rows if cnf.namespace in row) == [
        [cnf.namespace, "one", "1"],
        [cnf.namespace, "two", "1"],
    ]
    assert main(["history", "-A", "--last", *where]) == 64
