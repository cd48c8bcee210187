# SPDX-License-Identifier: Apache-2.0
"""The manifests are accepted, belong together, and the service starts with what they say."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
import requests
import yaml
from fastapi.testclient import TestClient
from oslo_config import cfg

from container_update import Options
from container_update.emulator.kubernetes import Behaviour, EmbeddedCluster
from tests import needs
from tests.deploy import manifests
from tests.deploy.manifests import KUBERNETES, NAMESPACE, Json
from tests.internals.core import options
from tests.internals.service import Service, Settings, settings
from tests.vnfm.waiting import until

PLURALS = {
    "ConfigMap": ("api/v1", "configmaps"),
    "Deployment": ("apis/apps/v1", "deployments"),
    "Namespace": ("api/v1", "namespaces"),
    "NetworkPolicy": ("apis/networking.k8s.io/v1", "networkpolicies"),
    "PersistentVolumeClaim": ("api/v1", "persistentvolumeclaims"),
    "Secret": ("api/v1", "secrets"),
    "Service": ("api/v1", "services"),
    "ServiceAccount": ("api/v1", "serviceaccounts"),
}
SECRETS = {"container-update": ("tokens", "vault.key"), "container-update-tls": ()}
"""What doc/source/vnfm.rst creates, with the keys that the settings name."""


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    """An empty cluster with quick containers."""
    with EmbeddedCluster(behaviour=Behaviour(start_seconds=0.01, stop_seconds=0.01)) as running:
        yield running


@pytest.fixture
def api(cluster: EmbeddedCluster, tmp_path: Path) -> Iterator[requests.Session]:
    """An administrator's session."""
    authority = tmp_path / "ca.crt"
    authority.write_text(cluster.ca_text)
    with requests.Session() as session:
        session.trust_env = False
        session.verify = str(authority)
        session.headers["Authorization"] = f"Bearer {cluster.token}"
        yield session


def place(cluster: EmbeddedCluster, obj: Json) -> str:
    """Return the URL of an object's collection."""
    group, plural = PLURALS[obj["kind"]]
    inside = "" if obj["kind"] == "Namespace" else f"/namespaces/{obj['metadata']['namespace']}"
    return f"{cluster.url}/{group}{inside}/{plural}"


def secret(name: str, keys: tuple[str, ...]) -> Json:
    data = {key: base64.b64encode(b"content").decode() for key in keys or ("tls.crt", "tls.key")}
    return {"apiVersion": "v1", "kind": "Secret", "data": data,
            "type": "Opaque" if keys else "kubernetes.io/tls",
            "metadata": {"name": name, "namespace": NAMESPACE}}  # fmt: skip


def test_an_api_server_takes_every_object_and_the_pod_becomes_ready(
    cluster: EmbeddedCluster, api: requests.Session
) -> None:
    namespace, *rest = manifests.objects()
    for obj in (namespace, *(secret(*item) for item in SECRETS.items()), *rest):
        answer = api.post(place(cluster, obj), json=obj, params={"fieldValidation": "Strict"})
        assert answer.status_code == 201, answer.text
    url = f"{place(cluster, manifests.of('Deployment'))}/{NAMESPACE}"
    until(
        lambda: api.get(url).json().get("status", {}).get("readyReplicas") == 1,
        "the pod to be ready",
    )


