# SPDX-License-Identifier: Apache-2.0
"""A webhook of the package that does not answer, and judges what the run itself writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from container_update import (
    InstallRequest,
    UpdateFailedError,
    change_package,
    connect,
    install,
    status,
)
from tests.functional.cnf import Cnf
from tests.functional.conftest import OPTIONS
from tests.functional.manifests import config_map, workload
from tests.functional.real import REAL
from tests.functional.reference_update import Lab
from tests.internals.core import Collection, KubernetesCluster, ObjectKey

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
    webhooks, so that its answers are given for it."""
    key = ObjectKey(GROUP, "ValidatingWebhookConfiguration", "", f"own-{cnf.namespace}")

    in_force: list[bool] = []

    async def ask(request: Any, handler: Any) -> Any:
        is_judged = request.method != "GET" and f"/{cnf.namespace}/" in request.path
        if "/validatingwebhookconfigurations" in request.path and "dryRun" not in request.query:
            in_force[:] = {"POST": [True], "DELETE": []}.get(request.method, in_force)
        if is_judged and in_force:
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
