# SPDX-License-Identifier: Apache-2.0
"""What an API server refuses, or changes, of what is written to one namespace.

A real server does it by admission policies, which a test on the same server does not notice in its
own namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import yaml

from container_update import ClusterError
from container_update.emulator.kubernetes import ApiError
from tests.functional.manifests import workload
from tests.functional.reference_update import until
from tests.functional.server import EmbeddedServer, RealServer, Server
from tests.internals.core import Json, KubernetesCluster, ObjectKey

GROUP = "admissionregistration.k8s.io"
WORKLOADS = "workloads with a controller"
RESOURCES: Mapping[str, tuple[str, Sequence[str]]] = {
    "Deployment": ("apps", ("deployments",)),
    "Pod": ("", ("pods",)),
    WORKLOADS: ("apps", ("deployments", "replicasets", "statefulsets", "daemonsets")),
}
"""The API group and the plurals of what a policy is about."""


@dataclass(frozen=True)
class Policy:
    """A policy of a real server for objects of one namespace; '': of all of them."""

    name: str
    namespace: str
    kind: str
    spec: Json
    """What it does: ``validations`` or ``mutations``, and ``matchConditions``."""

    def objects(self) -> list[Json]:
        """Return the policy and its binding."""
        name = f"{self.name}-{self.namespace}".rstrip("-")
        group, resources = RESOURCES[self.kind]
        rule = {
            "apiGroups": [group],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": list(resources),
        }
        here = {"kubernetes.io/metadata.name": self.namespace} if self.namespace else {}
        constraints = {"namespaceSelector": {"matchLabels": here}, "resourceRules": [rule]}
        spec = {"matchConstraints": constraints, "failurePolicy": "Fail", **self.spec}
        binding: Json = {"policyName": name}
        if "mutations" in self.spec:
            kind, spec["reinvocationPolicy"] = "MutatingAdmissionPolicy", "Never"
        else:
            kind, binding["validationActions"] = "ValidatingAdmissionPolicy", ["Deny"]
        metadata = {"name": name}
        return [
            {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, "spec": spec}
            for kind, spec in ((kind, spec), (f"{kind}Binding", binding))
        ]

    @contextmanager
    def in_force(self, admin: KubernetesCluster, is_seen: Callable[[], bool]) -> Iterator[None]:
        """Have the server follow it while the block runs.

        :param is_seen: whether the server does; it hears of a policy a moment after its creation.
        """
        bodies = self.objects()
        for body in bodies:
            admin.create(body)
        try:
            until(is_seen)
            yield
        finally:
            for body in reversed(bodies):
                admin.delete(ObjectKey(GROUP, body["kind"], "", body["metadata"]["name"]))
            until(lambda: not is_seen())


def json_patch(op: str, path: str, value: str | None = None) -> Json:
    """Return the mutation of a policy that carries out one operation."""
    fields = {"op": op, "path": path, **({} if value is None else {"value": value})}
    text = ", ".join(f"{key}: '{value}'" for key, value in fields.items())
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": f"[JSONPatch{{{text}}}]"}}


def tried(admin: KubernetesCluster, namespace: str, kind: str, **parts: Any) -> Json:
    """Return what the server would store for a new workload; nothing is written."""
    body = yaml.safe_load(workload(kind, "tried", **parts))
    body["metadata"]["namespace"] = namespace
    return admin.dry_run("create", body).body


@contextmanager
def refusing_deployments(server: Server, namespace: str, message: str) -> Iterator[None]:
    """Have the server refuse every Deployment of a namespace while the block runs."""
    if isinstance(server, EmbeddedServer):

        def refuse(kind: Any, body: Json) -> None:
            if kind.kind == "Deployment" and body["metadata"].get("namespace") == namespace:
                raise ApiError(403, "Forbidden", message, {})

        with _webhook(server, refuse):
            yield
        return
    assert isinstance(server, RealServer)
    admin = server.admin
    validation = {"expression": "false", "message": message, "reason": "Forbidden"}
    policy = Policy("refuse", namespace, "Deployment", {"validations": [validation]})

    def is_refused() -> bool:
        try:
            tried(admin, namespace, "Deployment")
        except ClusterError as error:
            if error.status != 403:
                raise
            return True
        return False

    with policy.in_force(admin, is_refused):
        yield


@contextmanager
def dropping_working_directories(server: Server, namespace: str) -> Iterator[None]:
    """Have the server drop ``workingDir`` of the Deployments of a namespace while the block
    runs."""
    if isinstance(server, EmbeddedServer):

        def drop(kind: Any, body: Json) -> None:
            if kind.kind == "Deployment" and body["metadata"].get("namespace") == namespace:
                main_container(body).pop("workingDir", None)

        with _webhook(server, drop):
            yield
        return
    assert isinstance(server, RealServer)
    admin = server.admin
    container = "object.spec.template.spec.containers[0]"
    policy = Policy(
        "drop",
        namespace,
        "Deployment",
        {
            "matchConditions": [{"name": "has", "expression": f"has({container}.workingDir)"}],
            "mutations": [json_patch("remove", "/spec/template/spec/containers/0/workingDir")],
        },
    )

    def is_dropped() -> bool:
        stored = tried(admin, namespace, "Deployment", container="workingDir: /here")
        return "workingDir" not in main_container(stored)

    with policy.in_force(admin, is_dropped):
        yield


def main_container(body: Json) -> Json:
    """Return the first container of a workload's template."""
    container: Json = body["spec"]["template"]["spec"]["containers"][0]
    return container


@contextmanager
def _webhook(server: EmbeddedServer, hook: Callable[[Any, Json], None]) -> Iterator[None]:
    server.front.call(lambda registry: registry.webhooks.append(hook))
    try:
        yield
    finally:
        server.front.call(lambda registry: registry.webhooks.remove(hook))
