# SPDX-License-Identifier: Apache-2.0
"""Admission that judges what a run itself writes: its lease, its journal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from container_update import (
    ClusterError,
    InstallRequest,
    Outcome,
    UpdateFailedError,
    change_package,
    connect,
    install,
    status,
)
from tests.functional.cnf import INSTANCE, Cnf
from tests.functional.conftest import OPTIONS
from tests.functional.manifests import config_map, workload
from tests.functional.real import REAL
from tests.functional.reference_update import Lab
from tests.internals.core import Collection, KubernetesCluster, ObjectKey, StepState, name_of

SHORT = replace(OPTIONS, lease_seconds=9.0)
"""A third of it is how long renewals are tried."""
GROUP = "admissionregistration.k8s.io"
FILES = {"cm.yaml": config_map(setting="b"), "w.yaml": workload("Deployment")}


@pytest.fixture(scope="module")
def admin_kubeconfig(lab: Lab) -> str:
    return lab.kubeconfig


@pytest.fixture(scope="module")
def admin(admin_kubeconfig: str) -> Iterator[KubernetesCluster]:
    with connect(admin_kubeconfig, options=OPTIONS) as connected:
        yield connected


@pytest.fixture
def webhook(cnf: Cnf, lab: Lab) -> Iterator[str]:
    """The manifest of a webhook on a port where no program listens; the embedded cluster asks no
    webhooks, so that its answers are given for it: a moment after its creation, as on a server,
    here after the lease was renewed once."""
    key = ObjectKey(GROUP, "ValidatingWebhookConfiguration", "", f"own-{cnf.namespace}")

    in_force: list[bool] = []

    async def ask(request: Any, handler: Any) -> Any:
        is_judged = request.method != "GET" and f"/{cnf.namespace}/" in request.path
        if "/validatingwebhookconfigurations" in request.path and "dryRun" not in request.query:
            in_force[:] = {"POST": [False], "DELETE": []}.get(request.method, in_force)
        elif is_judged and in_force == [False]:
            in_force[:] = [request.method == "PUT" and "/leases/" in request.path]
        elif is_judged and in_force:
            message = 'Internal error occurred: failed calling webhook "own.example.org"'
            status = {"kind": "Status", "status": "Failure", "reason": "InternalError"}
            body = {**status, "message": message, "code": 500}
            return web.json_response(body, status=500)
        return await handler(request)

    if not REAL:
        lab.server.middlewares.append(ask)
    yield f"""apiVersion: {GROUP}/v1
kind: ValidatingWebhookConfiguration
metadata: {{name: {key.name}}}
webhooks:
- name: own.example.org
  sideEffects: None
  admissionReviewVersions: [v1]
  failurePolicy: Fail
  clientConfig: {{url: "https://127.0.0.1:1/"}}
  namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {cnf.namespace}}}}}
  rules:
  - {{apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*"], scope: Namespaced}}
"""
    if not REAL:
        lab.server.middlewares.remove(ask)
    if cnf.admin.get(key) is not None:
        cnf.admin.delete(key)


FAILED = r"ValidatingWebhookConfiguration own-\S+ failed: .*failed calling webhook.*as before"


def test_an_installation_that_locks_itself_out_is_undone(cnf: Cnf, webhook: str) -> None:
    package = cnf.package({**FILES, "hook.yaml": webhook})
    with pytest.raises(UpdateFailedError, match=FAILED):
        install(InstallRequest(package, **cnf.where), cnf.admin, SHORT)
    assert cnf.admin.list(Collection("apps", "Deployment", cnf.namespace)).items == ()
    assert str(status(cnf.admin, **cnf.where)) == "No operation is under way."


def test_a_change_that_locks_itself_out_is_undone(cnf: Cnf, webhook: str) -> None:
    cnf.instantiate(cm=config_map(setting="a"), w=workload("Deployment"))
    before = cnf.get("Deployment", "w")["spec"]
    new = cnf.package({**FILES, "hook.yaml": webhook})
    parameters = {"vnfdId": "unknown", "additionalParams": {"upgrade_type": "RollingUpdate"}}
    with pytest.raises(UpdateFailedError, match=FAILED):
        change_package(parameters, cnf.admin, SHORT, old=cnf.old, new=new, **cnf.where)
    assert cnf.get("Deployment", "w")["spec"] == before


REFUSED = "ValidatingAdmissionPolicy 'keep' with binding 'keep' denied request"


@contextmanager
def keeping_secrets(lab: Lab, cnf: Cnf) -> Iterator[None]:
    """Refuse to delete Secrets of the namespace, in the words of an API server 1.36."""

    async def refuse(request: Any, handler: Any) -> Any:
        if request.method != "DELETE" or f"/{cnf.namespace}/secrets/" not in request.path:
            return await handler(request)
        status = {"kind": "Status", "status": "Failure", "reason": "Invalid", "code": 422}
        message = f'secrets "x" is forbidden: {REFUSED}: not allowed here'
        return web.json_response({**status, "message": message}, status=422)

    lab.server.middlewares.append(refuse)
    try:
        yield
    finally:
        lab.server.middlewares.remove(refuse)


def test_an_update_whose_journal_must_not_be_deleted_has_ended(cnf: Cnf, lab: Lab) -> None:
    """The next operation says what keeps the journal; it undoes nothing."""

    def update(setting: str) -> Outcome:
        return cnf.update({"cm": config_map(setting=setting), "w": workload("Deployment")})

    cnf.instantiate(cm=config_map(setting="a"), w=workload("Deployment"))
    journal = ObjectKey("", "Secret", cnf.namespace, name_of(INSTANCE))
    with keeping_secrets(lab, cnf):
        assert update("b").of_state(StepState.DONE)
        assert "ended, but its journal is not removed yet" in str(status(cnf.admin, **cnf.where))
        for operation in (cnf.rollback, cnf.resume, lambda: update("c")):
            with pytest.raises(ClusterError, match=f"delete {journal}: .*{REFUSED}"):
                operation()
    assert cnf.get("ConfigMap", "cm")["data"]["setting"] == "b"
    assert update("c").of_state(StepState.DONE)
    assert str(status(cnf.admin, **cnf.where)) == "No operation is under way."
