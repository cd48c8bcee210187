"""The samples' READMEs, typed in as they stand."""

from __future__ import annotations

import io
import re
import shlex
from pathlib import Path

import pytest

from container_update.cli import main
from container_update.cluster import KubernetesCluster
from container_update.instantiate import instantiate
from container_update.model import Collection
from tests.functional.conftest import OPTIONS

SAMPLES = Path(__file__).parents[3] / "samples"
COMMAND = re.compile(r"^ {6}(container-update change-vnfpkg .*)$", re.MULTILINE)
STATUSES = {
    "04-blue-green": [3, 0, 2, 0],
    "05-rolling-update": [3, 0, 0, 2],
}
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
    instance = f"sample-{sample[:2]}"
    instantiate("before", admin, namespace=namespace, instance_id=instance, options=OPTIONS)
    said = []
    statuses = []
    here = ["--namespace", namespace, "--kubeconfig", admin_kubeconfig]
    for command in COMMAND.findall(Path("README.rst").read_text()):
        out = io.StringIO()
        statuses.append(main([*shlex.split(command)[1:], *here], out))
        said.append(out.getvalue())
    assert statuses == STATUSES[sample], "\n".join(said)
    pods = admin.list(Collection("", "Pod", namespace)).items
    live = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
    images = {container["image"] for pod in live for container in pod["spec"]["containers"]}
    assert images == RUNS[sample]


def test_the_sample_script_and_its_copy_in_a_package_are_the_same() -> None:
    copy = SAMPLES / "04-blue-green/after/Scripts/update_service.py"
    assert copy.read_text() == (SAMPLES / "coordination/update_service.py").read_text()


def test_the_sample_scripts_say_what_they_did(
    admin: KubernetesCluster,
    admin_kubeconfig: str,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(SAMPLES / "04-blue-green")
    instantiate("before", admin, namespace=namespace, instance_id="sample-04", options=OPTIONS)
    out = io.StringIO()
    command = "change-vnfpkg before after --request request.json --instance-id sample-04"
    common = f"--drain-seconds 0 --namespace {namespace} --kubeconfig {admin_kubeconfig}"
    assert main(shlex.split(f"{command} {common}"), out) == 0
    text = out.getvalue()
    assert "Service front selects {'app': 'front', 'version': 'green'}" in text
    assert "2 old pods of VDU1 get no traffic" in text
