# SPDX-License-Identifier: Apache-2.0
"""The REST API: responses, refusals, and what it never shows."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event

from container_update import Options
from container_update.emulator.faults import Fault, Faults, answer
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.functional.gate import Gate
from tests.internals.service import Service, Settings, workers
from tests.vnfm import vnfs
from tests.vnfm.client import Client

URL = "http://127.0.0.1:9890"
UNKNOWN = "00000000-0000-0000-0000-000000000000"


@pytest.fixture
def service(tmp_path: Path) -> Service:
    settings = Settings(state_dir=str(tmp_path / "state"), auth="none", page_size=3)
    return Service(settings, Options(lease_seconds=3, timeout=30, grace_period=1))


@pytest.fixture
def http(service: Service) -> Iterator[TestClient]:
    with TestClient(service.app, base_url=URL) as http:
        yield http


@pytest.fixture
def v1(http: TestClient) -> Client:
    return Client(http, "v1")


@pytest.fixture(params=["v1", "v2"])
def client(request: pytest.FixtureRequest, http: TestClient) -> Client:
    return Client(http, str(request.param))


@pytest.fixture
def vnfd_id(client: Client, tmp_path: Path) -> str:
    package, _ = vnfs.package(tmp_path, "1.0", vnfs.ours(client.api))
    return client.onboard(package)


# --- refusals -----------------------------------------------------------------------------------

V2 = {"Version": "2.0.0"}
REFUSALS: dict[str, tuple[int, str, str, Any, dict[str, str]]] = {
    "no such instance": (404, "GET", f"/vnflcm/v1/vnf_instances/{UNKNOWN}", None, {}),
    "no such instance to change": (
        404, "POST", f"/vnflcm/v2/vnf_instances/{UNKNOWN}/change_vnfpkg",
        {"vnfdId": "x", "additionalParams": {"upgrade_type": "RollingUpdate"}}, V2,
    ),
    "no such operation": (404, "GET", f"/vnflcm/v1/vnf_lcm_op_occs/{UNKNOWN}", None, {}),
    "an id that is none": (404, "GET", "/vnflcm/v1/vnf_instances/%00", None, {}),
    "no such package": (404, "GET", f"/vnfpkgm/v1/vnf_packages/{UNKNOWN}", None, {}),
    "no such VIM": (404, "GET", f"/v1.0/vims/{UNKNOWN}.json", None, {}),
    "no such subscription": (404, "GET", f"/vnflcm/v1/subscriptions/{UNKNOWN}", None, {}),
    "no such path": (404, "GET", "/vnflcm/v3/vnf_instances", None, {}),
    "v2 without a version": (400, "GET", "/vnflcm/v2/vnf_instances", None, {}),
    "v2 of an unknown version": (
        406, "GET", "/vnflcm/v2/vnf_instances", None, {"Version": "9.0.0"},
    ),
    "a filter that is none": (400, "GET", "/vnflcm/v1/vnf_instances?filter=x", None, {}),
    "a page that does not exist": (
        400, "GET", "/vnflcm/v1/vnf_instances?nextpage_opaque_marker=x", None, {},
    ),
    "an unknown VNFD": (422, "POST", "/vnflcm/v1/vnf_instances", {"vnfdId": "x"}, {}),
    "a missing attribute": (422, "POST", "/vnflcm/v1/vnf_instances", {}, {}),
    "an unknown attribute": (
        422, "POST", "/vnflcm/v2/vnf_instances", {"vnfdId": "x", "colour": "green"}, V2,
    ),
    "half a character": (
        422, "POST", "/vnflcm/v1/vnf_instances", {"vnfdId": "x", "metadata": {"a": "\ud800"}}, {},
    ),
    "a VIM of another kind": (
        422, "POST", "/v1.0/vims.json",
        {"vim": {"name": "n", "auth_url": "http://x", "type": "aws"}}, {},
    ),
    "no answer as a page": (406, "GET", "/vnflcm/v1/vnf_instances", None, {"Accept": "text/html"}),
    "no package as a page": (
        406, "GET", f"/vnfpkgm/v1/vnf_packages/{UNKNOWN}/vnfd", None, {"Accept": "text/html"},
    ),
    "JSON refused by its weight": (
        406, "GET", "/v1.0/vims", None, {"Accept": "text/plain, application/json;q=0.0"},
    ),
    "an upload that says it is no zip": (
        415, "PUT", f"/vnfpkgm/v1/vnf_packages/{UNKNOWN}/package_content", {}, {},
    ),
    "no package with the VNFD": (404, "GET", "/vnfpkgm/v1/onboarded_vnf_packages/x", None, {}),
    "a method that is none": (405, "PUT", "/vnflcm/v1/vnf_instances", None, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_is_a_problem_details_body(name: str, refusing: TestClient) -> None:
    status, method, path, body, headers = REFUSALS[name]
    if name == "half a character":
        text = '{"vnfdId": "x", "metadata": {"a": "\\ud800"}}'
        headers = {"Content-Type": "application/json"}
        answer = refusing.request(method, path, content=text, headers=headers)
    else:
        answer = refusing.request(method, path, json=body, headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert problem["detail"]
    version = {"v1": "1.3.0", "v2": "2.0.0"}.get(path.split("/")[2])
    assert answer.headers.get("version") == (version if path.startswith("/vnflcm/") else None)


ALLOWED: dict[str, str] = {
    "/vnflcm/v2/vnf_instances": "GET, POST",
    f"/vnflcm/v1/vnf_instances/{UNKNOWN}": "DELETE, GET, PATCH",
    f"/vnflcm/v2/vnf_instances/{UNKNOWN}/heal": "POST",
    f"/vnflcm/v1/vnf_instances/{UNKNOWN}/operate": "POST",
    f"/vnfpkgm/v1/vnf_packages/{UNKNOWN}/package_content": "GET, PUT",
    "/vnfpkgm/v1/onboarded_vnf_packages/x/artifacts/y": "GET",
    "/vnfpkgm/api_versions": "GET",
    "/v1.0/vims.json": "GET, POST",
    "/healthz": "GET",
}


@pytest.mark.parametrize("path", ALLOWED)
def test_a_method_that_a_resource_does_not_have_is_told_those_that_it_has(
    path: str, refusing: TestClient
) -> None:
    for method in ("OPTIONS", "TRACE"):
        answer = refusing.request(method, path, headers=V2)
        assert answer.status_code == 405
        assert answer.headers["allow"] == ALLOWED[path]
        assert answer.json()["detail"].endswith(f"found {method}")


@pytest.mark.parametrize(
    "accept", ["text/html, */*;q=0.1", "Application/JSON", "application/*", "application/json;q=1"]
)
def test_an_answer_is_json_where_the_client_admits_it(accept: str, refusing: TestClient) -> None:
    """RFC 9110, 12.5.1."""
    answer = refusing.get("/vnflcm/v1/vnf_instances", headers={"Accept": accept})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    ("path", "versions"),
    [
        ("/vnflcm", ["1.3.0", "2.0.0"]),
        ("/vnflcm/v1", ["1.3.0"]),
        ("/vnflcm/v2", ["2.0.0"]),
        ("/vnfpkgm", ["1.2.0"]),
        ("/vnfpkgm/v1", ["1.2.0"]),
    ],
)
def test_each_api_says_its_versions(path: str, versions: list[str], refusing: TestClient) -> None:
    """SOL013, 9.3."""
    answer = refusing.get(f"{path}/api_versions").json()
    shown = [{"version": version, "isDeprecated": False} for version in versions]
    assert answer == {"uriPrefix": path, "apiVersions": shown}


@pytest.mark.parametrize("task", ["scale_to_level", "operate", "change_flavour", "change_ext_conn"])
def test_a_task_that_no_vnf_supports_does_not_exist(
    task: str, client: Client, vnfd_id: str
) -> None:
    """SOL003, 5.4.5.3.1 and others: 404, as for a VNF that does not support the task."""
    refused = client.call("POST", f"{client.create(vnfd_id)}/{task}", {}, 404)
    assert "does not support the task" in refused["detail"]


@pytest.mark.parametrize("resource", ["vnf_instances", "vnf_lcm_op_occs", "subscriptions"])
def test_a_list_refuses_a_parameter_that_it_does_not_have(resource: str, client: Client) -> None:
    path = f"/vnflcm/{client.api}/{resource}"
    answer = client.http.request("GET", f"{path}?attribute_not_exist=some_value", headers=V2)
    assert answer.status_code == 400
    assert answer.json()["detail"].endswith("found 'attribute_not_exist'")
    for accepted in ("exclude-fields=operationParams", "fields=_links/self"):  # of tackerclient
        assert client.http.request("GET", f"{path}?{accepted}", headers=V2).status_code == 200


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("filter=(eq,operation,HEAL)&filter=(eq,operation,SCALE)", "query: filter is there twice"),
        ("exclude_fields=error&exclude-fields=_links", "query: exclude_fields is there twice"),
        ("fields=", "fields: '' is no path"),
        ("exclude_fields=a//b", "exclude_fields: 'a//b' is no path"),
        ("fields=wrong", "query: the resource has no attribute 'wrong'"),
    ],
)
def test_a_query_that_would_be_read_in_part_is_refused(
    query: str, why: str, client: Client
) -> None:
    path = f"/vnflcm/{client.api}/vnf_lcm_op_occs?{query}"
    answer = client.http.request("GET", path, headers=V2)
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith(why)


# --- packages -----------------------------------------------------------------------------------


def test_a_package_goes_through_its_states(v1: Client, tmp_path: Path) -> None:
    path, vnfd_id = vnfs.package(tmp_path, "1.0", vnfs.ours("v1"))
    created = v1.call("POST", "/vnfpkgm/v1/vnf_packages", {"userDefinedData": {"a": "b"}}, 201)
    assert (created["onboardingState"], created["operationalState"]) == ("CREATED", "DISABLED")
    v1.call("DELETE", created["_links"]["self"]["href"], status=204)

    package = v1.read_in(v1.upload(path))
    self = package["_links"]["self"]["href"]
    assert package["vnfdId"] == vnfd_id
    assert package["vnfProductName"] == "Small VNF"
    assert package["vnfSoftwareVersion"] == "1.0"
    states = ("onboardingState", "operationalState", "usageState")
    assert [package[name] for name in states] == ["ONBOARDED", "ENABLED", "NOT_IN_USE"]
    artifacts = {each["artifactPath"] for each in package["additionalArtifacts"]}
    assert "Files/kubernetes/front.yaml" in artifacts
    content = v1.send("GET", package["_links"]["packageContent"]["href"])
    assert content.content == path.read_bytes()

    by_vnfd = f"/vnfpkgm/v1/onboarded_vnf_packages/{vnfd_id}"
    assert v1.call("GET", by_vnfd) == package
    (listed,) = v1.call("GET", "/vnfpkgm/v1/onboarded_vnf_packages")
    assert listed["id"] == package["id"]
    for part in ("package_content", "vnfd", "artifacts/Files/kubernetes/front.yaml"):
        assert (
            v1.send("GET", f"{by_vnfd}/{part}").content == v1.send("GET", f"{self}/{part}").content
        )

    instance = v1.create(vnfd_id)
    assert v1.call("GET", self)["usageState"] == "IN_USE"
    v1.call("DELETE", self, status=409)
    v1.call("PATCH", self, {"operationalState": "DISABLED"})
    v1.call("DELETE", self, status=409)
    v1.call("POST", "/vnflcm/v1/vnf_instances", {"vnfdId": vnfd_id}, 422)
    v1.call("DELETE", instance, status=204)
    v1.call("DELETE", self, status=204)
    v1.call("GET", self, status=404)


def test_user_data_of_a_package_are_merged(v1: Client) -> None:
    """SOL005, 9.5.2.3: by the rules of a JSON merge patch (RFC 7396)."""
    given = {"a": "b", "c": {"d": 1, "e": 2}}
    created = v1.call("POST", "/vnfpkgm/v1/vnf_packages", {"userDefinedData": given}, 201)
    path = created["_links"]["self"]["href"]
    v1.call("PATCH", path, {"userDefinedData": {"a": None, "c": {"d": 3}}})
    assert v1.call("GET", path)["userDefinedData"] == {"c": {"d": 3, "e": 2}}


def test_a_package_keeps_its_content_where_its_deletion_is_not_stored(
    v1: Client, tmp_path: Path, service: Service
) -> None:
    package, _ = vnfs.package(tmp_path, "1.0", vnfs.ours("v1"))
    onboarded = v1.read_in(v1.upload(package))
    path = onboarded["_links"]["self"]["href"]
    v1.call("PATCH", path, {"operationalState": "DISABLED"})

    def no_commit(_: object) -> None:
        raise OSError("no database")

    engine = service.context.database.engine
    event.listen(engine, "commit", no_commit)
    assert v1.send("DELETE", path).status_code == 500
    event.remove(engine, "commit", no_commit)
    content = v1.send("GET", onboarded["_links"]["packageContent"]["href"])
    assert content.content == package.read_bytes()


def test_a_second_package_with_the_same_vnfd_is_refused(v1: Client, tmp_path: Path) -> None:
    path, _ = vnfs.package(tmp_path, "1.0", vnfs.ours("v1"))
    v1.onboard(path)
    second = v1.read_in(v1.upload(path))
    assert second["onboardingState"] == "ERROR"
    assert second["onboardingFailureDetails"]["status"] == 409


def test_a_wrong_package_reports_its_error_and_can_be_uploaded_again(
    v1: Client, tmp_path: Path, service: Service
) -> None:
    wrong = tmp_path / "wrong.zip"
    wrong.write_bytes(b"no zip")
    package = v1.read_in(v1.upload(wrong))
    assert package["onboardingState"] == "ERROR"
    details = package["onboardingFailureDetails"]
    assert details["status"] == 422
    assert str(service.context.settings.folder) not in details["detail"]

    right, vnfd_id = vnfs.package(tmp_path, "1.0", vnfs.ours("v1"))
    path = package["_links"]["packageContent"]["href"]
    headers = {"Content-Type": "application/zip"}
    uploaded = v1.http.request("PUT", path, content=right.read_bytes(), headers=headers)
    assert uploaded.status_code == 202
    assert v1.read_in(package["id"])["vnfdId"] == vnfd_id


# --- instances ----------------------------------------------------------------------------------


def test_each_api_sees_only_its_own_instances(client: Client, vnfd_id: str) -> None:
    path = client.create(vnfd_id)
    other = path.replace(client.api, {"v1": "v2", "v2": "v1"}[client.api])
    assert client.call("GET", path)["vnfdId"] == vnfd_id
    client.call("GET", other, status=404)
    assert client.call("GET", other.rpartition("/")[0]) == []


def test_modifying_a_not_instantiated_instance_changes_only_its_record(
    client: Client, vnfd_id: str
) -> None:
    path = client.create(vnfd_id)
    request = {
        "vnfInstanceName": "other",
        "vnfInstanceDescription": "another",
        "vnfConfigurableProperties": {"isAutoscaleEnabled": "false"},
        "metadata": {"a": "b"},
        "extensions": {"c": "d"},
    }
    client.do("PATCH", path, request)
    instance = client.call("GET", path)
    assert {name: instance[name] for name in request} == request
    client.call("POST", f"{path}/terminate", {"terminationType": "FORCEFUL"}, 409)
    if client.api == "v2":
        change = {"vnfdId": vnfd_id, "additionalParams": {"upgrade_type": "RollingUpdate"}}
        client.call("POST", f"{path}/change_vnfpkg", change, 409)
    client.call("DELETE", path, status=204)


def test_a_modification_of_what_was_changed_since_is_refused(client: Client, vnfd_id: str) -> None:
    instance = client.create(vnfd_id)
    package = client.call("GET", "/vnfpkgm/v1/vnf_packages")[0]["_links"]["self"]["href"]

    def modify(path: str, value: str, if_match: str) -> Any:
        body = {"vnfInstanceName": value} if path == instance else {"userDefinedData": {"a": value}}
        answer = client.send("PATCH", path, body, headers={"If-Match": if_match})
        if answer.status_code == 202:
            client.settled(answer.headers["Location"])
        return answer

    for path in (instance, package):
        first = client.send("GET", path).headers["etag"]
        assert modify(path, "one", first).is_success
        assert modify(path, "two", first).status_code == 412
        assert modify(path, "two", '"another", W/"x"').status_code == 412
        assert "one" in client.send("GET", path).text
        second = client.send("GET", path).headers["etag"]
        assert modify(path, "two", f'"another", {second}').is_success
        assert modify(path, "three", "*").is_success
        assert "three" in client.send("GET", path).text
    enabled = {"operationalState": "ENABLED"}  # as it is: a conflict, if the state were the same
    assert client.send("PATCH", package, enabled).status_code == 409
    other = {"If-Match": '"another"'}
    assert client.send("PATCH", package, enabled, headers=other).status_code == 412


def test_null_in_place_of_an_object_is_refused(client: Client, vnfd_id: str) -> None:
    """A merge patch removes what is null; these are not removed."""
    instance = client.create(vnfd_id)
    package = client.call("GET", "/vnfpkgm/v1/vnf_packages")[0]["_links"]["self"]["href"]
    of_instance = ("metadata", "extensions", "vnfConfigurableProperties")
    for path, name in [*((instance, name) for name in of_instance), (package, "userDefinedData")]:
        answer = client.send("PATCH", path, {name: None})
        assert answer.status_code == 422, name
        assert answer.json()["detail"].startswith(f"body.{name}: ")


def test_an_attribute_without_a_value_is_absent(client: Client, vnfd_id: str) -> None:
    """ETSI's schemas want a text: a null is none."""
    path = client.create(vnfd_id)
    root = path.rpartition("/")[0]
    assert "vnfInstanceDescription" not in client.call("GET", path)
    client.do("PATCH", path, {"vnfInstanceDescription": "some"})
    client.do("PATCH", path, {"vnfInstanceDescription": None})
    for shown in (client.call("GET", path), *client.call("GET", root)):
        assert None not in shown.values()
        assert "vnfInstanceDescription" not in shown


