# SPDX-License-Identifier: Apache-2.0
"""Bodies of requests that nothing could be done with: refused before anything is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.vnfm.client import Client

DEEPEST = 100
"""Levels of objects and lists that a body may have."""
PACKAGES, VIMS = "/vnfpkgm/v1/vnf_packages", "/v1.0/vims"

UNKNOWN = "00000000-0000-4000-8000-000000000000"
NO_INSTANCE = f"vnf_instances/{UNKNOWN}"
VIM = {"name": "n", "type": "kubernetes", "auth_url": "http://127.0.0.1:1"}
CHANGE = {"vnfdId": "x", "additionalParams": {"upgrade_type": "RollingUpdate"}}


WRONG_URLS = ("http://user:pl4nted@127.0.0.1:1", "127.0.0.1:1", "ftp://x", "", ["http://x"], 5, {})
WRONG_LOGINS = (
    {"bearer_token": "pl4nted\nX-A: b"},
    {"bearer_token": ["pl4nted"]},
    {"username": "u", "password": 5},
    {"oidc_token_url": "https://u:pl4nted@sso/token"},
    {"oidc_token_url": 5},
)


def nested(depth: int, *, lists: bool = False) -> Any:
    """Return a value of that many levels."""
    value: Any = [] if lists else {}
    for _ in range(depth - 1):
        value = [value] if lists else {"a": value}
    return value


BODIES: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "userDefinedData": ("POST", PACKAGES, lambda deep: {"userDefinedData": deep}),
    "userDefinedData changed": (
        "PATCH", f"{PACKAGES}/{UNKNOWN}", lambda deep: {"userDefinedData": deep},
    ),
    "a VIM": ("POST", VIMS, lambda deep: {"vim": {**VIM, "extra": deep}}),
    "credentials of a VIM": ("POST", VIMS, lambda deep: {"vim": {**VIM, "auth_cred": deep}}),
    "a changed VIM": ("PUT", f"{VIMS}/{UNKNOWN}", lambda deep: {"vim": {"extra": deep}}),
    "metadata": ("POST", "vnf_instances", lambda deep: {"vnfdId": "x", "metadata": deep}),
    "metadata changed": ("PATCH", NO_INSTANCE, lambda deep: {"metadata": deep}),
    "an instantiation": (
        "POST", f"{NO_INSTANCE}/instantiate", lambda deep: {"flavourId": "x", "extensions": deep},
    ),
    "a heal": ("POST", f"{NO_INSTANCE}/heal", lambda deep: {"additionalParams": {"x": deep}}),
    "a filter": (
        "POST", "subscriptions", lambda deep: {"callbackUri": "http://127.0.0.1", "filter": deep},
    ),
    "a change of the package": (
        "POST", f"{NO_INSTANCE}/change_vnfpkg", lambda deep: {**CHANGE, "extensions": deep},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_the_depth_of_a_body_is_limited(name: str, refusing: TestClient) -> None:
    method, path, body = BODIES[name]
    client = Client(refusing, "v2")
    url = path if path.startswith("/") else f"/vnflcm/v2/{path}"
    for lists in (False, True):
        for depth in (DEEPEST + 1, 300, 900):
            answer = client.send(method, url, body(nested(depth, lists=lists)))
            assert answer.status_code == 422, answer.text
            if not lists:
                assert f"{DEEPEST} in each other at most" in answer.json()["detail"]
    for shown in (f"{PACKAGES}?all_fields", VIMS, "/vnflcm/v2/subscriptions"):
        assert refusing.get(shown, headers={"Version": "2.0.0"}).json() in ([], {"vims": []})


@pytest.mark.parametrize("name", BODIES)
def test_the_number_of_values_in_a_body_is_limited(name: str, refusing: TestClient) -> None:
    """The thread that looks at them answers nobody else meanwhile."""
    method, path, body = BODIES[name]
    url = path if path.startswith("/") else f"/vnflcm/v2/{path}"
    for many in ([[]] * 300_000, {str(number): {} for number in range(60_000)}):
        answer = Client(refusing, "v2").send(method, url, body({"x": many}))
        assert answer.status_code == 422, answer.text
        assert "at most 20000 values" in answer.json()["detail"]


def test_a_body_of_the_allowed_depth_is_shown_again(http: TestClient) -> None:
    client, data = Client(http, "v1"), {"a": nested(DEEPEST - 2), "b": nested(9, lists=True)}
    client.call("POST", PACKAGES, {"userDefinedData": data}, 201)
    (package,) = http.get(f"{PACKAGES}?all_fields").json()
    assert package["userDefinedData"] == data


@pytest.mark.parametrize("api", ["v1", "v2"])
def test_what_no_vim_can_be_reached_by_is_refused(api: str, refusing: TestClient) -> None:
    client = Client(refusing, api)
    interfaces = [{"endpoint": url} for url in WRONG_URLS]
    interfaces += [{"endpoint": VIM["auth_url"], "ssl_ca_cert": value} for value in (5, [], {})]
    connections = [{"interfaceInfo": each} for each in interfaces]
    connections += [{"accessInfo": each} for each in WRONG_LOGINS]
    for connection in connections:
        vim = {"id": "1", "vimType": "kubernetes", **connection}
        request = {"flavourId": "x", "vimConnectionInfo": {"a": vim} if api == "v2" else [vim]}
        path = f"/vnflcm/{api}/{NO_INSTANCE}/instantiate"
        problem = client.call("POST", path, request, 422)
        assert "body.vimConnectionInfo." in problem["detail"]
        assert "pl4nted" not in problem["detail"]


def test_credentials_that_are_empty_count_as_left_out(http: TestClient) -> None:
    login = {"bearer_token": "t\n", "client_secret": "", "username": None, "ssl_ca_cert": ""}
    Client(http).call("POST", VIMS, {"vim": {**VIM, "auth_cred": login}}, 201)


def test_what_no_vim_can_be_reached_by_is_not_registered(refusing: TestClient) -> None:
    client = Client(refusing)
    bodies = [{**VIM, "auth_url": url} for url in WRONG_URLS]
    bodies += [{**VIM, "auth_cred": login} for login in (*WRONG_LOGINS, {"ssl_ca_cert": 5})]
    for body in bodies:
        problem = client.call("POST", VIMS, {"vim": body}, 422)
        assert "pl4nted" not in problem["detail"]
        client.call("PUT", f"{VIMS}/{UNKNOWN}", {"vim": body}, 422)
    assert client.call("GET", VIMS) == {"vims": []}


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("text/plain", 415),
        ("application/xml; charset=utf-8", 415),
        ("application/jsonish", 415),
        ("", 415),
        ("application/json", 404),
        ("application/merge-patch+json", 404),
        ("Application/JSON; charset=utf-8", 404),
    ],
)
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", f"/vnflcm/v1/{NO_INSTANCE}", "{}"),
        ("PATCH", f"/vnflcm/v2/{NO_INSTANCE}", "{}"),
        ("POST", f"/vnflcm/v2/{NO_INSTANCE}/change_vnfpkg", '{"vnfdId": "x"}'),
        ("POST", f"/vnflcm/v1/{NO_INSTANCE}/heal", "{}"),
        ("POST", f"/vnflcm/v2/{NO_INSTANCE}/heal", "{}"),
    ],
)
def test_a_body_of_another_type_than_json_is_refused_by_its_type(
    refusing: TestClient, method: str, path: str, body: str, kind: str, status: int
) -> None:
    headers = {"Version": "2.0.0", **({"Content-Type": kind} if kind else {})}
    answer = refusing.request(method, path, content=body.encode(), headers=headers)
    assert answer.status_code == status, answer.text
    if status == 415:
        assert "expected application/json, found" in answer.json()["detail"]
        assert kind.partition(";")[0] in answer.json()["detail"]
