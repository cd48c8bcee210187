# SPDX-License-Identifier: Apache-2.0
"""A package that has the Namespace of its VNF: it is created first, and deleted last."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from container_update import (
    CancelToken,
    ClusterError,
    InstallRequest,
    Plan,
    PlanError,
    StepResult,
    UndoIncompleteError,
    UpdateFailedError,
    UpdateInProgressError,
    UpdateInterruptedError,
    change_package,
    connect,
    history,
    install,
    plan_of,
    rollback,
    status,
    terminate,
    undo,
)
from tests.functional import role
from tests.functional.cnf import BAD_IMAGE, INSTANCE, Cnf
from tests.functional.conftest import OPTIONS, until
from tests.functional.manifests import ENV, config_map, secret, workload
from tests.internals.core import Included, Json, LeaseLock, ObjectKey, main

ALL = Included(shared=True)
POD = """
apiVersion: v1
kind: Pod
metadata: {name: lone}
spec: {containers: [{name: c, image: "nginx:1.27"}]}
"""


class Site:
    """A cluster without the Namespace that the package has."""

    def __init__(self, cnf: Cnf) -> None:
        self.cnf, self.name = cnf, f"{cnf.namespace}-own"
        self.where = {"namespace": self.name, "instance_id": INSTANCE}

    def package(self, *, image: str = "nginx:1.27", more: str = "") -> str:
        text = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {self.name}}}\n"
        files = {
            "a": config_map(setting="a"),
            "b": secret(token="t"),
            "w": workload("Deployment", container=ENV, image=image),
            "z": text,
        }
        files = {**files, "more": more} if more else files
        return self.cnf.package({f"{name}.yaml": body for name, body in files.items()})

    def namespace(self) -> Json | None:
        return self.cnf.admin.get(ObjectKey("", "Namespace", "", self.name))

    def install(self, package: str, **more: Any) -> Any:
        more = {"options": self.cnf.options, **more}
        return install(package, self.cnf.admin, **self.where, **more)

    def until_gone(self) -> None:
        """Wait until the server has deleted what is in the Namespace."""
        live = self.namespace()
        assert live is None or "deletionTimestamp" in live["metadata"]
        until(lambda: self.namespace() is None)

    def stop_after(self, kind: str, act: Callable[..., object]) -> None:
        """Leave an operation after the first result of a step of this kind."""
        cancel = CancelToken()

        def stop(event: object) -> None:
            if isinstance(event, StepResult) and event.step.key.kind == kind:
                cancel.request("by the test", keep_journal=True)

        with pytest.raises(UpdateInterruptedError):
            act(cancel=cancel, progress=stop, options=self.cnf.options)


@pytest.fixture
def site(cnf: Cnf) -> Iterator[Site]:
    made = Site(cnf)
    yield made
    cnf.admin.delete(ObjectKey("", "Namespace", "", made.name))


def test_it_is_planned_and_created_before_everything_else(site: Site) -> None:
    package = site.package(more=POD)
    request = InstallRequest(package, **site.where)
    plan = plan_of(request, site.cnf.admin, site.cnf.options)
    assert isinstance(plan, Plan)
    assert [step.key.kind for step in plan.steps if step.group == 0] == ["Namespace"]
    assert site.namespace() is None
    outcome = site.install(package)
    assert outcome.results[0].step.key.kind == "Namespace"
    (revision,) = history(site.cnf.admin, **site.where)
    assert revision.number == outcome.revision == 1


def test_an_uninstallation_deletes_it_last_where_that_is_asked_for(site: Site) -> None:
    site.install(site.package())
    uninstall = partial(terminate, None, site.cnf.admin, **site.where, options=site.cnf.options)
    uninstall()
    assert "deletionTimestamp" not in (site.namespace() or {})["metadata"]
    site.install(site.package())
    outcome = uninstall(included=ALL)
    assert outcome.results[-1].step.key.kind == "Namespace"
    site.until_gone()


def test_an_uninstallation_that_cannot_be_completed_leaves_it_with_the_journal(
    site: Site,
) -> None:
    held = ObjectKey("", "Namespace", "", f"{site.name}-held")
    metadata = f"{{name: {held.name}, finalizers: [example.org/held]}}"
    site.install(site.package(more=f"apiVersion: v1\nkind: Namespace\nmetadata: {metadata}\n"))
    uninstall = partial(terminate, None, site.cnf.admin, **site.where, included=ALL)
    short = replace(site.cnf.options, timeout=2, undo_timeout=2)
    with pytest.raises(UndoIncompleteError):
        uninstall(options=short)
    assert "deletionTimestamp" not in (site.namespace() or {})["metadata"]
    assert status(site.cnf.admin, **site.where).record is not None
    live = site.cnf.admin.get(held)
    assert live is not None
    site.cnf.admin.replace({**live, "metadata": {**live["metadata"], "finalizers": []}})


def test_a_failed_installation_takes_it_back(site: Site) -> None:
    with pytest.raises(UpdateFailedError) as failed:
        site.install(site.package(image=BAD_IMAGE))
    assert {result.state.value for result in failed.value.outcome.results} == {"undone"}
    site.until_gone()
    site.install(site.package())


def test_a_failed_installation_leaves_one_that_was_there(site: Site) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": site.name}}
    before = site.cnf.admin.create(body)
    with pytest.raises(UpdateFailedError):
        site.install(site.package(image=BAD_IMAGE))
    after = site.namespace() or {}
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert "deletionTimestamp" not in after["metadata"]


@pytest.mark.parametrize("kind", ["Namespace", "ConfigMap"])
def test_an_interrupted_installation_goes_on_or_is_taken_back(site: Site, kind: str) -> None:
    package = site.package()
    site.stop_after(kind, partial(install, package, site.cnf.admin, **site.where))
    assert rollback(site.cnf.admin, **site.where, options=site.cnf.options) is not None
    site.until_gone()
    site.stop_after(kind, partial(install, package, site.cnf.admin, **site.where))
    site.install(package)
    site.stop_after(
        "Deployment",
        partial(terminate, None, site.cnf.admin, **site.where, included=ALL),
    )
    terminate(
        None,
        site.cnf.admin,
        **site.where,
        included=ALL,
        options=site.cnf.options,
    )
    site.until_gone()


def test_an_installation_that_cannot_begin_leaves_none(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def held(_: object) -> None:
        raise UpdateInProgressError("another one holds it")

    monkeypatch.setattr(LeaseLock, "_acquire", held)
    with pytest.raises(UpdateInProgressError):
        site.install(site.package())
    site.until_gone()


def test_an_account_that_may_not_create_namespaces_is_told(
    site: Site, tmp_path: Path, admin_kubeconfig: str
) -> None:
    admin, rbac = site.cnf.admin, "rbac.authorization.k8s.io"
    namespaced = ["configmaps", "secrets", "pods", "services", "events"]
    rules = [
        {"apiGroups": [""], "resources": namespaced, "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "delete"]},
        {"apiGroups": ["apps", "coordination.k8s.io"], "resources": ["*"], "verbs": ["*"]},
    ]
    meta = {"name": site.name}
    ref = {"apiGroup": rbac, "kind": "ClusterRole", "name": site.name}
    subject = {"kind": "ServiceAccount", "name": role.NAME, "namespace": site.cnf.namespace}
    version = f"{rbac}/v1"
    bodies = [
        {"apiVersion": version, "kind": "ClusterRole", "metadata": meta, "rules": rules},
        {
            "apiVersion": version,
            "kind": "ClusterRoleBinding",
            "metadata": meta,
            "roleRef": ref,
            "subjects": [subject],
        },
    ]
    path = role.write_kubeconfig(admin_kubeconfig, site.cnf.namespace, tmp_path / "limited")
    for body in bodies:
        admin.create(body)
    try:
        with connect(path, options=OPTIONS) as limited:
            lists = ObjectKey("", "Namespace", "", site.name)
            until(lambda: _may_read(limited, lists))
            with pytest.raises(ClusterError, match=r"may not create Namespaces?\b") as refused:
                install(site.package(), limited, **site.where, options=site.cnf.options)
        assert refused.value.status == 403
        assert site.namespace() is None
    finally:
        for body in bodies:
            admin.delete(ObjectKey.of(body))


def _may_read(cluster: Any, key: ObjectKey) -> bool:
    try:
        cluster.get(key)
    except ClusterError as error:
        if error.status != 403:
            raise
        return False
    return True


def test_one_of_another_name_that_is_nowhere_is_an_error_still(site: Site) -> None:
    with pytest.raises(PlanError, match="does not exist: create it"):
        install(site.package(), site.cnf.admin, namespace="nowhere", instance_id=INSTANCE)


def test_one_that_is_being_deleted_is_refused_before_anything_is_tried_in_it(
    site: Site, bare: dict[str, str]
) -> None:
    admin, key = site.cnf.admin, ObjectKey("", "ConfigMap", site.name, "held")
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": site.name}})
    held = {"name": key.name, "namespace": site.name, "finalizers": ["example.com/held"]}
    admin.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": held})
    admin.delete(ObjectKey("", "Namespace", "", site.name))
    with pytest.raises(PlanError, match=r"^namespace .* is being deleted: wait until it is gone"):
        site.install(bare["old"])
    body = admin.get(key)
    assert body is not None
    body["metadata"]["finalizers"] = []
    admin.replace(body)


# --- one that no package has, created with the installation --------------------------------------


@pytest.fixture
def bare(cnf: Cnf, site: Site) -> dict[str, str]:
    """Packages without a Namespace: one, the next one, and one that fails."""
    images = {"old": "nginx:1.27", "new": "nginx:1.28", "bad": BAD_IMAGE}
    return {
        name: cnf.package(
            {
                "a.yaml": config_map(setting=name),
                "w.yaml": workload("Deployment", container=ENV, image=image),
            }
        )
        for name, image in images.items()
    }


def test_it_is_created_where_that_is_asked_for_and_no_later_operation_deletes_it(
    site: Site, bare: dict[str, str]
) -> None:
    cluster, options = site.cnf.admin, site.cnf.options
    with pytest.raises(PlanError, match="does not exist"):
        site.install(bare["old"])
    request = InstallRequest(bare["old"], **site.where, create_namespace=True)
    plan = plan_of(request, cluster, options)
    assert [step.key.kind for step in plan.steps if step.group == 0] == ["Namespace"]
    assert site.namespace() is None
    site.install(bare["old"], create_namespace=True)
    assert not site.install(bare["old"], create_namespace=True).results
    change = {"vnfdId": "new", "additionalParams": {"upgrade_type": "RollingUpdate"}}
    assert change_package(change, cluster, options, old="", new=bare["new"], **site.where).results
    assert undo(cluster, options, namespace=site.name, instance_id=INSTANCE)
    ended = terminate(None, cluster, **site.where, options=options, included=ALL)
    assert "Namespace" not in {result.step.key.kind for result in ended.results}
    assert "deletionTimestamp" not in (site.namespace() or {})["metadata"]
    assert site.install(bare["old"], create_namespace=True).results


@pytest.mark.parametrize("other", [None, config_map("another", setting="1"), POD])
def test_a_failed_installation_takes_it_back_unless_something_else_is_in_it(
    site: Site, bare: dict[str, str], other: str | None
) -> None:
    def put(event: object) -> None:
        if other and isinstance(event, StepResult) and event.step.key.kind == "ConfigMap":
            body = yaml.safe_load(other)
            body["metadata"]["namespace"] = site.name
            if site.cnf.admin.get(ObjectKey.of(body)) is None:
                site.cnf.admin.create(body)

    with pytest.raises(UpdateFailedError) as raised:
        site.install(bare["bad"], create_namespace=True, progress=put)
    said = f"Namespace {site.name}: stays: it is not empty"
    assert (said in str(raised.value)) == (other is not None)
    assert status(site.cnf.admin, **site.where).record is None if other else True
    if other is None:
        site.until_gone()
    else:
        assert "deletionTimestamp" not in (site.namespace() or {})["metadata"]


def test_a_failed_installation_leaves_a_namespace_that_it_did_not_create(
    site: Site, bare: dict[str, str]
) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": site.name}}
    site.cnf.admin.create(body)
    with pytest.raises(UpdateFailedError):
        site.install(bare["bad"], create_namespace=True)
    assert "deletionTimestamp" not in (site.namespace() or {})["metadata"]


def test_the_command_creates_it_and_an_approved_plan_says_so(
    site: Site, bare: dict[str, str], admin_kubeconfig: str, tmp_path: Path
) -> None:
    saved = str(tmp_path / "install.plan")
    where = ["--kubeconfig", admin_kubeconfig, "-n", site.name]
    command = ["install", bare["old"], "--instance-id", "one", "--create-namespace", *where]
    out = io.StringIO()
    assert main([*command, "--plan", "--out", saved], out) == 3
    assert f"Namespace {site.name}" in out.getvalue()
    assert main(["apply", saved, *where], out) == 0
    assert site.namespace()