def test_credentials_of_a_vim_are_kept_but_never_shown(
    client: Client, vnfd_id: str, cluster: EmbeddedCluster, service: Service
) -> None:
    path = client.create(vnfd_id)
    operation = client.do("POST", f"{path}/instantiate", vnfs.instantiation(client.vims(cluster)))
    responses = [
        client.send("GET", each).text for each in (path, operation["_links"]["self"]["href"])
    ]
    assert all(cluster.token not in text for text in responses)
    assert "vimConnectionInfo" in responses[0]
    database = b"".join(
        each.read_bytes() for each in service.context.settings.folder.glob("*.sqlite*")
    )
    assert cluster.token.encode() not in database
    assert b"PRIVATE" not in database
    client.do("POST", f"{path}/terminate", {"terminationType": "GRACEFUL"})


def test_a_vim_is_registered_read_changed_and_deleted(v1: Client, cluster: EmbeddedCluster) -> None:
    access = {"bearer_token": cluster.token, "ssl_ca_cert": cluster.ca_text}
    vim = {"type": "kubernetes", "name": "one", "auth_url": cluster.url, "auth_cred": access,
           "vim_project": {"name": "default"}, "is_default": True}  # fmt: skip
    one = v1.call("POST", "/v1.0/vims.json", {"vim": vim}, 201)["vim"]
    v1.call("POST", "/v1.0/vims", {"vim": vim}, 409)
    two = v1.call("POST", "/v1.0/vims", {"vim": {**vim, "name": "two"}}, 201)["vim"]
    vims = {each["name"]: each["is_default"] for each in v1.call("GET", "/v1.0/vims")["vims"]}
    assert vims == {"one": False, "two": True}
    by_name = v1.http.request("GET", "/v1.0/vims.json?name=one&fields=id").json()["vims"]
    assert [each["id"] for each in by_name] == [one["id"]]
    path = f"/v1.0/vims/{two['id']}.json"
    changed = v1.call("PUT", path, {"vim": {"name": "three", "auth_cred": {"bearer_token": "x"}}})
    assert changed["vim"]["name"] == "three"
    assert cluster.token not in v1.send("GET", "/v1.0/vims").text
    v1.call("DELETE", path, status=204)
    v1.call("GET", path, status=404)