@needs.KUBECTL
@pytest.mark.parametrize("overlay", ["base", "postgresql"])
def test_kustomize_builds_the_same_objects(overlay: str) -> None:
    built = subprocess.run(
        ["kubectl", "kustomize", KUBERNETES / overlay], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    found = {obj["kind"]: obj for obj in yaml.safe_load_all(built.stdout)}
    expected = {obj["kind"]: obj for obj in manifests.objects()}
    if overlay == "postgresql":
        more = "--config-file=/run/container-update/secret/database.conf"
        (container,) = expected["Deployment"]["spec"]["template"]["spec"]["containers"]
        container["args"].append(more)
        ports = [{"port": 5432, "protocol": "TCP"}]
        expected["NetworkPolicy"]["spec"]["egress"].append({"ports": ports})
    assert found == expected


# --- what belongs together ----------------------------------------------------------------------


def test_every_setting_exists() -> None:
    sections = manifests.settings()
    known = {
        settings.GROUP: {option.name for option in fields(Settings)},
        options.GROUP: {option.name for option in fields(Options)},
    }
    assert sections.keys() <= known.keys()
    for name, values in sections.items():
        assert values.keys() <= known[name]


def test_the_pod_has_every_file_that_the_settings_name() -> None:
    found = manifests.settings()["vnfm"]
    mounted = {mount["name"]: mount for mount in manifests.container()["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in manifests.pod()["volumes"]}
    assert mounted.keys() == volumes.keys()
    secret_folder, tls_folder = mounted["secret"]["mountPath"], mounted["tls"]["mountPath"]
    keys = {Path(found[name]).name for name in ("token_file", "key_file")}
    assert keys == set(SECRETS[volumes["secret"]["secret"]["secretName"]])
    assert {str(Path(found[name]).parent) for name in ("token_file", "key_file")} == {secret_folder}
    assert found["tls_cert"] == f"{tls_folder}/tls.crt"
    assert found["tls_key"] == f"{tls_folder}/tls.key"
    assert Path(found["state_dir"]).parent == Path(mounted["state"]["mountPath"])
    config = mounted["config"]["mountPath"]
    assert manifests.container()["args"] == ["vnfm", "serve", f"--config-file={config}/vnfm.conf"]


def test_ports_names_and_times_agree() -> None:
    found, service = manifests.settings()["vnfm"], manifests.of("Service")
    (port,), (exposed,) = manifests.container()["ports"], service["spec"]["ports"]
    host = f"{service['metadata']['name']}.{NAMESPACE}.svc"
    assert found["endpoint"] == f"https://{host}:{exposed['port']}"
    assert int(found["port"]) == port["containerPort"] == exposed["port"]
    assert exposed["targetPort"] == port["name"]
    labels = manifests.of("Deployment")["spec"]["template"]["metadata"]["labels"]
    policy = manifests.of("NetworkPolicy")["spec"]
    assert service["spec"]["selector"] == policy["podSelector"]["matchLabels"] == labels
    stop_seconds = manifests.stop_seconds(found["drain_seconds"])
    assert stop_seconds < manifests.pod()["terminationGracePeriodSeconds"]
    assert manifests.of("Deployment")["spec"]["strategy"] == {"type": "Recreate"}


# --- the Pod Security Standard "restricted" -----------------------------------------------------

RESTRICTED_VOLUMES = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim",
    "projected", "secret",
}  # fmt: skip


def breaches(spec: Json) -> list[str]:
    """Return what the standard "restricted" forbids in a pod's spec."""
    found = [name for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    for volume in spec.get("volumes", []):
        found += [f"volume {kind}" for kind in volume.keys() - {"name"} - RESTRICTED_VOLUMES]
    pod = spec.get("securityContext", {})
    for container in (*spec.get("initContainers", []), *spec["containers"]):
        context = {**pod, **container.get("securityContext", {})}
        capabilities = context.get("capabilities", {})
        rules: dict[str, bool] = {
            "privileged": not context.get("privileged"),
            "allowPrivilegeEscalation": context.get("allowPrivilegeEscalation") is False,
            "capabilities.drop": "ALL" in capabilities.get("drop", []),
            "capabilities.add": set(capabilities.get("add", [])) <= {"NET_BIND_SERVICE"},
            "runAsNonRoot": context.get("runAsNonRoot") is True,
            "runAsUser": context.get("runAsUser") != 0,
            "seccompProfile": context.get("seccompProfile", {}).get("type")
            in ("RuntimeDefault", "Localhost"),
            "procMount": context.get("procMount", "Default") == "Default",
            "hostPort": not any(port.get("hostPort") for port in container.get("ports", [])),
        }
        found += [name for name, kept in rules.items() if not kept]
    return found


def test_the_pod_keeps_the_restricted_standard_that_its_namespace_enforces() -> None:
    labels = manifests.of("Namespace")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    assert breaches(manifests.pod()) == []


def test_the_pod_has_no_token_and_writes_to_its_volumes_only() -> None:
    assert manifests.pod()["automountServiceAccountToken"] is False
    assert manifests.container()["securityContext"]["readOnlyRootFilesystem"] is True
    writable = [
        mount["mountPath"]
        for mount in manifests.container()["volumeMounts"]
        if not mount.get("readOnly")
    ]
    assert writable == ["/var/lib/container-update", "/tmp"]
    assert manifests.container()["resources"]["limits"].keys() == {"memory"}


# --- the service with these settings ------------------------------------------------------------


@pytest.fixture
def service(tmp_path: Path) -> Iterator[TestClient]:
    """A service with the ConfigMap's settings and folders of the test, asked by the pod's address.

    It does not listen; tests/vnfm/test_tls.py has the certificate.
    """
    path = tmp_path / "vnfm.conf"
    path.write_text(manifests.of("ConfigMap")["data"]["vnfm.conf"])
    conf = cfg.ConfigOpts()
    conf(args=[], default_config_files=[str(path)])
    names = {"state_dir": "state", "token_file": "tokens", "key_file": "vault.key"}
    places = {name: str(tmp_path / place) for name, place in names.items()}
    service = Service(Settings.from_conf(conf, **places), Options.from_conf(conf))
    with TestClient(service.app, base_url="https://10.0.0.7:9890") as client:
        yield client


def test_the_kubelet_gets_an_answer_to_each_probe(service: TestClient) -> None:
    container = manifests.container()
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container[probe]["httpGet"]
        assert (asked["scheme"], asked["port"]) == ("HTTPS", "https")
        headers = {header["name"]: header["value"] for header in asked["httpHeaders"]}
        assert service.get(asked["path"], headers=headers).status_code == 200
        assert service.get(asked["path"]).status_code == 400, "then it needs no header"
