# SPDX-License-Identifier: Apache-2.0
"""What a server makes of a body: unknown fields, quantities, defaults."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from container_update.emulator.kubernetes.api_errors import ApiError
from container_update.emulator.kubernetes.resources import BUILT_IN
from container_update.emulator.kubernetes.rules import quantity, schema
from tests.emulator.client import Api
from tests.emulator.stage import workload

DEPLOYMENTS = "/apis/apps/v1/namespaces/rec/deployments"
REPLICA_SETS = DEPLOYMENTS.replace("deployments", "replicasets")
TYPO = 'unknown field "spec.minReadySecond"'
DEEP = 'unknown field "spec.template.spec.containers[0].imagePullPolicyy"'


def typo() -> Any:
    body = workload("deployments", "web", 1, minReadySecond=5)
    body["spec"]["template"]["spec"]["containers"][0]["imagePullPolicyy"] = "Always"
    return body


def test_unknown_fields_are_dropped_with_a_warning(api: Api) -> None:
    answer = api.post(DEPLOYMENTS, typo())
    assert answer.status == 201
    assert "minReadySecond" not in answer.body["spec"]
    assert "imagePullPolicyy" not in answer.body["spec"]["template"]["spec"]["containers"][0]
    assert answer.headers["Warning"].startswith('299 - "unknown field \\"spec.')
    quiet = api.post(f"{DEPLOYMENTS}?fieldValidation=Ignore", {**typo(), "metadata": {"name": "b"}})
    assert "Warning" not in quiet.headers


def test_unknown_fields_are_refused_where_the_request_says_so(api: Api) -> None:
    strict = "?fieldValidation=Strict"
    answer = api.post(DEPLOYMENTS + strict, typo())
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")
    assert answer.body["message"] == (
        'Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: '
        f"{DEEP}, {TYPO}"
    )
    assert api.post(DEPLOYMENTS + strict, workload("deployments", "web", 1)).status == 201
    assert api.put(f"{DEPLOYMENTS}/web{strict}", typo()).status == 400
    patched = api.patch(f"{DEPLOYMENTS}/web{strict}", {"spec": {"minReadySecond": 5}})
    assert (patched.status, patched.body["reason"]) == (422, "Invalid")
    assert f"strict decoding error: {TYPO}" in patched.body["message"]
    assert api.post(f"{DEPLOYMENTS}?fieldValidation=Some", typo()).status == 422


@pytest.mark.parametrize("strict", ["", "?fieldValidation=Strict&dryRun=All"])
def test_an_environment_variable_that_hides_another_one_is_warned_of(api: Api, strict: str) -> None:
    body = workload("deployments", "web", 1)
    container = body["spec"]["template"]["spec"]["containers"][0]
    container["env"] = [{"name": "A", "value": text} for text in ("1", "2", "$(A)3")]
    answer = api.post(DEPLOYMENTS + strict, body)
    assert answer.status == 201
    assert answer.headers["Warning"] == (
        '299 - "spec.template.spec.containers[0].env[1]: hides previous definition of \\"A\\", '
        'which may be dropped when using apply"'
    )


QUANTITIES = {
    "1000m": "1", "0.5": "500m", "1": "1", 1: "1", 0.25: "250m", "1500m": "1500m", "0": "0",
    "1024Mi": "1Gi", "1.5Gi": "1536Mi", "512Mi": "512Mi", "1000": "1k", "1000000": "1M",
    "0.1Gi": "107374182400m", "1e3": "1e3", "1E6": "1e6", "100000m": "100", "-1000m": "-1",
    "1023Ki": "1023Ki", "0.5Ki": "512", "1n": "1n", "2Gi": "2Gi", "0Mi": "0", "1024Ki": "1Mi",
}  # fmt: skip


@pytest.mark.parametrize(("given", "stored"), QUANTITIES.items())
def test_a_quantity_has_one_form(given: str | float, stored: str) -> None:
    assert quantity.canonical(given) == stored
    assert quantity.value(stored) == quantity.value(given)
    assert quantity.canonical(stored) == stored


@pytest.mark.parametrize("wrong", ["", "one", "1 Gi", "1gi", "1mm", True, "Gi"])
def test_what_is_no_quantity_is_refused(wrong: Any) -> None:
    with pytest.raises(ApiError, match="quantit"):
        quantity.canonical(wrong)


def test_quantities_are_numbers() -> None:
    assert quantity.value("250m") == Fraction(1, 4)
    assert quantity.value("1Ki") == 1024


def test_the_same_quantity_is_no_change(api: Api) -> None:
    body = workload("replicasets", "web", 1)
    (container,) = body["spec"]["template"]["spec"]["containers"]
    container["resources"] = {
        "requests": {"cpu": "1000m", "memory": "1024Mi"},
        "limits": {"cpu": 1},
    }
    stored = api.post(REPLICA_SETS, body).body["spec"]["template"]["spec"]["containers"][0]
    assert stored["resources"] == {
        "requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1"},
    }  # fmt: skip
    container["resources"]["requests"] = {"cpu": "1", "memory": "1Gi"}
    assert api.put(f"{REPLICA_SETS}/web", body).body["metadata"]["generation"] == 1
    container["resources"]["requests"] = {"cpu": "much"}
    refused = api.put(f"{REPLICA_SETS}/web", body)
    assert (refused.status, refused.body["reason"]) == (400, "BadRequest")
    assert "quantities must match the regular expression" in refused.body["message"]


DEFAULTS: dict[str, tuple[str, Any, Any]] = {
    "a webhook": (
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        {"webhooks": [
            {"name": "a.b.c", "clientConfig": {"service": {"name": "s"}}, "rules": [{}]}
        ]},
        {"webhooks": [{
            "name": "a.b.c", "failurePolicy": "Fail", "matchPolicy": "Equivalent",
            "namespaceSelector": {}, "objectSelector": {}, "timeoutSeconds": 10,
            "clientConfig": {"service": {"name": "s", "port": 443}}, "rules": [{"scope": "*"}],
        }]},
    ),
    "a binding": (
        "/apis/rbac.authorization.k8s.io/v1/namespaces/rec/rolebindings",
        {"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "u"}]},
        {
            "roleRef": {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"},
            "subjects": [
                {"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}
            ],
        },
    ),
    "a network policy": (
        "/apis/networking.k8s.io/v1/namespaces/rec/networkpolicies",
        {"spec": {"podSelector": {}, "egress": [{"ports": [{"port": 1}]}]}},
        {"spec": {
            "podSelector": {}, "policyTypes": ["Ingress", "Egress"],
            "egress": [{"ports": [{"port": 1, "protocol": "TCP"}]}],
        }},
    ),
    "a storage class": (
        "/apis/storage.k8s.io/v1/storageclasses", {"provisioner": "p"},
        {"provisioner": "p", "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("path", "sent", "expected"), DEFAULTS.values(), ids=DEFAULTS)
def test_defaults_are_filled_in(api: Api, path: str, sent: Any, expected: Any) -> None:
    stored = api.post(path, {"metadata": {"name": "x"}, **sent}).body
    assert {key: stored[key] for key in expected} == expected


@pytest.mark.parametrize("kind", [kind for kind in BUILT_IN if kind.is_stored], ids=str)
def test_the_fields_of_every_kind_are_known(kind: Any) -> None:
    if kind.kind == "ComponentStatus":
        return
    assert schema.unknown(kind, {"metadata": {"nothing": 1}}) == ["metadata.nothing"]
