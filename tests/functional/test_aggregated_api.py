# SPDX-License-Identifier: Apache-2.0
"""A kind that another server serves behind the API server, and which knows no dry run."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
import trustme
from aiohttp import web

from container_update import ClusterError, InstallRequest, install, plan_of
from container_update.emulator.http_server import HttpServer
from container_update.emulator.loop_thread import LoopThread
from tests.functional.cnf import Cnf
from tests.functional.conftest import until
from tests.functional.manifests import config_map
from tests.functional.real import REAL
from tests.internals.core import Json, KubernetesCluster, ObjectKey

pytestmark = pytest.mark.skipif(not REAL, reason="the embedded cluster aggregates no other servers")

KIND = "Thing"
STATUS = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}


@dataclass
class Backend(LoopThread):
    """A server of things, on loopback. It carries out every request, also a dry run."""

    group: str
    things: dict[str, Json] = field(default_factory=dict)
    """By path."""
    writes: list[str] = field(default_factory=list)
    """The method, path and query of each."""
    port: int = 0

    def __post_init__(self) -> None:
        super().__init__("backend")
        self._server = HttpServer()

    async def _open(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trustme.CA().issue_cert("localhost").configure_cert(context)
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._respond)
        self.port = await self._server.listen(app, 0, context)

    async def _close(self) -> None:
        await self._server.stop()

    async def _respond(self, request: web.Request) -> web.Response:
        path, version = request.path.rstrip("/"), f"{self.group}/v1"
        if path == f"/apis/{version}":
            thing = {"name": "things", "singularName": "thing", "kind": KIND, "namespaced": True}
            resources = [{**thing, "verbs": ["create", "delete", "get", "list", "update"]}]
            kind = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version}
            return web.json_response({**kind, "resources": resources})
        if request.method == "POST":
            self.writes.append(f"POST {request.path_qs}")
            body = await request.json()
            metadata = {**body["metadata"], "uid": "1", "resourceVersion": "1"}
            body = {**body, "metadata": metadata}
            self.things[f"{path}/{metadata['name']}"] = body
            return web.json_response(body, status=201)
        if request.method != "GET":
            self.writes.append(f"{request.method} {request.path_qs}")
        if path in self.things:
            return web.json_response(self.things[path])
        if path.endswith("/things"):
            items = list(self.things.values())
            listed = {"kind": f"{KIND}List", "apiVersion": version, "items": items}
            return web.json_response({**listed, "metadata": {"resourceVersion": "1"}})
        return web.json_response({**STATUS, "reason": "NotFound", "code": 404}, status=404)


def is_available(service: Json | None) -> bool:
    """Tell whether the API server has reached the other one."""
    conditions = ((service or {}).get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Available" and each["status"] == "True" for each in conditions)


def is_served(cluster: KubernetesCluster, group: str) -> bool:
    """Tell whether requests reach the other server; the first ones may be answered with 503."""
    try:
        return bool(cluster.look_up_versions(group, KIND))
    except ClusterError as error:
        if not error.transient:
            raise
        return False


@pytest.fixture
def backend(cnf: Cnf) -> Iterator[Backend]:
    """A server of a group of its own, which the API server has requests carried out by."""
    group = f"{cnf.namespace}.example.org"
    key = ObjectKey("apiregistration.k8s.io", "APIService", "", f"v1.{group}")
    with Backend(group) as running:
        name = {"name": "backend", "namespace": cnf.namespace}
        local = {"type": "ExternalName", "externalName": "localhost"}
        cnf.admin.create({"apiVersion": "v1", "kind": "Service", "metadata": name, "spec": local})
        spec = {
            "group": group,
            "version": "v1",
            "groupPriorityMinimum": 100,
            "versionPriority": 10,
            "insecureSkipTLSVerify": True,
            "service": {**name, "port": running.port},
        }
        version = "apiregistration.k8s.io/v1"
        body = {"apiVersion": version, "kind": key.kind, "metadata": {"name": key.name}}
        cnf.admin.create({**body, "spec": spec})
        try:
            until(lambda: is_available(cnf.admin.get(key)))
            until(lambda: is_served(cnf.admin, group))
            yield running
        finally:
            cnf.admin.delete(key)


def test_a_plan_of_its_kind_writes_nothing_and_says_that_it_was_not_tried(
    cnf: Cnf, backend: Backend
) -> None:
    thing = f"apiVersion: {backend.group}/v1\nkind: {KIND}\nmetadata: {{name: t}}\n"
    package = cnf.package({"t.yaml": thing, "a.yaml": config_map("a")})
    request = InstallRequest(package, namespace=cnf.namespace, instance_id="i")

    plan = plan_of(request, cnf.admin, cnf.options)

    (note,) = (each.text for each in plan.notes if each.key.kind == KIND)
    assert "expected a server that declares dry run for" in note
    assert (plan.tried, plan.writes) == (1, 2)
    assert (backend.writes, backend.things) == ([], {})

    install(package, cnf.admin, namespace=cnf.namespace, instance_id="i", options=cnf.options)

    (write,) = (each for each in backend.writes if each.startswith("POST"))
    assert "dryRun" not in write
    assert [path.rpartition("/")[2] for path in backend.things] == ["t"]
