# SPDX-License-Identifier: Apache-2.0
"""vimConnectionInfo in requests to modify an instance or to change its package."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from container_update import Options
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.internals.core import build
from tests.internals.service import authentication, vims
from tests.vnfm import vnfs
from tests.vnfm.client import Client
from tests.vnfm.clouds import ROLLING, Cloud, Sample, instantiated

Json = dict[str, Any]

ONE = {"id": "1", "vimType": "kubernetes", "accessInfo": {"bearer_token": "a", "region": "r"}}
TWO = {"id": "2", "vimType": "kubernetes"}
NEW_TOKEN = {"accessInfo": {"bearer_token": "b"}}
MERGED_ONE = {**ONE, "accessInfo": {"bearer_token": "b", "region": "r"}}

CASES: dict[str, tuple[Any, Json, Any]] = {
    "nothing": ([ONE, TWO], {}, [ONE, TWO]),
    "v1: by id": ([ONE, TWO], {"vimConnectionInfo": [{"id": "1", **NEW_TOKEN}]}, [MERGED_ONE, TWO]),
    "v1: another": ([ONE], {"vimConnectionInfo": [TWO]}, [ONE, TWO]),
    "v1: removed": ([ONE, TWO], {"vimConnectionInfoDeleteIds": ["1"]}, [TWO]),
    "v1: one for another": (
        [ONE],
        {"vimConnectionInfo": [TWO], "vimConnectionInfoDeleteIds": ["1"]},
        [TWO],
    ),
    "v2: by name": (
        {"a": ONE, "b": TWO},
        {"vimConnectionInfo": {"a": NEW_TOKEN}},
        {"a": MERGED_ONE, "b": TWO},
    ),
    "v2: null removes": ({"a": ONE, "b": TWO}, {"vimConnectionInfo": {"a": None}}, {"b": TWO}),
    "v2: null removes an attribute": (
        {"a": ONE},
        {"vimConnectionInfo": {"a": {"accessInfo": {"region": None}}}},
        {"a": {**ONE, "accessInfo": {"bearer_token": "a"}}},
    ),
    "v2: removed": ({"a": ONE, "b": TWO}, {"vimConnectionInfoDeleteIds": ["a"]}, {"b": TWO}),
    "v2: another": (None, {"vimConnectionInfo": {"a": ONE}}, {"a": ONE}),
}


@pytest.mark.parametrize("case", CASES)
def test_entries_are_merged_by_id_or_name(case: str) -> None:
    recorded, request, expected = CASES[case]
    before = json.dumps(recorded)
    assert vims.modify_connections(recorded, request) == expected
    assert json.dumps(recorded) == before


# --- through the API ----------------------------------------------------------------------------


@pytest.fixture
def options() -> Options:
    return Options(timeout=30, retry_seconds=1, drain_seconds=0, grace_period=1)


class Cnf:
    """A VNF in a cluster whose token may change."""

    def __init__(self, client: Client, cluster: EmbeddedCluster, folder: Path) -> None:
        self.client, self.cluster = client, cluster
        packages = [vnfs.package(folder, text, vnfs.ours(client.api)) for text in ("1.0", "2.0")]
        old, self.new = (client.onboard(path) for path, _ in packages)
        self.path = client.create(old)
        vim_info = client.vims(cluster)
        if client.api == "v1":
            vim_info[0]["id"] = "vim1"
        client.do("POST", f"{self.path}/instantiate", vnfs.instantiation(vim_info))

    def change_token(self) -> None:
        """Let the cluster accept another token only."""
        self.cluster.token = self.cluster._server._access.token = "another-token"

    def patch(self, token: str) -> Any:
        """Return a vimConnectionInfo that has a token for the VIM and a second VIM."""
        entries = {
            "vim1": {"accessInfo": {"bearer_token": token}},
            "spare": {"vimType": "kubernetes", "vimId": "spare"},
        }
        if self.client.api == "v2":
            return entries
        return [{"id": name, **entry} for name, entry in entries.items()]

    def names(self) -> set[str]:
        """Return the names or ids of the recorded VIMs."""
        recorded = self.client.call("GET", self.path)["vimConnectionInfo"]
        return set(recorded) if self.client.api == "v2" else {entry["id"] for entry in recorded}


@pytest.fixture
def cnf(client: Client, cluster: EmbeddedCluster, tmp_path: Path) -> Cnf:
    return Cnf(client, cluster, tmp_path)


def test_a_modification_uses_the_new_connection_and_records_it_with_its_success(cnf: Cnf) -> None:
    body = vnfs.modification(cnf.new)
    wrong = {**body, "vimConnectionInfo": cnf.patch("wrong")}
    failed = cnf.client.do("PATCH", cnf.path, wrong, "FAILED_TEMP")
    assert cnf.names() == {"vim1"}
    operation = failed["_links"]["self"]["href"]
    assert cnf.client.send("POST", f"{operation}/rollback").status_code == 202
    assert cnf.client.settled(operation)["operationState"] == "ROLLED_BACK", "nothing was written"
    assert cnf.names() == {"vim1"}

    cnf.change_token()
    done = cnf.client.do(
        "PATCH", cnf.path, {**body, "vimConnectionInfo": cnf.patch(cnf.cluster.token)}
    )
    assert cnf.names() == {"vim1", "spare"}
    assert cnf.cluster.token not in str(done["changedInfo"]["vimConnectionInfo"])
    assert cnf.client.call("GET", cnf.path)["vnfdId"] == cnf.new

    removal = {"vimConnectionInfoDeleteIds": ["spare"]}
    done = cnf.client.do("PATCH", cnf.path, removal)
    assert done["operationParams"] == removal
    assert cnf.names() == {"vim1"}
    cnf.client.do("POST", f"{cnf.path}/terminate", {"terminationType": "FORCEFUL"})


def test_what_would_take_the_vim_from_the_vnf_is_refused(cnf: Cnf) -> None:
    is_v2 = cnf.client.api == "v2"
    openstack = {"vimType": "openstack", "interfaceInfo": {"endpoint": "http://127.0.0.1:1"}}
    wrong: list[tuple[Json, str]] = [
        ({"vimConnectionInfoDeleteIds": ["vim1"]}, "expected an entry to be left"),
        ({"vimConnectionInfoDeleteIds": ["vim2"]}, "expected ids of entries (vim1)"),
        (
            {"vimConnectionInfo": cnf.patch("t"), "vimConnectionInfoDeleteIds": ["vim1"]},
            "that vimConnectionInfo does not modify, found vim1",
        ),
        (
            {
                "vimConnectionInfo": {"x": openstack} if is_v2 else [{"id": "x", **openstack}],
                "vimConnectionInfoDeleteIds": ["vim1"],
            },
            "leaves the VNF in its VIM of vimType ETSINFV.KUBERNETES.V_1, found one that leads",
        ),
    ]
    if is_v2:
        wrong.append(({"vimConnectionInfo": {"vim1": None}}, "expected an entry to be left"))
    for body, words in wrong:
        assert words in cnf.client.call("PATCH", cnf.path, body, 422)["detail"]


ELSEWHERE: dict[str, Json] = {
    "another endpoint": {"interfaceInfo": {"endpoint": "https://127.0.0.1:1"}},
    "another authority": {"interfaceInfo": {"ssl_ca_cert": "pl4nted"}},
    "no authority": {"interfaceInfo": {"ssl_ca_cert": None}},
    "no verification": {"interfaceInfo": {"skipCertificateVerification": True}},
    "a provider of tokens": {"accessInfo": {"oidc_token_url": "https://127.0.0.1:1/token"}},
    "a part of the credentials": {
        "interfaceInfo": {"endpoint": "https://127.0.0.1:1"},
        "accessInfo": {"username": "u", "password": "p"},
    },
}


def test_stored_credentials_go_to_nobody_whom_a_request_names(cnf: Cnf) -> None:
    change = {"vnfdId": cnf.new, "additionalParams": {"upgrade_type": "RollingUpdate"}}
    body = vnfs.modification(cnf.new)
    for patch in ELSEWHERE.values():
        is_v2 = cnf.client.api == "v2"
        vim_info = {"vim1": patch} if is_v2 else [{"id": "vim1", **patch}]
        sent = {**body, "vimConnectionInfo": vim_info}
        plan = {"operation": "MODIFY_INFO", "request": sent}
        requests = [("PATCH", cnf.path, sent), ("POST", f"{cnf.path}/plan", plan)]
        if is_v2:
            sent = {**change, "vimConnectionInfo": vim_info}
            plan = {"operation": "CHANGE_VNFPKG", "request": sent}
            requests += [("POST", f"{cnf.path}/change_vnfpkg", sent)]
            requests += [("POST", f"{cnf.path}/plan", plan)]
        for method, path, request in requests:
            refused = cnf.client.call(method, path, request, 422)["detail"]
            assert "vimConnectionInfo.vim1: expected all of accessInfo in a request" in refused
            assert "found no bearer_token" in refused


def test_a_request_with_all_credentials_may_name_another_endpoint(cnf: Cnf) -> None:
    patch: Json = {
        "interfaceInfo": {"endpoint": cnf.cluster.url.replace("127.0.0.1", "localhost")},
        "accessInfo": {"bearer_token": cnf.cluster.token},
    }
    vim_info = {"vim1": patch} if cnf.client.api == "v2" else [{"id": "vim1", **patch}]
    cnf.client.do("PATCH", cnf.path, {"vimConnectionInfo": vim_info})


def test_a_plan_of_a_token_that_may_only_read_names_no_vim(
    cnf: Cnf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "ANONYMOUS", authentication.User("rita", may_change=False))
    request = vnfs.modification(cnf.new)
    plan = {"operation": "MODIFY_INFO", "request": request}
    cnf.client.call("POST", f"{cnf.path}/plan", plan, 200)
    with_vim = {**plan, "request": {**request, "vimConnectionInfo": cnf.patch("t")}}
    refused = cnf.client.call("POST", f"{cnf.path}/plan", with_vim, 403)["detail"]
    assert "the token of rita may only read: vimConnectionInfo says where" in refused


REGISTERED_ELSEWHERE: dict[str, Json] = {
    "another endpoint": {"auth_url": "https://127.0.0.1:1"},
    "another authority": {"auth_cred": {"ssl_ca_cert": "pl4nted"}},
    "no authority": {"auth_cred": {"ssl_ca_cert": None}},
    "no verification": {"auth_cred": {"cert_verify": "False"}},
    "a provider of tokens": {"auth_cred": {"oidc_token_url": "https://127.0.0.1:1/token"}},
    "a part of the credentials": {
        "auth_url": "https://127.0.0.1:1",
        "auth_cred": {"username": "u", "ssl_ca_cert": None},
    },
}
STORED: dict[str, Json] = {
    "kubernetes": {"bearer_token": "stored", "password": "st0red"},
    "openstack": {"username": "u", "password": "st0red", "user_domain_name": "Default"},
}


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        *((kind, what) for kind in STORED for what in ("another endpoint", "another authority")),
        *(("kubernetes", what) for what in ("no authority", "a provider of tokens")),
        *((kind, "a part of the credentials") for kind in STORED),
        ("openstack", "no verification"),
    ],
)
def test_a_registered_vim_keeps_its_credentials_from_whom_a_request_names(
    http: TestClient, kind: str, what: str
) -> None:
    client, access = Client(http), STORED[kind]
    vim = {"type": kind, "name": "one", "auth_url": "https://127.0.0.1:2",
           "auth_cred": {**access, "ssl_ca_cert": "ca"}}  # fmt: skip
    path = f"/v1.0/vims/{client.call('POST', '/v1.0/vims', {'vim': vim}, 201)['vim']['id']}"
    patch = REGISTERED_ELSEWHERE[what]
    refused = client.call("PUT", path, {"vim": {**patch, "name": "two"}}, 422)["detail"]
    assert "vim: expected all of auth_cred in a request that changes where it is sent" in refused
    assert "password" in refused
    assert "st0red" not in refused
    shown = client.call("GET", path)["vim"]
    assert (shown["name"], shown["auth_url"]) == ("one", vim["auth_url"])

    complete = {**access, **patch.get("auth_cred", {}), "password": "another"}
    changed = client.call("PUT", path, {"vim": {**patch, "auth_cred": complete}})["vim"]
    assert changed["auth_url"] == patch.get("auth_url", vim["auth_url"])


TELLS = """
import pickle, sys
vims = pickle.load(sys.stdin.buffer)["coordination"]["access"]["vim_connection_info"]
print(sorted(vims), vims["vim"]["extra"])
"""


def test_a_change_of_the_package_does_the_same_on_kubernetes(
    http: TestClient, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    cnf = Cnf(Client(http, "v2"), cluster, tmp_path)
    cnf.change_token()
    body: Json = {"vnfdId": cnf.new, "additionalParams": {"upgrade_type": "RollingUpdate"}}
    refused = {**body, "vimConnectionInfo": {"vim1": None}}
    assert (
        "to be left" in cnf.client.call("POST", f"{cnf.path}/change_vnfpkg", refused, 422)["detail"]
    )
    cnf.client.do("POST", f"{cnf.path}/change_vnfpkg", body, "FAILED_TEMP")
    (failed,) = [
        each
        for each in cnf.client.call("GET", "/vnflcm/v2/vnf_lcm_op_occs")
        if each["operationState"] == "FAILED_TEMP"
    ]
    cnf.client.send("POST", f"{failed['_links']['self']['href']}/fail")
    body["vimConnectionInfo"] = cnf.patch(cluster.token)
    cnf.client.do("POST", f"{cnf.path}/change_vnfpkg", body)
    assert cnf.names() == {"vim1", "spare"}
    assert cnf.client.call("GET", cnf.path)["vnfdId"] == cnf.new


def test_a_change_of_the_package_does_the_same_on_openstack_and_its_scripts_too(
    cloud: Cloud, http: TestClient, tmp_path: Path
) -> None:
    sample = Sample(ROLLING, cloud, tmp_path)
    sample.zipped("after")
    package = tmp_path / ROLLING / "after"
    (package / "Scripts/check_vnfc.py").write_text(TELLS)
    shutil.rmtree(package / "TOSCA-Metadata")
    build.write_metadata(package)
    vnf = instantiated(Client(http, "v2"), sample, cloud.vims())
    cloud.stack.keystone.password = "another-password"
    request = vnf.sample.change()
    access = {"accessInfo": {"password": "another-password"}, "extra": {"note": "merged"}}
    request["vimConnectionInfo"] = {"vim1": access}
    operation = vnf.client.begin("POST", f"{vnf.path}/change_vnfpkg", request)
    assert vnf.client.settled(operation)["operationState"] == "COMPLETED"
    outputs = [step["message"] for step in vnf.steps(operation) if "check_vnfc" in step["object"]]
    assert outputs
    assert all("['vim'] {'note': 'merged'}" in output for output in outputs)
    assert vnf.shown()["vnfdId"] == request["vnfdId"]
