# SPDX-License-Identifier: Apache-2.0
"""What an API server refuses, or changes, of what is written to one namespace.

A real server does it by admission policies, which a test on the same server does not notice in its
own namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import yaml

from container_update import ClusterError
from container_update.emulator.kubernetes import ApiError
from tests.functional.manifests import config_map, workload
from tests.functional.reference_update import until
from tests.functional.server import EmbeddedServer, RealServer, Server
from tests.internals.core import (
    Json,
    KubernetesCluster,
    ObjectKey,
    containers,
    images,
    pod_spec,
)

GROUP = "admissionregistration.k8s.io"
WORKLOADS = "workloads with a controller"
BAD = "bad:"
"""What images begin with that no registry has."""
RESOURCES: Mapping[str, tuple[str, Sequence[str]]] = {
    "Deployment": ("apps", ("deployments",)),
    "Pod": ("", ("pods",)),
    WORKLOADS: ("apps", ("deployments", "replicasets", "statefulsets", "daemonsets")),
    "CronJob": ("batch", ("cronjobs",)),
    "ConfigMap": ("", ("configmaps",)),
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
    """Return what the server would store for a new object; nothing is written."""
    text = config_map("tried") if kind == "ConfigMap" else workload(kind, "tried", **parts)
    body = yaml.safe_load(text)
    body["metadata"]["namespace"] = namespace
    return admin.dry_run("create", body).body


@contextmanager
def refusing_deployments(server: Server, namespace: str, message: str) -> Iterator[None]:
    """Have the server refuse every Deployment of a namespace while the block runs."""
    with refusing(server, namespace, "Deployment", message):
        yield


@contextmanager
def refusing(server: Server, namespace: str, kind: str, message: str) -> Iterator[None]:
    """Have the server refuse all new objects of a kind, and other content of those that are there,
    in a namespace while the block runs.

    :param kind: a key of RESOURCES.
    """
    if isinstance(server, EmbeddedServer):

        def refuse(resource: Any, body: Json) -> None:
            here = body["metadata"].get("namespace", namespace) == namespace
            if resource.kind == kind and here:
                denied = 'admission webhook "refuse.example.org" denied the request'
                raise ApiError(403, "Forbidden", f"{denied}: {message}", {})

        with _webhook(server, refuse):
            yield
        return
    assert isinstance(server, RealServer)
    admin = server.admin
    validation = {"expression": "false", "message": message, "reason": "Forbidden"}
    policy = Policy("refuse", namespace, kind, {"validations": [validation]})

    def is_refused() -> bool:
        try:
            tried(admin, namespace, kind)
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


PODS = {
    WORKLOADS: "spec.template.spec",
    "CronJob": "spec.jobTemplate.spec.template.spec",
    "Pod": "spec",
}
"""Where the pods of what a policy is about are described."""


@contextmanager
def mirroring_images(
    server: Server, namespace: str, kinds: Sequence[str], mirror: str
) -> Iterator[None]:
    """Have the server put a mirror before the images of these kinds of a namespace, keys of PODS,
    while the block runs; not before those that no registry has."""
    if isinstance(server, EmbeddedServer):
        plurals = {plural for kind in kinds for plural in RESOURCES[kind][1]}

        def rewrite(resource: Any, body: Json) -> None:
            # what a controller creates has none yet
            here = body["metadata"].get("namespace", namespace) == namespace
            if here and resource.plural in plurals:
                whole = {**body, "kind": resource.kind, "apiVersion": resource.api_version}
                for _, container in containers(pod_spec(whole)):
                    if not container["image"].startswith((mirror, BAD)):
                        container["image"] = mirror + container["image"]

        with _webhook(server, rewrite):
            yield
        return
    assert isinstance(server, RealServer)
    with ExitStack() as stack:
        for kind in kinds:
            name = f"mirror-{kind.split()[0].lower()}"
            policy = Policy(name, namespace, kind, _mirroring(PODS[kind], mirror))
            of = "Deployment" if kind == WORKLOADS else kind
            is_seen = partial(_is_mirrored, server.admin, namespace, of, mirror)
            stack.enter_context(policy.in_force(server.admin, is_seen))
        yield


def _mirroring(pods: str, mirror: str) -> Json:
    """Return the part of a policy that rewrites the first image of each list of containers."""
    patches = []
    for containers_ in ("containers", "initContainers"):
        image, path = f"object.{pods}.{containers_}[0].image", f"{pods}.{containers_}.0.image"
        is_there = f"has(object.{pods}.{containers_})"
        others = f"!{image}.startsWith('{mirror}') && !{image}.startsWith('{BAD}')"
        patch = f"op: 'replace', path: '/{path.replace('.', '/')}', value: '{mirror}' + {image}"
        patches.append(f"({is_there} && {others} ? [JSONPatch{{{patch}}}] : [])")
    expression = {"expression": " + ".join(patches)}
    return {"mutations": [{"patchType": "JSONPatch", "jsonPatch": expression}]}


def _is_mirrored(admin: KubernetesCluster, namespace: str, kind: str, mirror: str) -> bool:
    stored = tried(admin, namespace, kind, image="any:1")
    return all(image.startswith(mirror) for image in images(stored).values())


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
