# SPDX-License-Identifier: Apache-2.0
"""An object is written after those that it names, and goes before them, as a server that looks them
up demands it: no file of the package has to say so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from container_update import (
    CancelToken,
    ClusterError,
    Outcome,
    StepResult,
    UpdateFailedError,
    UpdateInterruptedError,
    change_package,
    connect,
    install,
    terminate,
)
from tests.functional import role
from tests.functional.cnf import BAD_IMAGE, Cnf
from tests.functional.conftest import until
from tests.functional.manifests import config_map, workload
from tests.internals.core import Collection, KubernetesCluster, ObjectKey, Right

RBAC = "rbac.authorization.k8s.io"
BINDING = f"""
apiVersion: {RBAC}/v1
kind: RoleBinding
metadata: {{name: app}}
roleRef: {{apiGroup: {RBAC}, kind: Role, name: app}}
subjects: [{{kind: ServiceAccount, name: app}}]
"""
ROLE = f"""
apiVersion: {RBAC}/v1
kind: Role
metadata: {{name: app}}
rules: [{{apiGroups: [""], resources: [configmaps], verbs: [get]}}]
"""
ACCOUNT = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: app}}"
PACKAGE = {"a.yaml": BINDING, "b.yaml": ROLE, "c.yaml": ACCOUNT, "d.yaml": config_map(setting="a")}


@pytest.fixture
def account(cnf: Cnf, admin_kubeconfig: str, tmp_path: Path) -> Iterator[KubernetesCluster]:
    """An account that may grant what it has, and may not bind what it has not."""
    bound = cnf.admin.get(role.key(cnf.namespace))
    assert bound is not None
    verbs = ["get", "list", "watch", "create", "update", "delete"]
    more = [
        {"apiGroups": [RBAC], "resources": ["roles", "rolebindings"], "verbs": verbs},
        {"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": verbs},
    ]
    cnf.admin.replace({**bound, "rules": [*bound["rules"], *more]})
    kubeconfig = role.write_kubeconfig(admin_kubeconfig, cnf.namespace, tmp_path / "granting")
    with connect(kubeconfig, options=cnf.options) as connected:
        until(lambda: not connected.missing_rights([Right(cnf.namespace, RBAC, "Role", "create")]))
        yield connected


def granted(cnf: Cnf) -> set[str]:
    """Return the roles and bindings of the package that are there."""
    kinds = [Collection(RBAC, kind, cnf.namespace) for kind in ("Role", "RoleBinding")]
    bodies = [(kind.kind, body) for kind in kinds for body in cnf.admin.list(kind).items]
    return {kind for kind, body in bodies if body["metadata"]["name"] == "app"}


def test_an_account_that_may_not_bind_installs_a_role_and_its_binding(
    cnf: Cnf, account: KubernetesCluster
) -> None:
    in_the_order_of_the_plan = replace(cnf.options, workers=1)
    install(cnf.package(PACKAGE), account, options=in_the_order_of_the_plan, **cnf.where)
    assert granted(cnf) == {"Role", "RoleBinding"}


def test_an_uninstallation_that_is_undone_creates_the_role_before_its_binding(
    cnf: Cnf, account: KubernetesCluster
) -> None:
    last = config_map(setting="a").replace(
        "{name: cm}", "{name: cm, annotations: {container-update/order: '-1'}}"
    )
    package = cnf.package({**PACKAGE, "d.yaml": last})
    install(package, account, options=cnf.options, **cnf.where)
    cancel = CancelToken()

    def stop(event: object) -> None:
        if isinstance(event, StepResult) and event.step.key.kind == "Role":
            cancel.request("by the test")

    with pytest.raises(UpdateInterruptedError, match="Everything is as before"):
        terminate(package, account, options=cnf.options, cancel=cancel, progress=stop, **cnf.where)
    assert granted(cnf) == {"Role", "RoleBinding"}


FOREIGN = "rules: [{apiGroups: [''], resources: [endpoints], verbs: [get]}]"
"""What the account may not do itself."""
GRANTING = {**PACKAGE, "b.yaml": re.sub("rules: .*", FOREIGN, ROLE)}
OTHERS = {name: PACKAGE[name] for name in ("c.yaml", "d.yaml")}
TAKING: dict[str, dict[str, str] | None] = {
    "a smaller role": {**GRANTING, "b.yaml": ROLE},
    "without the role": OTHERS,
    "without the binding": {**OTHERS, "b.yaml": GRANTING["b.yaml"]},
    "uninstalled": None,
}


@pytest.mark.parametrize("new", TAKING.values(), ids=TAKING)
def test_an_account_takes_no_right_away_that_it_could_not_put_back(
    cnf: Cnf, account: KubernetesCluster, new: dict[str, str] | None
) -> None:
    old = cnf.package(GRANTING)
    install(old, cnf.admin, options=cnf.options, **cnf.where)
    before = cnf.admin.get(ObjectKey(RBAC, "Role", cnf.namespace, "app")), granted(cnf)

    def act(cluster: KubernetesCluster) -> None:
        if new is None:
            terminate(old, cluster, options=cnf.options, **cnf.where)
            return
        body = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": "RollingUpdate"}}
        packages = {"old": old, "new": cnf.package(new)}
        change_package(body, cluster, cnf.options, **packages, **cnf.where)

    with pytest.raises(ClusterError, match=r"(?s)could not be undone.*the verb (escalate|bind)"):
        act(account)
    assert (cnf.admin.get(ObjectKey(RBAC, "Role", cnf.namespace, "app")), granted(cnf)) == before
    act(cnf.admin)


ADMISSION = "admissionregistration.k8s.io"
QUOTA = """
apiVersion: v1
kind: ResourceQuota
metadata: {name: limit}
spec: {hard: {count/configmaps: "%d"}}
"""
POLICY = f"""
apiVersion: {ADMISSION}/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: only-%(space)s}}
spec:
  matchConstraints:
    namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: %(space)s}}}}
    resourceRules:
    - {{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}}
  validations: [{{expression: "object.metadata.name != 'more'", message: not this one}}]
