# SPDX-License-Identifier: Apache-2.0
"""kubectl against the embedded cluster: the commands that people type."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from container_update.emulator.kubernetes import EmbeddedCluster
from tests import needs
from tests.emulator.client import Api, eventually

pytestmark = needs.KUBECTL

MANIFEST = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: blue}
---
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: hidden}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: app:1
        envFrom: [{configMapRef: {name: settings}}]
"""

Kubectl = Callable[..., str]


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    """A file with a ConfigMap, a Secret and a Deployment."""
    path = tmp_path / "web.yaml"
    path.write_text(MANIFEST)
    return path


@pytest.fixture
def kubectl(cluster: EmbeddedCluster, tmp_path: Path) -> Kubectl:
    """Runs kubectl; its output, or the failed test with what it said."""
    config = cluster.write_kubeconfig(tmp_path / "kubeconfig")

    def run(*words: str, fails: str | None = None) -> str:
        process = start(config, tmp_path, *words)
        output, errors = process.communicate(timeout=60)
        if fails is None:
            assert process.returncode == 0, f"kubectl {' '.join(words)}: {errors}"
        else:
            assert process.returncode != 0, f"kubectl {' '.join(words)} did not fail: {output}"
            assert fails in errors
        return output

    run.config = config  # type: ignore[attr-defined]
    return run


def start(config: Path, folder: Path, *words: str) -> "subprocess.Popen[str]":
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "KUBECONFIG": str(config),
    }  # fmt: skip
    command = ["kubectl", "-n", "rec", f"--cache-dir={folder}/cache", *words]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.fixture
def web(kubectl: Kubectl, manifest: Path) -> Kubectl:
    """kubectl, with the manifest applied and rolled out."""
    kubectl("apply", "-f", str(manifest))
    assert "successfully rolled out" in kubectl("rollout", "status", "deploy/web", "--timeout=30s")
    return kubectl


def columns(output: str) -> list[list[str]]:
    return [line.split() for line in output.splitlines()]


def test_get_prints_the_columns_that_people_know(web: Kubectl) -> None:
    head, *rows = columns(web("get", "pods", "-o", "wide"))
    assert head[:7] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE"]
    assert [(row[1], row[2], row[3]) for row in rows] == [("1/1", "Running", "0")] * 2
    head, row = columns(web("get", "deploy", "-o", "wide"))
    assert head == [
        "NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES", "SELECTOR",
    ]  # fmt: skip
    assert row[:4] + row[5:] == ["web", "2/2", "2", "2", "main", "app:1", "app=web"]
    assert columns(web("get", "cm", "settings"))[1][:2] == ["settings", "1"]
    assert columns(web("get", "secret", "login"))[1][:3] == ["login", "Opaque", "1"]
    together = web("get", "pods,deploy,cm,secret")
    for name in ("pod/web-", "deployment.apps/web", "configmap/settings", "secret/login"):
        assert name in together
    assert "node-1" in web("get", "nodes")
    assert "replicaset.apps/web-" in web("get", "all")


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        (["cm", "settings"], ["Name:         settings", "colour:", "blue"]),
        (["secret", "login"], ["password:  6 bytes"]),
        (["pod", "-l", "app=web"], ["Node:", "Image:", "app:1", "ContainersReady"]),
        (
            ["deploy", "web"],
            ["2 desired | 2 updated | 2 total | 2 available", "ScalingReplicaSet", "NewReplicaSet"],
        ),
    ],
)
def test_describe_tells_the_details(web: Kubectl, arguments: list[str], texts: list[str]) -> None:
    output = web("describe", *arguments)
    for text in texts:
        assert text in output


def test_create_apply_and_replace(kubectl: Kubectl, manifest: Path) -> None:
    assert "deployment.apps/web created" in kubectl("create", "-f", str(manifest))
    kubectl("create", "-f", str(manifest), fails="already exists")
    assert "configmap/settings configured" in kubectl("apply", "-f", str(manifest))
    assert "configmap/settings unchanged" in kubectl("apply", "-f", str(manifest))
    manifest.write_text(MANIFEST.replace("blue", "green"))
    assert "configmap/settings configured" in kubectl("apply", "-f", str(manifest))
    assert "green" in kubectl("get", "cm", "settings", "-o", "yaml")
    manifest.write_text(MANIFEST.replace("blue", "red"))
    assert "configmap/settings replaced" in kubectl("replace", "-f", str(manifest))
    assert "red" in kubectl("get", "cm", "settings", "-o", "yaml")
    manifest.write_text(MANIFEST)
    output = kubectl("apply", "-f", str(manifest), "--dry-run=server")
    assert "configmap/settings configured (server dry run)" in output
    assert "red" in kubectl("get", "cm", "settings", "-o", "yaml")


def test_apply_removes_what_the_manifest_no_longer_has(kubectl: Kubectl, manifest: Path) -> None:
    manifest.write_text(MANIFEST.replace("colour: blue", "colour: blue, size: big"))
    kubectl("apply", "-f", str(manifest))
    manifest.write_text(MANIFEST)
    kubectl("apply", "-f", str(manifest))
    assert kubectl("get", "cm", "settings", "-o", "jsonpath={.data}") == '{"colour":"blue"}'


