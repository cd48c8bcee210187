# SPDX-License-Identifier: Apache-2.0
"""The plan of a request: what it would do, as the request itself would, and nothing is done."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from container_update import Options
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.internals.service import Service, Settings, read_tokens
from tests.tacker.conftest import Kubectl
from tests.vnfm import scalable, vnfs
from tests.vnfm.client import Client
from tests.vnfm.clouds import BLUE_GREEN, ROLLING, Cloud, Sample, instantiated

Json = dict[str, Any]
OLD, NEW = "a-canary-of-the-old-secret", "a-canary-of-the-new-secret"
SECRET = """
apiVersion: v1
kind: Secret
metadata: {{name: login}}
data: {{password: {password}}}
"""
USES_SECRET = vnfs.DEPLOYMENT + (
    "        - name: PASSWORD\n"
    "          valueFrom: {{secretKeyRef: {{name: login, key: password}}}}\n"
)
FILES = [*vnfs.DEF_FILES, "Files/kubernetes/login.yaml"]


@pytest.fixture
def options() -> Options:
    return Options(lease_seconds=3, timeout=20, grace_period=1, drain_seconds=0)


def package(folder: Path, version: str, api: str, password: str) -> tuple[Path, str]:
    """Write the small VNF with a Secret; its path, and its VNFD."""
    texts = (
        vnfs.CONFIG.format(version=version),
        USES_SECRET.format(version=version),
        SECRET.format(password=base64.b64encode(password.encode()).decode()),
    )
    return vnfs.package(folder, version, vnfs.ours(api), dict(zip(FILES, texts, strict=True)))


def updatable(client: Client, cluster: EmbeddedCluster, folder: Path) -> tuple[str, str]:
    """Instantiate version 1.0; its path, and the VNFD of version 2.0."""
    old, new = (
        client.onboard(package(folder, version, client.api, password)[0])
        for version, password in (("1.0", OLD), ("2.0", NEW))
    )
    path = client.create(old)
    request = vnfs.instantiation(client.vims(cluster), def_files=FILES)
    client.do("POST", f"{path}/instantiate", request)
    return path, new


def plan(client: Client, path: str, operation: str, request: Json, status: int = 200) -> Json:
    body = {"operation": operation, "request": request}
    answer: Json = client.call("POST", f"{path}/plan", body, status)
    return answer


def modification(vnfd_id: str) -> Json:
    return {"vnfdId": vnfd_id, "metadata": {"configmap_secret_paths": FILES[::2]}}


def test_the_plan_of_an_update_is_what_the_driver_then_does(
    client: Client, cluster: EmbeddedCluster, tmp_path: Path, kubectl: Kubectl
) -> None:
    path, new = updatable(client, cluster, tmp_path)
    before, pods = client.call("GET", path), set(kubectl.pods())
    cluster.clear_requests()

    shown = plan(client, path, "MODIFY_INFO", modification(new))

    assert shown["isEmpty"] is False
    assert shown["summary"] == "2 to replace, 1 to restart (2 pods)."
    assert [(step["object"], step["action"]) for step in shown["steps"]] == [
        ("ConfigMap default/settings", "replace"),
        ("Secret default/login", "replace"),
        ("Deployment default/front", "roll"),
    ]
    settings, login, front = shown["steps"]
    assert {"-1.0", "+2.0"} <= set(settings["diff"])
    assert login["diff"] == ["@@ key password: changed @@"]
    assert front["diff"][:3] == [
        "@@ container web @@",
        "-image: registry.example/web:1.0",
        "+image: registry.example/web:2.0",
    ]
    assert any("key password" in reason for reason in front["reasons"])
    secrets = [OLD, NEW, *(base64.b64encode(each.encode()).decode() for each in (OLD, NEW))]
    assert not [secret for secret in secrets if secret in str(shown)]

    writes = [r for r in cluster.requests if r.method != "GET" and "dryRun" not in r.query]
    assert not writes
    assert (client.call("GET", path), set(kubectl.pods())) == (before, pods)
    root = path.rpartition("/vnf_instances/")[0]
    occurrences = client.call("GET", f"{root}/vnf_lcm_op_occs")
    assert [each["operation"] for each in occurrences] == ["INSTANTIATE"]

    done = client.do("PATCH", path, modification(new))
    progress = client.call("GET", f"{done['_links']['self']['href']}/progress")
    carried_out = [
        {name: step[name] for name in ("object", "action", "reasons", "diff")}
        for step in progress["steps"]
    ]
    assert carried_out == shown["steps"]
    again = plan(client, path, "MODIFY_INFO", modification(new))
    assert again["isEmpty"]
    assert again["summary"].startswith("Nothing to do")
    assert again["steps"] == []


def test_a_modification_with_an_upgrade_type_has_the_plan_of_the_change(
    client: Client, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    path, new = updatable(client, cluster, tmp_path)
    request = {"vnfdId": new, "metadata": {"upgrade_type": "RollingUpdate"}}
    shown = plan(client, path, "MODIFY_INFO", request)
    actions = {step["object"]: step["action"] for step in shown["steps"]}
    assert actions["Deployment default/front"] == "roll"
    assert "Secret default/login" in actions


def test_a_change_of_the_package_has_its_plan(
    http: TestClient, cluster: EmbeddedCluster, tmp_path: Path, kubectl: Kubectl
) -> None:
    client = Client(http, "v2")
    path, new = updatable(client, cluster, tmp_path)
    pods = set(kubectl.pods())
    request = {"vnfdId": new, "additionalParams": {"upgrade_type": "Blue-Green"}}
    shown = plan(client, path, "CHANGE_VNFPKG", request)
    fronts = [step for step in shown["steps"] if step["object"].startswith("Deployment")]
    assert [step["action"] for step in fronts] == ["create", "delete", "hand over the pods"]
    assert OLD not in str(shown)
    assert NEW not in str(shown)
    assert set(kubectl.pods()) == pods


NO_DRIVER = vnfs.Driver(vnfs.OURS, vnfs.ours("v2").file, b"", operations=("terminate_start",))
FOREIGN = {
    api: vnfs.Driver("somebody-elses", vnfs.ours(api).file, b"raise SystemExit('it was run')")
    for api in ("v1", "v2")
}
INSTEAD = {
    "only names": ("ours", {"vnfInstanceName": "one"}, "only its record changes"),
    "no driver": ("none", {}, "to no Mgmt Driver"),
    "another driver": ("foreign", {}, "own Mgmt Driver somebody-elses decides"),
}


@pytest.mark.parametrize("case", INSTEAD)
def test_what_has_no_plan_says_what_happens_instead(
    case: str, client: Client, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    which, request, text = INSTEAD[case]
    kinds = {"ours": vnfs.ours(client.api), "none": NO_DRIVER, "foreign": FOREIGN[client.api]}
    driver = kinds[which]
    old, new = (
        client.onboard(vnfs.package(tmp_path, version, driver)[0]) for version in ("1.0", "2.0")
    )
    path = client.create(old)
    asked = request or {"vnfdId": new}
    nothing = plan(client, path, "MODIFY_INFO", asked)
    assert "only its record changes" in nothing["remarks"][0]["text"], "not instantiated"
    client.do("POST", f"{path}/instantiate", vnfs.instantiation(client.vims(cluster)))
    shown = plan(client, path, "MODIFY_INFO", asked)
    assert (shown["isEmpty"], shown["steps"]) == (True, [])
    (remark,) = shown["remarks"]
    assert remark["kind"] == "note"
    assert remark["object"] == f"VNF instance {path.rpartition('/')[2]}"
    assert text in remark["text"]
    assert remark["text"] in shown["summary"]


def test_a_plan_is_refused_as_the_request_would_be(
    client: Client, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    path, _ = updatable(client, cluster, tmp_path)
    requests: list[Json] = [
        {"vnfdId": "none"},
        {"metadata": {"namespace": "other"}},
        {"vimConnectionInfoDeleteIds": ["no-such"]},
    ]
    for request in requests:
        refused = client.call("PATCH", path, request, 422)
        assert plan(client, path, "MODIFY_INFO", request, 422)["detail"] == refused["detail"]
    paths = {"metadata": {"configmap_secret_paths": ["Files/no-such.yaml"]}}
    missing = plan(client, path, "MODIFY_INFO", paths, 422)
    assert "Files/no-such.yaml" in missing["detail"]
    assert str(tmp_path) not in missing["detail"]
    client.call("POST", f"{path}/plan", {"operation": "TERMINATE", "request": {}}, 422)
    cluster.stop()
    client.call(
        "POST",
        f"{path}/plan",
        {"operation": "MODIFY_INFO", "request": {"metadata": {"configmap_secret_paths": FILES}}},
        502,
    )


def test_a_change_is_planned_only_of_an_instance_that_runs(
    http: TestClient, tmp_path: Path
) -> None:
    client = Client(http, "v2")
    path = client.create(client.onboard(scalable.package(tmp_path)))
    request = {"vnfdId": "any", "additionalParams": {"upgrade_type": "Blue-Green"}}
    refused = client.call("POST", f"{path}/change_vnfpkg", request, 409)
    assert plan(client, path, "CHANGE_VNFPKG", request, 409)["detail"] == refused["detail"]


def test_a_token_that_only_reads_may_look_at_plans(tmp_path: Path, options: Options) -> None:
    settings = Settings(state_dir=str(tmp_path / "state"))
    settings.folder.mkdir(mode=0o700, parents=True)
    settings.token_path.write_text(f"admin {'w' * 20}\nguest {'r' * 20} read\n")
    settings.token_path.chmod(0o600)
    assert not read_tokens(settings.token_path)["guest"].may_change
    service = Service(settings, options)
    with TestClient(service.app, base_url="http://127.0.0.1:9890") as http:
        http.headers["X-Auth-Token"] = 20 * "w"
        client = Client(http, "v2")
        path = client.create(client.onboard(vnfs.package(tmp_path, "1.0", vnfs.ours("v2"))[0]))
        http.headers["X-Auth-Token"] = 20 * "r"
        assert plan(client, path, "MODIFY_INFO", {"vnfInstanceName": "one"})["isEmpty"]
        client.call("PATCH", path, {"vnfInstanceName": "one"}, 403)


@pytest.mark.parametrize("name", [BLUE_GREEN, ROLLING])
def test_a_change_of_stacks_has_its_plan(
    name: str, cloud: Cloud, http: TestClient, tmp_path: Path
) -> None:
    client, sample = Client(http, "v2"), Sample(name, cloud, tmp_path)
    vnf = instantiated(client, sample, cloud.vims())
    stacks, record = cloud.stacks(), vnf.shown()
    shown = plan(client, vnf.path, "CHANGE_VNFPKG", sample.change())
    scripts = [step["object"] for step in shown["steps"] if step["action"] == "run"]
    assert any(" (new VNF, VDU" in script for script in scripts)
    steps = [step for step in shown["steps"] if step["action"] != "run"]
    objects = [step["object"].partition(" ")[0] for step in steps]
    expected = {BLUE_GREEN: ["Stack", "Stack"], ROLLING: ["Server", "Server", "Stack", "Stack"]}
    assert objects == expected[name]
    assert all(step["reasons"] for step in shown["steps"])
    assert (cloud.stacks(), vnf.shown()) == (stacks, record)
    assert not cloud.balancer.commands, "no script was run"
    assert not [secret for secret in cloud.secrets if secret in str(shown)]
