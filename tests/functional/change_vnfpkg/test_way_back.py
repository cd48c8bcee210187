# SPDX-License-Identifier: Apache-2.0
"""``undo`` of a change of the package: a change to what the history has, by the same strategy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from container_update import (
    ContainerUpdateError,
    Outcome,
    PackageError,
    Plan,
    PlanError,
    UpdateRequest,
    change_package,
    connect,
    history,
    install,
    plan_undo,
    resume,
    undo,
    update,
)
from tests.functional import manifests
from tests.functional.change_vnfpkg.conftest import kubernetes_site
from tests.functional.change_vnfpkg.dying import Died, Dying
from tests.functional.change_vnfpkg.kubernetes import KubernetesContractSite
from tests.functional.change_vnfpkg.site import INSTANCE, V1, V2, Arguments, Release
from tests.functional.cnf import IMAGES, Cnf
from tests.functional.manifests import config_map
from tests.functional.real import REAL
from tests.functional.upgrade_types import BLUE_GREEN, ROLLING
from tests.internals.core import Action, ObjectKey

V3 = Release("v3")
PARAMS = {
    "lcm-operation-coordinate-new-vnf": "Scripts/new.py",
    "lcm-operation-coordinate-old-vnf": "Scripts/old.py",
}
TELLS = """
import pickle, sys
told = pickle.load(sys.stdin.buffer)["coordination"]
print("{name}", told["vnf"], told["vdu_id"])
"""
WITH_SCRIPTS = {f"Scripts/{name}.py": TELLS.format(name=name) for name in ("new", "old")}


class Site(KubernetesContractSite):
    """A VNF whose history has its installation."""

    def packages(self) -> tuple[str, str]:
        return self.old, self.new

    def undo(self, cluster: Any = None, **how: Any) -> Outcome | None:
        return undo(cluster or self.admin, self.options, **self.where(), **how)

    def plan_undo(self, **how: Any) -> Plan:
        plan = plan_undo(self.admin, self.options, **self.where(), **how)
        assert plan is not None
        return plan


@pytest.fixture(params=[BLUE_GREEN, ROLLING])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """A VNF of the first release."""
    with kubernetes_site(request.param, request, tmp_path) as contract_site:
        vnf = Site(**vars(contract_site))
        vnf.shape = replace(vnf.shape, more={"cm.yaml": config_map("gone", a="1")})
        vnf.old = vnf.package(replace(V1, scripts=WITH_SCRIPTS))
        install(vnf.old, vnf.admin, options=vnf.options, **vnf.where())
        vnf.until(lambda: vnf.serving() == {"v1"})
        vnf.shape = replace(vnf.shape, more={"cm.yaml": config_map("fresh", a="1")})
        yield vnf


def maps(site: Site) -> set[str]:
    return {body["metadata"]["name"] for body in site.objects("", "ConfigMap")} & {"gone", "fresh"}


def test_what_was_created_goes_and_what_was_deleted_comes_back(site: Site) -> None:
    site.change(V2)
    assert (site.is_at("v2"), maps(site)) == (True, {"fresh"})
    site.undo()
    assert (site.is_at("v1"), maps(site)) == (True, {"gone"})
    newest, *_ = history(site.admin, site.options, **site.where())
    assert newest.origin.title == "undo of 2"
    site.undo(revision=newest.number)
    assert (site.is_at("v2"), maps(site)) == (True, {"fresh"})


def test_several_changes_and_updates_are_undone_at_once(site: Site) -> None:
    site.change(V2)
    site.runs_from(V2)
    old = site.old
    site.runs_from(V3)
    request = UpdateRequest(old, site.old, namespace=site.namespace, instance_id=INSTANCE)
    update(request, site.admin, site.options)
    site.change(V2)
    site.undo(revision=2)
    assert (site.is_at("v1"), maps(site)) == (True, {"gone"})


def test_a_vdu_that_was_not_changed_comes_back_to_what_it_ran_from(site: Site) -> None:
    for vdu in ("VDU1", "VDU2"):
        site.change(V2, Arguments({"vdu_params": [{"vdu_id": vdu}]}))
    assert site.is_at("v2")
    site.undo()
    assert site.running() == {"VDU1": {"v2"}, "VDU2": {"v1"}}
    site.undo()
    assert site.is_at("v1")


def test_a_secret_of_another_namespace_does_not_come_back(site: Site, elsewhere: str) -> None:
    site.cluster = site.admin
    for release in (V2, V3):
        text = manifests.secret("login", key=release.version)
        there = text.replace("name: ", f"namespace: {elsewhere}, name: ", 1)
        site.shape = replace(site.shape, more={**site.shape.more, "login.yaml": there})
        site.change(release)
        site.runs_from(release)
    with pytest.raises(PlanError, match="history has no content of Secrets in other namespaces"):
        site.undo()
    assert site.is_at("v3")


def test_its_scripts_are_those_of_both_packages_with_their_new_roles(site: Site) -> None:
    site.change(replace(V2, scripts=WITH_SCRIPTS), Arguments(PARAMS))
    plan = site.plan_undo(packages=site.packages())
    scripts = [str(step.key) for step in plan.steps if step.action is Action.RUN]
    assert "Script Scripts/old.py (new VNF, VDU1)" in scripts
    outcome = site.undo(packages=site.packages())
    assert outcome is not None
    told = {result.message for result in outcome.results if result.step.action is Action.RUN}
    assert {"old new VDU1", "old new VDU2"} <= told
    assert ("new old VDU1" in told) is not site.in_place
    assert site.is_at("v1")


def test_no_script_is_run_that_nobody_has_named_or_that_is_another_one(site: Site) -> None:
    site.change(replace(V2, scripts=WITH_SCRIPTS), Arguments(PARAMS))
    unsigned = replace(site.options, no_journal_key=True)
    with (
        connect(site.kubeconfig, options=unsigned) as cluster,
        pytest.raises(PackageError, match="expected its packages"),
    ):
        site.undo(cluster)
    (Path(site.new) / "Scripts/new.py").write_text("print('another one')")
    with pytest.raises(PackageError, match=r"expected its packages|hash"):
        site.undo(packages=site.packages())
    assert site.is_at("v2")


@pytest.mark.parametrize("way", ["undo", "resume"])
@pytest.mark.parametrize("number", [4, 8])
def test_interrupted_it_is_finished_with_its_scripts(site: Site, way: str, number: int) -> None:
    site.change(replace(V2, scripts=WITH_SCRIPTS), Arguments(PARAMS))
    packages = site.packages()
    dying: Any = Dying(site.admin, number, ("create", "replace", "delete"))
    with suppress(ContainerUpdateError, Died):
        site.undo(dying, packages=packages)
    assert dying.is_dead
    for lease in site.objects("coordination.k8s.io", "Lease"):
        lease["spec"]["holderIdentity"] = ""
        site.admin.replace(lease)
    if way == "undo":
        site.undo(packages=packages)
    else:
        resume(site.admin, site.options, **site.where(), packages=packages)
    assert site.is_at("v1")


def test_where_nothing_says_what_was_there_before_the_message_says_how_to_go_back(
    site: Site,
) -> None:
    for secret in site.objects("", "Secret"):
        if secret.get("type") == "container-update/revision":
            name = secret["metadata"]["name"]
            site.admin.delete(ObjectKey("", "Secret", site.namespace, name))
    site.change(V2)
    first, second = site.packages()
    with pytest.raises(PlanError, match=f"back, from {second} to {first}$"):
        site.undo()
    site.runs_from(V2)
    site.change(V3)
    _, third = site.packages()
    with pytest.raises(PlanError, match=f"back, from {third} to {first}$"):
        site.undo(revision=1)
    assert site.is_at("v3")


# --- what the cluster chose ---------------------------------------------------------------------

PORT = """apiVersion: v1
kind: Service
metadata: {name: port}
spec: {type: NodePort, selector: {app: w}, ports: [{port: 80}]}
"""
GOES = {
    "is deleted": None,
    "gets another type": PORT.replace("NodePort", "ClusterIP"),
}
"""What the change does with a Service that has a port of each node."""


@pytest.mark.parametrize("upgrade_type", [BLUE_GREEN, ROLLING])
@pytest.mark.parametrize("new", GOES.values(), ids=GOES)
def test_a_service_gets_the_port_of_the_node_that_it_had(
    new: str | None, upgrade_type: str, cnf: Cnf
) -> None:
    def files(image: str, service: str | None) -> dict[str, str]:
        pods = {"w.yaml": manifests.workload("Deployment", image=image)}
        return pods | ({"port.yaml": service} if service else {})

    def chosen() -> tuple[int, str]:
        spec = cnf.get("Service", "port")["spec"]
        return spec["ports"][0]["nodePort"], spec["clusterIP"]

    old, after = cnf.package(files(IMAGES[0], PORT)), cnf.package(files(IMAGES[1], new))
    install(old, cnf.admin, options=cnf.options, **cnf.where)
    before = chosen()
    parameters = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": upgrade_type}}
    change_package(parameters, cnf.admin, cnf.options, old=old, new=after, **cnf.where)
    undo(cnf.admin, cnf.options, **cnf.where)
    assert chosen() == before


@pytest.mark.skipif(not REAL, reason="the embedded cluster gives a port of its nodes twice")
def test_where_another_service_has_that_port_by_now_the_undo_says_so(cnf: Cnf) -> None:
    pods = {"w.yaml": manifests.workload("Deployment")}
    old, after = cnf.package({**pods, "port.yaml": PORT}), cnf.package(pods)
    install(old, cnf.admin, options=cnf.options, **cnf.where)
    port = cnf.get("Service", "port")["spec"]["ports"][0]["nodePort"]
    parameters = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": ROLLING}}
    change_package(parameters, cnf.admin, cnf.options, old=old, new=after, **cnf.where)
    spec = {"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]}
    metadata = {"name": "other", "namespace": cnf.namespace}
    other = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
    cnf.admin.create(other)
    with pytest.raises(ContainerUpdateError, match=r"Service .*/port: .*already allocated"):
        undo(cnf.admin, cnf.options, **cnf.where)
    cnf.admin.delete(cnf.key("Service", "other"))
    undo(cnf.admin, cnf.options, **cnf.where)
    assert cnf.get("Service", "port")["spec"]["ports"][0]["nodePort"] == port