def test_the_status_of_a_vim_is_asked(v1: Client, cluster: EmbeddedCluster) -> None:
    access = {"bearer_token": cluster.token, "ssl_ca_cert": cluster.ca_text}
    right = {"auth_url": cluster.url, "auth_cred": access}
    vim = v1.call("POST", "/v1.0/vims", {"vim": {"type": "kubernetes", "name": "n", **right}}, 201)
    path = f"/v1.0/vims/{vim['vim']['id']}"
    assert vim["vim"]["status"] == "ACTIVE"
    elsewhere = {"auth_url": "https://127.0.0.1:1", "auth_cred": access}
    for wrong in (elsewhere, {"auth_cred": {"bearer_token": "wrong"}}):
        assert v1.call("PUT", path, {"vim": wrong})["vim"]["status"] == "ERROR"
        assert [each["status"] for each in v1.call("GET", "/v1.0/vims")["vims"]] == ["ERROR"]
        v1.call("PUT", path, {"vim": right})
    assert v1.call("GET", path)["vim"]["status"] == "ACTIVE"


def broken(cluster: EmbeddedCluster, *images: str) -> None:
    """Set the images that cannot be pulled from now on."""
    cluster.behaviour.bad_images = list(images)


# --- operations ---------------------------------------------------------------------------------


