# SPDX-License-Identifier: Apache-2.0
"""Authorization: service accounts with tokens, and the Roles and ClusterRoles bound to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from container_update.emulator.kubernetes import EmbeddedCluster
from tests.emulator.client import Answer, Api

RBAC = "/apis/rbac.authorization.k8s.io/v1"
USER = "system:serviceaccount:rec:worker"
PODS = "/api/v1/namespaces/rec/pods"


class Account:
    """A service account of the namespace 'rec' and its token."""

    def __init__(self, api: Api) -> None:
        self.api = api
        api.post("/api/v1/namespaces/rec/serviceaccounts", {"metadata": {"name": "worker"}})
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        path = "/api/v1/namespaces/rec/serviceaccounts/worker/token"
        self.answer = api.post(path, request)
        self.token = self.answer.body["status"]["token"]

    def bind(self, *rules: dict[str, Any], cluster: bool = False, space: str = "rec") -> None:
        """Grant these rules by a Role, or in all namespaces by a ClusterRole."""
        kind = "ClusterRole" if cluster else "Role"
        path = RBAC if cluster else f"{RBAC}/namespaces/{space}"
        role = {"metadata": {"name": "role"}, "rules": list(rules)}
        subject = {"kind": "ServiceAccount", "name": "worker", "namespace": "rec"}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "role"}
        binding = {"metadata": {"name": "b"}, "roleRef": reference, "subjects": [subject]}
        assert self.api.post(f"{path}/{kind.lower()}s", role).status == 201
        assert self.api.post(f"{path}/{kind.lower()}bindings", binding).status == 201

    def asks(self, method: str, path: str, body: Any = None) -> Answer:
        return self.api.request(method, path, body, token=self.token)


@pytest.fixture
def account(cluster: EmbeddedCluster) -> Iterator[Account]:
    api = Api(cluster)
    yield Account(api)
    api.close()


def rule(verbs: str, resources: str, group: str = "", **more: Any) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split(), **more}


def test_a_token_request_is_answered_as_kubectl_create_token_expects(account):
    assert account.answer.status == 201
    assert account.answer.body["kind"] == "TokenRequest"
    assert account.answer.body["status"]["expirationTimestamp"].endswith("Z")


def test_there_is_no_token_for_an_account_that_is_not_there(account):
    path = "/api/v1/namespaces/rec/serviceaccounts/nobody/token"
    assert account.api.post(path, {"spec": {}}).status == 404


def test_an_account_without_a_role_may_only_discover(account):
    assert account.asks("GET", "/apis").status == 200
    answer = account.asks("GET", "/apis/apps/v1/namespaces/rec/deployments/web")
    assert answer.status == 403
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'deployments.apps "web" is forbidden: User "{USER}" cannot get resource '
        '"deployments" in API group "apps" in the namespace "rec"',
        "reason": "Forbidden",
        "details": {"name": "web", "group": "apps", "kind": "deployments"},
        "code": 403,
    }


def test_what_lies_in_no_namespace_is_refused_at_the_cluster_scope(account):
    answer = account.asks("GET", "/api/v1/nodes")
    assert answer.body["message"] == (
        f'nodes is forbidden: User "{USER}" cannot list resource "nodes" in API group "" '
        "at the cluster scope"
    )


MAY: dict[str, tuple[dict[str, Any], str, str, bool]] = {
    "list with list": (rule("list", "pods"), "GET", PODS, True),
    "get with list": (rule("list", "pods"), "GET", f"{PODS}/p", False),
    "watch with list": (rule("list", "pods"), "GET", f"{PODS}?watch=true&timeoutSeconds=0", False),
    "delete one with delete": (rule("delete", "pods"), "DELETE", f"{PODS}/p", True),
    "delete all with delete": (rule("delete", "pods"), "DELETE", PODS, False),
    "everything with stars": (rule("*", "*", "*"), "GET", f"{PODS}/p", True),
    "another group": (rule("list", "pods", "apps"), "GET", PODS, False),
    "a subresource by its resource": (rule("get", "pods"), "GET", f"{PODS}/p/status", False),
    "a subresource by name": (rule("get", "pods/status"), "GET", f"{PODS}/p/status", True),
    "a subresource of anything": (rule("get", "*/status"), "GET", f"{PODS}/p/status", True),
    "a resource by its subresource": (rule("get", "pods/status"), "GET", f"{PODS}/p", False),
    "one by its name": (rule("get", "pods", resourceNames=["p"]), "GET", f"{PODS}/p", True),
    "another than named": (rule("get", "pods", resourceNames=["q"]), "GET", f"{PODS}/p", False),
    "a list where one is named": (rule("list", "pods", resourceNames=["p"]), "GET", PODS, False),
    "another namespace": (rule("*", "*", "*"), "GET", "/api/v1/namespaces/default/pods", False),
    "all namespaces": (rule("*", "*", "*"), "GET", "/api/v1/pods", False),
    "its namespace": (rule("get", "namespaces"), "GET", "/api/v1/namespaces/rec", True),
    "another's namespace": (rule("get", "namespaces"), "GET", "/api/v1/namespaces/default", False),
}


@pytest.mark.parametrize(("granted", "method", "path", "may"), MAY.values(), ids=MAY)
def test_a_role_in_a_namespace_lets_its_account(account, granted, method, path, may):
    account.bind(granted)
    assert (account.asks(method, path).status != 403) is may


def test_a_cluster_role_holds_everywhere(account):
    account.bind(rule("list", "pods nodes"), cluster=True)
    for path in (PODS, "/api/v1/pods", "/api/v1/nodes", "/api/v1/namespaces/default/pods"):
        assert account.asks("GET", path).status == 200, path


REVIEWS = "/apis/authorization.k8s.io/v1"


def test_an_account_can_review_its_own_rules(account):
    account.bind(
        rule("get list", "pods"), rule("update", "deployments", "apps", resourceNames=["d"])
    )
    answer = account.asks(
        "POST", f"{REVIEWS}/selfsubjectrulesreviews", {"spec": {"namespace": "rec"}}
    )
    assert answer.status == 201
    assert answer.body["status"]["incomplete"] is False
    assert answer.body["status"]["resourceRules"] == [
        rule("get list", "pods"),
        rule("update", "deployments", "apps", resourceNames=["d"]),
    ]


@pytest.mark.parametrize(
    ("attributes", "allowed"),
    [
        ({"verb": "get", "resource": "pods", "namespace": "rec"}, True),
        ({"verb": "delete", "resource": "pods", "namespace": "rec"}, False),
        ({"verb": "get", "resource": "pods", "namespace": "other"}, False),
        (
            {"verb": "create", "resource": "pods", "subresource": "eviction", "namespace": "rec"},
            True,
        ),
    ],
)
def test_an_account_can_review_whether_it_may(account, attributes, allowed):
    account.bind(rule("get", "pods"), rule("create", "pods/eviction"))
    answer = account.asks(
        "POST", f"{REVIEWS}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": attributes}}
    )
    assert answer.body["status"] == {"allowed": allowed}


def test_the_administrator_may_act_as_another(account):
    account.bind(rule("get list", "pods"))
    acting = {"Impersonate-User": USER}
    assert account.api.request("GET", PODS, headers=acting).status == 200
    assert account.api.request("DELETE", PODS, headers=acting).status == 403


def test_a_review_without_a_namespace_is_refused(account):
    assert account.asks("POST", f"{REVIEWS}/selfsubjectrulesreviews", {"spec": {}}).status == 400
    assert account.asks("POST", f"{REVIEWS}/nothing", {}).status == 403
    assert account.api.post(f"{REVIEWS}/nothing", {}).status == 404


@pytest.mark.parametrize("plural", ["subjectaccessreviews", "localsubjectaccessreviews"])
def test_the_administrator_can_review_what_another_may(account, plural):
    account.bind(rule("get", "pods"))
    where = "/namespaces/rec" if plural.startswith("local") else ""
    attributes = {"verb": "get", "resource": "pods", "namespace": "rec"}
    body = {"spec": {"user": USER, "resourceAttributes": attributes}}
    path = f"{REVIEWS}{where}/{plural}"
    assert account.api.post(path, body).body["status"] == {"allowed": True}
    body["spec"]["user"] = "somebody"
    assert account.api.post(path, body).body["status"] == {"allowed": False}
    assert account.asks("POST", path, body).status == 403
    assert account.api.get(path).status == 405


def test_a_token_tells_its_owner(account):
    reviews = "/apis/authentication.k8s.io/v1"
    answer = account.asks("POST", f"{reviews}/selfsubjectreviews", {})
    assert answer.body["status"] == {"userInfo": {"username": USER}}
    for token, status in (
        (account.api.cluster.token,
         {"authenticated": True, "user": {"username": "kubernetes-admin"}}),
        ("none", {"user": {}, "error": "invalid bearer token"}),
    ):  # fmt: skip
        answer = account.api.post(f"{reviews}/tokenreviews", {"spec": {"token": token}})
        assert answer.body["status"] == status
