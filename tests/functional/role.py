# SPDX-License-Identifier: Apache-2.0
"""The account that an update runs as: samples/rbac/role.yaml in a namespace, and its token."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config

from tests.internals.core import Json, ObjectKey, samples

ROLE = samples.root() / "rbac/role.yaml"
NAME = "container-update"


def objects(namespace: str, path: Path = ROLE) -> list[Json]:
    """Return the sample's objects for this namespace."""
    return list(yaml.load_all(path.read_text().replace("my-cnf", namespace), yaml.CSafeLoader))


def key(namespace: str) -> ObjectKey:
    """Return the key of the Role."""
    return ObjectKey("rbac.authorization.k8s.io", "Role", namespace, NAME)


def write_kubeconfig(admin_kubeconfig: str, namespace: str, path: Path) -> str:
    """Write the administrator's kubeconfig with the account's token instead of the credentials."""
    content: Any = yaml.load(Path(admin_kubeconfig).read_text(), yaml.CSafeLoader)
    for user in content["users"]:
        user["user"] = {"token": _token(admin_kubeconfig, namespace)}
    path.touch(mode=0o600)
    path.write_text(json.dumps(content))
    return str(path)


@functools.cache
def _settings(kubeconfig: str) -> client.Configuration:
    """Read a kubeconfig, once for all tests: its reader takes longer than the request."""
    settings = client.Configuration()
    config.load_kube_config(kubeconfig, client_configuration=settings, persist_config=False)
    return settings


def _token(admin_kubeconfig: str, namespace: str) -> str:
    """Request a token as ``kubectl create token`` does."""
    with client.ApiClient(_settings(admin_kubeconfig)) as api:
        spec = client.V1TokenRequestSpec(audiences=[], expiration_seconds=3600)
        request = client.AuthenticationV1TokenRequest(spec=spec)
        answer = client.CoreV1Api(api).create_namespaced_service_account_token(
            NAME, namespace, request
        )
    return str(answer.status.token)