@pytest.fixture
def running(client: Client, vnfd_id: str, cluster: EmbeddedCluster) -> str:
    """The path of an instance that is instantiated."""
    path = client.create(vnfd_id)
    client.do("POST", f"{path}/instantiate", vnfs.instantiation(client.vims(cluster)))
    return path


def test_an_update_that_fails_can_be_retried_rolled_back_or_failed(
    client: Client, running: str, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    before = client.call("GET", running)
    new, new_vnfd = vnfs.package(tmp_path, "2.0", vnfs.ours(client.api))
    client.onboard(new)
    broken(cluster, "*/web:2.0")

    operation = client.do("PATCH", running, vnfs.modification(new_vnfd), "FAILED_TEMP")
    self = operation["_links"]["self"]["href"]
    assert "Deployment default/front" in operation["error"]["detail"]
    assert client.call("GET", running) == before, "the record still names the old package"
    steps = client.call("GET", f"{self}/progress")["steps"]
    assert {step["state"] for step in steps} == {"undone"}
    assert all(step["reasons"] for step in steps)
    client.call("PATCH", running, {"vnfInstanceName": "other"}, 409)
    client.call("DELETE", running, status=409)
    client.call("POST", f"{self}/cancel", {"cancelMode": "GRACEFUL"}, 409)

    client.do("POST", f"{self}/retry", state="FAILED_TEMP")
    rolled_back = client.do("POST", f"{self}/rollback", state="ROLLED_BACK")
    assert "Deployment default/front" in rolled_back["error"]["detail"], "it keeps why"
    client.call("POST", f"{self}/retry", status=409)
    assert client.call("GET", running) == before

    second_operation = client.do("PATCH", running, vnfs.modification(new_vnfd), "FAILED_TEMP")
    failed = client.call("POST", f"{second_operation['_links']['self']['href']}/fail")
    assert failed["operationState"] == "FAILED"
    client.do("PATCH", running, {"vnfInstanceName": "other"})


def test_a_retry_is_carried_out_though_the_thread_of_the_failed_try_has_not_ended(
    client: Client,
    running: str,
    cluster: EmbeddedCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    new, new_vnfd = vnfs.package(tmp_path, "2.0", vnfs.ours(client.api))
    client.onboard(new)
    broken(cluster, "*/web:2.0")
    is_sent, under_way = threading.Event(), workers.batches.under_way

    def after_the_retry(service: Any) -> Any:
        is_sent.wait(60)
        return under_way(service)

    monkeypatch.setattr(workers.batches, "under_way", after_the_retry)
    operation = client.do("PATCH", running, vnfs.modification(new_vnfd), "FAILED_TEMP")
    broken(cluster)
    retry = client.begin("POST", f"{operation['_links']['self']['href']}/retry")
    is_sent.set()
    assert client.settled(retry)["operationState"] == "COMPLETED"


def test_an_accepted_operation_goes_on_though_its_package_is_disabled_meanwhile(
    client: Client, running: str, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    new, new_vnfd = vnfs.package(tmp_path, "2.0", vnfs.ours(client.api))
    package = client.read_in(client.upload(new))
    broken(cluster, "*/web:2.0")
    cluster.behaviour.backoff_seconds = cluster.behaviour.backoff_limit_seconds = 0.1
    if client.api == "v1":
        requested = ("PATCH", running, vnfs.modification(new_vnfd))
    else:
        change = {"vnfdId": new_vnfd, "additionalParams": {"upgrade_type": "RollingUpdate"}}
        requested = ("POST", f"{running}/change_vnfpkg", change)
    operation = client.do(*requested, state="FAILED_TEMP")
    broken(cluster)
    path = f"/vnfpkgm/v1/vnf_packages/{package['id']}"
    client.call("PATCH", path, {"operationalState": "DISABLED"})
    client.call("DELETE", path, status=409)
    client.do("POST", f"{operation['_links']['self']['href']}/retry")
    assert client.call("GET", running)["vnfdId"] == new_vnfd
    client.call("POST", running.rpartition("/")[0], {"vnfdId": new_vnfd}, 422)


def test_a_failed_instantiation_is_rolled_back_completely(
    client: Client, vnfd_id: str, cluster: EmbeddedCluster
) -> None:
    broken(cluster, "*/web:1.0")
    path = client.create(vnfd_id)
    request = vnfs.instantiation(client.vims(cluster))
    operation = client.do("POST", f"{path}/instantiate", request, "FAILED_TEMP")
    client.do("POST", f"{operation['_links']['self']['href']}/rollback", state="ROLLED_BACK")
    assert client.call("GET", path)["instantiationState"] == "NOT_INSTANTIATED"
    broken(cluster)
    client.do("POST", f"{path}/instantiate", request)


def test_a_termination_cannot_be_rolled_back(
    client: Client, running: str, cluster: EmbeddedCluster
) -> None:
    cluster.middlewares.append(Faults(Fault(answer(403), "DELETE", times=100)))
    request = {"terminationType": "GRACEFUL"}
    operation = client.do("POST", f"{running}/terminate", request, "FAILED_TEMP")
    self = operation["_links"]["self"]["href"]
    client.call("POST", f"{self}/rollback", status=409)
    assert client.call("POST", f"{self}/fail")["operationState"] == "FAILED"


# --- cancelling ---------------------------------------------------------------------------------


def test_an_operation_that_has_not_begun_can_be_cancelled(
    client: Client, running: str, service: Service
) -> None:
    service.workers.operation = lambda _: None  # type: ignore[method-assign]  # no worker is free
    accepted = client.send("PATCH", running, {"vnfInstanceName": "other"})
    path = accepted.headers["Location"]
    operation = client.call("GET", path)
    assert operation["operationState"] == "STARTING"
    assert set(operation["_links"]) == {"self", "vnfInstance", "cancel"}
    client.call("POST", f"{path}/cancel", {"cancelMode": "GRACEFUL"}, 202)
    operation = client.call("GET", path)
    assert operation["operationState"] == "ROLLED_BACK"
    assert operation["error"]["detail"] == "cancelled while it waited, before anything was changed"
    assert client.call("GET", running).get("vnfInstanceName") != "other"
    client.call("POST", f"{path}/cancel", {"cancelMode": "FORCEFUL"}, 409)
    del service.workers.operation  # type: ignore[method-assign]
    client.do("PATCH", running, {"vnfInstanceName": "another"})


@pytest.mark.parametrize("is_asked_elsewhere", [False, True])
def test_an_operation_at_work_can_be_cancelled_and_undoes_what_it_wrote(
    is_asked_elsewhere: bool,
    client: Client,
    running: str,
    service: Service,
    cluster: EmbeddedCluster,
    tmp_path: Path,
) -> None:
    package, new_vnfd = vnfs.package(tmp_path, "2.0", vnfs.ours(client.api))
    client.onboard(package)
    before = client.call("GET", running)
    gate = Gate()
    cluster.middlewares.append(Faults(Fault(gate, method="PUT", path="*/deployments/*")))
    if is_asked_elsewhere:  # the service that is asked has no worker at it
        service.workers.cancel = lambda _: None  # type: ignore[method-assign]
    path = client.begin("PATCH", running, vnfs.modification(new_vnfd))
    with gate.held():
        before_it = client.call("GET", path)
        assert "cancel" in before_it["_links"]
        assert not before_it["isCancelPending"]
        assert "cancelMode" not in before_it
        client.call("POST", f"{path}/cancel", {"cancelMode": "FORCEFUL"}, 202)
        shown = client.call("GET", path)
        assert (shown["isCancelPending"], shown["cancelMode"]) == (True, "FORCEFUL")
        pending = f"{urlsplit(path).path.rpartition('/')[0]}?filter=(eq,isCancelPending,true)"
        (listed,) = client.http.request("GET", pending, headers=V2).json()
        assert listed["id"] in path
        service.workers.look()
    ended = client.settled(path)
    assert ended["operationState"] == "FAILED_TEMP"
    assert not ended["isCancelPending"]
    assert "cancelMode" not in ended
    assert "by a request to cancel" in ended["error"]["detail"]
    steps = client.call("GET", f"{path}/progress")["steps"]
    assert "undone" in {step["state"] for step in steps}
    assert client.call("GET", running) == before
    client.do("POST", f"{path}/retry")


# --- what Tacker takes --------------------------------------------------------------------------


def test_a_package_can_be_named_by_its_id_in_v1(
    v1: Client, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    old, vnfd_id = vnfs.package(tmp_path, "1.0", vnfs.ours("v1"))
    new, new_vnfd_id = vnfs.package(tmp_path, "2.0", vnfs.ours("v1"))
    v1.onboard(old)
    package = v1.read_in(v1.upload(new))
    path = v1.create(vnfd_id)
    v1.do("POST", f"{path}/instantiate", vnfs.instantiation(v1.vims(cluster)))
    v1.do("PATCH", path, {"vnfPkgId": package["id"]})
    assert v1.call("GET", path)["vnfdId"] == new_vnfd_id
    v1.call("PATCH", path, {"vnfPkgId": UNKNOWN}, 422)


def test_external_links_are_refused_for_a_vnf_in_a_cluster(
    client: Client, cluster: EmbeddedCluster, vnfd_id: str
) -> None:
    body = {**vnfs.instantiation(client.vims(cluster)), "extVirtualLinks": [{"id": "vl"}]}
    path = client.create(vnfd_id)
    refusal = client.call("POST", f"{path}/instantiate", body, 422)
    assert "extVirtualLinks" in refusal["detail"]
