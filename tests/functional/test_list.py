# SPDX-License-Identifier: Apache-2.0
"""``list``: which VNF instances there are, what they run from, and what is under way."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from container_update import ContainerUpdateError, Options, connect, install, terminate
from tests.functional.cnf import BAD_IMAGE, Cnf
from tests.functional.manifests import workload
from tests.internals.core import main


def listed(cnf: Cnf, kubeconfig: str, *more: str) -> list[dict[str, Any]]:
    """Return what the command lists of the CNF's namespace."""
    out = io.StringIO()
    assert main(["list", "--kubeconfig", kubeconfig, *more, "-o", "json"], out) == 0
    instances: list[dict[str, Any]] = json.loads(out.getvalue())["instances"]
    return [each for each in instances if each["namespace"] == cnf.namespace]


def test_each_instance_is_listed_with_its_package_its_pods_and_what_is_under_way(
    cnf: Cnf, admin_kubeconfig: str, caplog: pytest.LogCaptureFixture
) -> None:
    here: dict[str, Any] = {"namespace": cnf.namespace, "options": cnf.options}
    assert listed(cnf, admin_kubeconfig, "-n", cnf.namespace) == []
    good = cnf.package({"w.yaml": workload("Deployment", "a", replicas=2)})
    bad = cnf.package({"w.yaml": workload("Deployment", "b", image=BAD_IMAGE)})
    install(good, cnf.admin, instance_id="one", **here)
    with pytest.raises(ContainerUpdateError):
        install(bad, cnf.admin, instance_id="two", leave_failed=True, **here)

    one, two = listed(cnf, admin_kubeconfig, "--all-namespaces")
    assert (one["instanceId"], one["ready"], one["desired"]) == ("one", 2, 2)
    assert (one["operation"], one["result"], one["underWay"]) == ("install", "done", "")
    assert good.endswith(one["package"])
    assert (two["instanceId"], two["package"], two["result"]) == ("two", "", None)
    assert "not finished" in two["underWay"]
    assert [one] == listed(cnf, admin_kubeconfig, "-n", cnf.namespace, "--instance-id", "one")

    with connect(admin_kubeconfig, options=Options(journal_key="of another host")) as other:
        foreign = cnf.package({"w.yaml": workload("Deployment", "c")})
        install(foreign, other, instance_id="three", **here)
    caplog.clear()
    first, third, second = listed(cnf, admin_kubeconfig, "-n", cnf.namespace)
    assert [first, second] == [one, two]
    assert (third["instanceId"], third["package"], third["result"]) == ("three", "", None)
    assert "three.v1: expected a revision" in caplog.text

    terminate(None, cnf.admin, instance_id="one", **here)
    assert [third, two] == listed(cnf, admin_kubeconfig, "-n", cnf.namespace)
