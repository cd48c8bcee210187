# SPDX-License-Identifier: Apache-2.0
"""Whom a request may name: for each route, each role and each field in which there may be the URL
of somebody, nothing that the service keeps goes there, and for who may only read nothing at all.

The table is made from the OpenAPI document, so that a new route or field is in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from fastapi.testclient import TestClient

from container_update import Options
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.internals.service import Service, Settings
from tests.vnfm import vnfs
from tests.vnfm.client import SETTLED, Client
from tests.vnfm.consumer import Consumer
from tests.vnfm.waiting import until

Json = dict[str, Any]
Place = tuple[str | int, ...]

PASSWORD = "st0red-by-the-service"
ROLES = {"write": "ann", "read": "rita", "nobody": "eve"}
TOKENS = {name: f"{role}-t0ken-of-{name}-{'x' * 32}" for role, name in ROLES.items()}
IS_PEER = re.compile(r"\burls?\b|uri\b|address|endpoint|https?://", re.IGNORECASE)
"""In the name or the description of a field that names a peer."""
FREE = {
    "authentication": {
        "authType": ["OAUTH2_CLIENT_CREDENTIALS"],
        "paramsOauth2ClientCredentials": {
            "clientId": "c",
            "clientPassword": "own",
            "tokenEndpoint": "PEER",
        },
    },
    "metadata": {"configmap_secret_paths": ["PEER"]},
    "vim_project": {"auth_url": "PEER"},
    "extra": {"endpoint": "PEER"},
}
"""What is in an attribute of which the document says nothing: PEER is where the URL goes."""
FITTING = {
    "upgrade_type": "RollingUpdate",
    "operation": None,
    "vimType": "ETSINFV.KUBERNETES.V_1",
    "type": "kubernetes",
}


# --- what the document says -----------------------------------------------------------------------


class Document:
    """The OpenAPI document of a service."""

    def __init__(self, document: Json, vnfd_id: str) -> None:
        self.document = document
        self.fitting = {**FITTING, "vnfdId": vnfd_id}

    def bodies(self) -> Iterator[tuple[str, str, Json]]:
        """Yield the method, path and schema of each body that is JSON."""
        for path, item in self.document["paths"].items():
            for method, operation in item.items():
                content = operation.get("requestBody", {}).get("content", {})
                for kind, described in content.items():
                    if "json" in kind:
                        yield method.upper(), path, described.get("schema", {})

    def _resolved(self, schema: Json) -> Json:
        while "$ref" in schema:
            found: Any = self.document
            for name in schema["$ref"].removeprefix("#/").split("/"):
                found = found[name]
            schema = found
        return schema

    def _alternatives(self, schema: Json) -> list[Json]:
        schema = self._resolved(schema)
        either = schema.get("anyOf") or schema.get("oneOf")
        return [one for each in either for one in self._alternatives(each)] if either else [schema]

    def with_peers(self, schema: Json, url: str, name: str = "") -> Iterator[tuple[str, Any]]:
        """Yield each field below that may name a peer, and a value that has the URL there."""
        described = self._resolved(schema).get("description", "")
        for each in self._alternatives(schema):
            text = f"{name} {described} {each.get('description', '')}"
            if each.get("type") == "string" and IS_PEER.search(text):
                yield name, url
            elif each.get("type") == "array":
                for field, value in self.with_peers(each.get("items", {}), url, name):
                    yield f"{name}[].{field}", [value]
            elif each.get("type") == "object":
                yield from self._below(each, url, name)

    def _below(self, schema: Json, url: str, name: str) -> Iterator[tuple[str, Any]]:
        for below, its in schema.get("properties", {}).items():
            for field, value in self.with_peers(its, url, below):
                yield f"{name}.{field}", {**self._needed(schema), below: value}
        others = schema.get("additionalProperties")
        if isinstance(others, dict):
            for field, value in self.with_peers(others, url, "vim1"):
                yield f"{name}.{field}", {"vim1": value}
        if name in FREE and not schema.get("properties"):
            yield f"{name} (free)", _put(FREE[name], url)

    def _needed(self, schema: Json) -> Json:
        fields = schema.get("properties", {})
        needed = set(schema.get("required", ())) | (self.fitting.keys() & fields.keys())
        return {name: self._example(name, fields[name]) for name in needed if name in fields}

    def _example(self, name: str, schema: Json) -> Any:
        first = self._alternatives(schema)[0]
        if "const" in first or "enum" in first:
            return first.get("const", (first.get("enum") or [None])[0])
        if self.fitting.get(name):
            return self.fitting[name]
        if first.get("type") == "object":
            return self._needed(first)
        values: Json = {"array": [], "integer": 1, "number": 1, "boolean": True}
        return values.get(first.get("type", ""), "x")


def _put(value: Any, url: str) -> Any:
    if isinstance(value, dict):
        return {name: _put(below, url) for name, below in value.items()}
    if isinstance(value, list):
        return [_put(below, url) for below in value]
    return url if value == "PEER" else value


# --- the service ----------------------------------------------------------------------------------


@dataclass
class Home:
    """A service that keeps credentials of every kind."""

    http: TestClient
    ids: Mapping[str, str]
    secrets: tuple[str, ...]
    """What nobody else may get."""

    def send(self, role: str, method: str, path: str, body: Any) -> int:
        api = "v2" if "/v2/" in path else "v1"
        known = {name: self.ids.get(f"{api} {name}", each) for name, each in self.ids.items()}
        headers = {"Version": "2.0.0", "X-Auth-Token": TOKENS[ROLES[role]]}
        url = re.sub(r"{(\w+)}", lambda found: known.get(found[1], "none"), path)
        return int(self.http.request(method, url, json=body, headers=headers).status_code)

    def is_quiet(self) -> bool:
        """Return whether no operation and no onboarding is under way."""
        headers = {"Version": "2.0.0", "X-Auth-Token": TOKENS["ann"]}
        operations = self.http.get("/vnflcm/v2/vnf_lcm_op_occs", headers=headers).json()
        packages = self.http.get("/vnfpkgm/v1/vnf_packages", headers=headers).json()
        return all(each["operationState"] in SETTLED for each in operations) and not any(
            each["onboardingState"] in ("UPLOADING", "PROCESSING") for each in packages
        )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    folder = tmp_path_factory.mktemp("peers")
    tokens = folder / "tokens"
    lines = [f"{ROLES[role]} {TOKENS[ROLES[role]]} {role}" for role in ("read", "write")]
    tokens.write_text("\n".join(lines) + "\n")
    tokens.chmod(0o600)
    settings = Settings(
        state_dir=str(folder / "state"),
        token_file=str(tokens),
        callback_hosts=("127.0.0.1",),
        callback_seconds=2,
    )
    options = Options(
        retry_seconds=0, request_timeout=2, timeout=5, lease_seconds=3, url_hosts=("127.0.0.1",)
    )
    app = Service(settings, options).app
    with (
        EmbeddedCluster() as one,
        EmbeddedCluster() as two,
        TestClient(
            app, base_url="http://127.0.0.1:9890", headers={"X-Auth-Token": TOKENS["ann"]}
        ) as http,
    ):
        ids = {}
        for api, cluster in (("v1", one), ("v2", two)):
            client = Client(http, api)
            (folder / api).mkdir()
            packages = [vnfs.package(folder / api, n, vnfs.ours(api))[0] for n in ("1.0", "2.0")]
            old, ids["vnfdId"] = map(client.onboard, packages)
            path = client.create(old)
            info = client.vims(cluster)
            info[0 if api == "v1" else "vim1"]["id"] = "vim1"
            client.do("POST", f"{path}/instantiate", vnfs.instantiation(info))
            ids[f"{api} instance_id"] = path.rpartition("/")[2]
        auth_cred = {"username": "u", "password": PASSWORD, "bearer_token": f"{PASSWORD}-token"}
        vim = {"name": "n", "type": "kubernetes", "auth_url": one.url, "auth_cred": auth_cred}
        client = Client(http)
        ids["vim_id"] = client.call("POST", "/v1.0/vims", {"vim": vim}, 201)["vim"]["id"]
        ids["package_id"] = client.call("POST", "/vnfpkgm/v1/vnf_packages", {}, 201)["id"]
        ids |= dict.fromkeys(("instance_id", "operation_id", "subscription_id"), "none")
        yield Home(http, ids, (one.token, two.token, PASSWORD, *TOKENS.values()))


def rows(home: Home, url: str) -> list[tuple[str, str, str, Json]]:
    """Return every route, with each field that names a peer, and a body that has the URL there."""
    document = Document(home.http.get("/openapi.json").json(), home.ids["vnfdId"])
    found = []
    for method, path, schema in document.bodies():
        for field, value in document.with_peers(schema, url):
            for body in (value, *_with_vim(value)):
                found.append((method, path, field, body))
    return found


def _with_vim(value: Any) -> Iterator[Any]:
    """Yield the same for a stored entry of a VIM as API v1 names it: by its id."""
    entries = value.get("vimConnectionInfo") if isinstance(value, dict) else None
    if isinstance(entries, list):
        yield {**value, "vimConnectionInfo": [{**entries[0], "id": "vim1"}]}


def test_the_table_has_every_kind_of_peer(home: Home) -> None:
    fields = " ".join(f"{path} {field}" for _, path, field, _ in rows(home, "http://x"))
    for known in (
        *("interfaceInfo.endpoint", "accessInfo.oidc_token_url", "callbackUri", "auth_url"),
        *("addressInformation", "authentication (free)", "lcm-kubernetes-def-files", "/plan"),
        *("change_vnfpkg", "upload_from_uri", "/instantiate", "/v1.0/vims/{"),
    ):
        assert known in fields


THOROUGH = [pytest.param(role, marks=pytest.mark.thorough) for role in ("write", "nobody")]


@pytest.mark.parametrize("role", ["read", *THOROUGH])
def test_nothing_that_the_service_keeps_goes_to_whom_a_request_names(home: Home, role: str) -> None:
    told: list[str] = []
    arrived = 0
    with Consumer() as peer:
        for method, path, field, body in rows(home, peer.url):
            peer.requests.clear()
            status = home.send(role, method, path, body)
            until(home.is_quiet, f"{method} {path} to end", 60)
            assert status < 500 or status == 502, (method, path, field, status)
            arrived += len(peer.requests)
            for request in peer.requests:
                sent = f"{request.path} {request.headers} {request.text}"
                if role != "write" or any(secret in sent for secret in home.secrets):
                    told.append(f"{method} {path}: {field}: {request.method} {request.path}")
            assert role != "nobody" or status == 401, (method, path, status)
    assert told == []
    assert bool(arrived) is (role == "write"), "who may write makes it connect"
