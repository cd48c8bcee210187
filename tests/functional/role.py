# SPDX-License-Identifier: Apache-2.0
"""The account that an update runs as: samples/rbac/role.yaml in a namespace, and its token."""

from __future__ import annotations

import functools
import json
import urllib.request
from pathlib import Path
from typing import Any

import yaml

from tests.functional.proxy import Upstream
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


_upstream = functools.cache(Upstream.of)


def _token(admin_kubeconfig: str, namespace: str) -> str:
    """Request a token as ``kubectl create token`` does."""
    server = _upstream(admin_kubeconfig)
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{NAME}/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    request = urllib.request.Request(
        server.url + path,
        json.dumps({**body, "spec": {"audiences": [], "expirationSeconds": 3600}}).encode(),
        {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, context=server.context) as answer:
        return str(json.load(answer)["status"]["token"])