---
apiVersion: {ADMISSION}/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: only-%(space)s}}
spec: {{policyName: only-%(space)s, validationActions: [Deny]}}
"""


@pytest.mark.parametrize("kind", ["ResourceQuota", "ValidatingAdmissionPolicy"])
def test_what_refuses_the_objects_of_a_package_without_it_goes_before_they_are_written(
    cnf: Cnf, kind: str
) -> None:
    here = len(cnf.admin.list(Collection("", "ConfigMap", cnf.namespace)).items)
    is_quota = kind == "ResourceQuota"
    judge = QUOTA % (here + 1) if is_quota else POLICY % {"space": cnf.namespace}
    group, name = ("", "limit") if is_quota else (ADMISSION, f"only-{cnf.namespace}")
    key = ObjectKey(group, kind, cnf.namespace if is_quota else "", name)
    first = {"cm.yaml": config_map(setting="a")}
    old = cnf.package({**first, "judge.yaml": judge})
    more = {**first, "more.yaml": config_map("more", setting="b")}
    bad = {**more, "bad.yaml": workload("Deployment", "bad", image=BAD_IMAGE)}
    body = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": "RollingUpdate"}}

    def change(new: dict[str, str]) -> Outcome:
        packages = {"old": old, "new": cnf.package(new)}
        return change_package(body, cnf.admin, cnf.options, **packages, **cnf.where)

    install(old, cnf.admin, options=cnf.options, **cnf.where)
    with pytest.raises(UpdateFailedError, match="Everything is as before"):
        change(bad)
    assert cnf.admin.get(key) is not None
    results = change(more).results
    assert [result.step.is_removal for result in results] == [*[True] * (len(results) - 1), False]
    assert cnf.get("ConfigMap", "more")["data"] == {"setting": "b"}
