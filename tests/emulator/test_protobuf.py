# SPDX-License-Identifier: Apache-2.0
"""kubectl's typed commands send protobuf, which the embedded cluster decodes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from container_update.emulator.kubernetes import EmbeddedCluster
from container_update.emulator.kubernetes.api.protobuf import decode
from tests import needs

pytestmark = needs.KUBECTL


class Kubectl:
    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig

    def __call__(self, *arguments: str) -> str:
        command = ["kubectl", "--kubeconfig", str(self.kubeconfig), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self("get", *arguments, "-o", "json"))


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    with EmbeddedCluster() as embedded:
        folder = tmp_path_factory.mktemp("kubectl")
        yield Kubectl(embedded.write_kubeconfig(folder / "kubeconfig"))


def test_namespaces_config_maps_and_secrets(kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "made")
    kubectl("-n", "made", "create", "configmap", "cm", "--from-literal=k=värde")
    kubectl("-n", "made", "create", "secret", "generic", "s", "--from-literal=p=x")
    assert kubectl.json("-n", "made", "configmap", "cm")["data"] == {"k": "värde"}
    secret = kubectl.json("-n", "made", "secret", "s")
    assert (secret["type"], secret["data"]) == ("Opaque", {"p": "eA=="})


def test_deployments_with_ports_and_a_service(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "d", "--image=app:1", "--replicas=2", "--port=80", "--", "run")
    spec = kubectl.json("deployment", "d")["spec"]
    assert spec["replicas"] == 2
    (container,) = spec["template"]["spec"]["containers"]
    assert (container["image"], container["command"]) == ("app:1", ["run"])
    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    kubectl("create", "service", "clusterip", "d", "--tcp=8080:80")
    (port,) = kubectl.json("service", "d")["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (8080, 80)


def test_jobs_and_cron_jobs(kubectl: Kubectl) -> None:
    kubectl("create", "job", "j", "--image=app:1")
    kubectl("create", "cronjob", "c", "--image=app:1", "--schedule=0 0 1 1 *")
    assert kubectl.json("cronjob", "c")["spec"]["schedule"] == "0 0 1 1 *"


CREATED = [
    ("role r --verb=get --resource=pods,deployments.apps", "{.rules[*].resources}",
     '["pods"] ["deployments"]'),
    ("clusterrole r --verb=get --non-resource-url=/healthz", "{.rules}",
     '[{"nonResourceURLs":["/healthz"],"verbs":["get"]}]'),
    ("rolebinding r --role=a --serviceaccount=default:b", "{.roleRef.name} {.subjects}",
     'a [{"kind":"ServiceAccount","name":"b","namespace":"default"}]'),
    ("clusterrolebinding r --clusterrole=a --user=b", "{.roleRef.kind} {.subjects[0].name}",
     "ClusterRole b"),
    ("quota r --hard=cpu=1,pods=2 --scopes=BestEffort", "{.spec}",
     '{"hard":{"cpu":"1","pods":"2"},"scopes":["BestEffort"]}'),
    ("pdb r --selector=app=x --min-available=50%", "{.spec}",
     '{"minAvailable":"50%","selector":{"matchLabels":{"app":"x"}}}'),
    ("priorityclass r --value=10 --description=hello", "{.value} {.description}", "10 hello"),
    ("ingress r --rule=a.b/c=svc:80", "{.spec.rules[0].host} {.spec.rules[0].http.paths[0].path}",
     "a.b /c"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "path", "expected"), CREATED)
def test_other_kinds(kubectl: Kubectl, words: str, path: str, expected: str) -> None:
    kubectl("create", *words.split())
    assert kubectl("get", words.split(maxsplit=1)[0], "r", "-o", f"jsonpath={path}") == expected


@pytest.mark.parametrize("body", [b"", b"{}", b"k8s\x00\x12\x7f", b"k8s\x00\x80"])
def test_what_is_not_in_this_encoding_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="the body"):
        decode(body)