def test_a_rollout_is_followed_restarted_and_undone(web: Kubectl) -> None:
    first = set(web("get", "pods", "-l", "app=web", "-o", "name").split())
    web("set", "image", "deploy/web", "main=app:2")
    web("rollout", "status", "deploy/web", "--timeout=30s")
    second = set(web("get", "pods", "-l", "app=web", "-o", "name").split())
    assert not first & second
    assert [row[0] for row in columns(web("rollout", "history", "deploy/web"))[2:4]] == ["1", "2"]
    web("rollout", "restart", "deploy/web")
    web("rollout", "status", "deploy/web", "--timeout=30s")
    third = set(web("get", "pods", "-l", "app=web", "-o", "name").split())
    assert not second & third
    web("rollout", "undo", "deploy/web", "--to-revision=1")
    web("rollout", "status", "deploy/web", "--timeout=30s")
    image = "jsonpath={.spec.template.spec.containers[0].image}"
    assert web("get", "deploy", "web", "-o", image) == "app:1"


def test_delete_waits_until_the_object_is_gone(web: Kubectl, manifest: Path) -> None:
    assert 'deployment.apps "web" deleted' in web("delete", "-f", str(manifest), "--timeout=30s")
    web("get", "deploy", "web", fails="not found")
    web("wait", "--for=delete", "pod", "-l", "app=web", "--timeout=30s")
    web("delete", "cm", "settings", fails="NotFound")
    assert web("delete", "cm", "settings", "--ignore-not-found") == ""


@pytest.fixture
def watching(web: Kubectl, tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A running ``kubectl get cm -w``."""
    config = web.config  # type: ignore[attr-defined]
    process = start(config, tmp_path, "get", "cm", "-w", "-o", "wide")
    yield process
    process.kill()
    process.communicate()


def test_get_with_watch_follows_changes(web: Kubectl, watching: "subprocess.Popen[str]") -> None:
    lines: list[list[str]] = []
    assert watching.stdout
    while not lines or lines[-1][0] != "settings":
        lines.append(watching.stdout.readline().split())
    assert lines[0] == ["NAME", "DATA", "AGE"]
    web("patch", "cm", "settings", "-p", '{"data":{"size":"big"}}')
    assert watching.stdout.readline().split()[:2] == ["settings", "2"]


def test_drain_evicts_within_the_disruption_budget(web: Kubectl, api: Api) -> None:
    budget = {
        "metadata": {"name": "b"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
    }
    budgets = "/apis/policy/v1/namespaces/rec/poddisruptionbudgets"
    api.post(budgets, budget)
    eventually(
        lambda: api.get(f"{budgets}/b").body["status"],
        lambda status: status.get("currentHealthy") == 2,
        "the budget is counted",
    )
    web("drain", "node-1", "--ignore-daemonsets", "--timeout=2s", fails="disruption budget")
    assert len(web("get", "pods", "-l", "app=web", "-o", "name").split()) == 2
    api.delete(f"{budgets}/b")
    web("drain", "node-1", "--ignore-daemonsets", "--timeout=20s")
    rows = columns(web("get", "pods", "-l", "app=web"))[1:]
    assert [row[2] for row in rows] == ["Pending"] * 2
    web("uncordon", "node-1")
    web("rollout", "status", "deploy/web", "--timeout=30s")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["get", "pod", "none"], 'Error from server (NotFound): pods "none" not found'),
        (["get", "nothing"], "the server doesn't have a resource type"),
        (
            ["patch", "deploy", "web", "-p", '{"spec":{"selector":{"matchLabels":{"a":"b"}}}}'],
            "field is immutable",
        ),
    ],
)
def test_a_refusal_reaches_the_user(web: Kubectl, words: list[str], message: str) -> None:
    web(*words, fails=message)


def test_server_side_apply_has_owners_and_conflicts(kubectl: Kubectl, manifest: Path) -> None:
    apply = ("apply", "--server-side", "-f", str(manifest))
    for _ in range(2):
        assert "deployment.apps/web serverside-applied" in kubectl(*apply)
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={.metadata.generation}") == "1"
    kubectl("scale", "deploy/web", "--replicas=3")
    kubectl(*apply, fails='conflict with "kubectl" with subresource "scale" using apps/v1')
    kubectl(*apply, "--force-conflicts")
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "2"
    manifest.write_text(MANIFEST.replace("replicas: 2", "replica: 2"))
    kubectl(*apply, fails=".spec.replica: field not declared in schema")


def test_logs_and_events_have_something_to_show(web: Kubectl) -> None:
    assert "is starting" in web("logs", "deploy/web")
    assert "Scheduled" in web("get", "events")


def test_rights_are_given_and_asked_for(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("create", "serviceaccount", "worker")
    kubectl("create", "-f", str(written(tmp_path / "role.yaml", ROLE)))
    account = ("--as", "system:serviceaccount:rec:worker")
    assert kubectl("auth", "can-i", "get", "pods", *account) == "yes\n"
    assert "pods" in kubectl("auth", "can-i", "--list", *account)
    assert len(kubectl("create", "token", "worker", "--duration=1h").strip()) > 20


ROLE = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: worker, namespace: rec}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: worker, namespace: rec}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: worker}
subjects: [{kind: ServiceAccount, name: worker, namespace: rec}]
"""


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path
