# SPDX-License-Identifier: Apache-2.0
"""The commands in the samples' READMEs, run as they are printed."""

from __future__ import annotations

import io
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from container_update import install
from tests.functional.conftest import OPTIONS, REAL
from tests.internals.core import Collection, KubernetesCluster, main, samples

SAMPLES = samples.root()
COMMAND = re.compile(r"^ {6}((?:kubectl|container-update change) .*)$", re.MULTILINE)
KUBECTL = shutil.which("kubectl")
STATUSES = {
    "04-blue-green": [3, 0, 2, 0],
    "05-rolling-update": [3, 0, 0, 2],
}
"""Of the commands that are container-update's; kubectl's all end with 0."""
RUNS = {
    "04-blue-green": {"nginx:1.27-alpine"},
    "05-rolling-update": {"nginx:1.27-alpine", "busybox:1.36", "nginx:1.28-alpine"},
}


@pytest.mark.parametrize("sample", STATUSES)
def test_a_sample_does_what_its_readme_says(
    sample: str,
    admin: KubernetesCluster,
    admin_kubeconfig: str,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(SAMPLES / sample)
    if KUBECTL is None:
        instance = f"sample-{sample[:2]}"
        install("before", admin, namespace=namespace, instance_id=instance, options=OPTIONS)
    outputs = []
    statuses = []
    common_options = ["--namespace", namespace, "--kubeconfig", admin_kubeconfig]
    for command in COMMAND.findall(Path("README.rst").read_text()):
        out = io.StringIO()
        program, *arguments = [*shlex.split(command), *common_options]
        if program != "kubectl":
            statuses.append(main(arguments, out))
            outputs.append(out.getvalue())
        elif KUBECTL is not None:
            subprocess.run([KUBECTL, *arguments], check=True, capture_output=True)
    assert statuses == STATUSES[sample], "\n".join(outputs)
    pods = admin.list(Collection("", "Pod", namespace)).items
    live = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
    images = {container["image"] for pod in live for container in pod["spec"]["containers"]}
    assert images == RUNS[sample]


@pytest.mark.skipif(bool(REAL), reason="the demo brings the embedded cluster with it")
@pytest.mark.parametrize(
    ("scenario", "pattern"),
    [
        ("blue-green", r"^Deployment default/front +2/2 +2 .*1.28"),
        ("rolling", r"^Deployment default/worker +2/2 +2 "),
    ],
)
def test_the_demo_runs_a_sample_and_shows_what_runs_then(scenario: str, pattern: str) -> None:
    out = io.StringIO()
    assert main(["try", "demo", "--scenario", scenario], out) == 0
    *_, after = out.getvalue().split("The VNF after the change")
    assert re.search(pattern, after, re.MULTILINE), after


@pytest.mark.parametrize(
    ("sample", "script"),
    [
        ("04-blue-green", "update_service.py"),
        ("06-openstack-blue-green", "configure_balancer.py"),
        ("07-openstack-rolling", "check_vnfc.py"),
    ],
)
def test_a_sample_script_and_its_copy_in_a_package_are_the_same(sample: str, script: str) -> None:
    copy = SAMPLES / sample / "after/Scripts" / script
    assert copy.read_text() == (SAMPLES / "coordination" / script).read_text()


def test_the_sample_scripts_say_what_they_did(
    admin: KubernetesCluster,
    admin_kubeconfig: str,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(SAMPLES / "04-blue-green")
    install("before", admin, namespace=namespace, instance_id="sample-04", options=OPTIONS)
    out = io.StringIO()
    command = "change before after --request request.json --instance-id sample-04"
    common = f"--drain-seconds 0 --namespace {namespace} --kubeconfig {admin_kubeconfig}"
    assert main(shlex.split(f"{command} {common}"), out) == 0
    text = out.getvalue()
    assert "Service front selects {'app': 'front', 'version': 'green'}" in text
    assert "2 old pods of VDU1 get no traffic" in text
