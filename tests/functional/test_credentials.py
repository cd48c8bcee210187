# SPDX-License-Identifier: Apache-2.0
"""A login that ends in the middle of an update is got again, and the update goes on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import hdrs, web

from container_update import connect
from container_update.emulator.http_server import Handler
from container_update.emulator.kubernetes.api_errors import ApiError
from tests.functional.cnf import IMAGES, Cnf
from tests.functional.manifests import ENV, config_map, workload
from tests.functional.reference_update import Lab
from tests.internals.core import KubernetesCluster, StepState

OLD, NEW = config_map(setting="old"), config_map(setting="new")


@dataclass
class TokenFile:
    """A file with an account's token, which gets another name from one request on."""

    path: Path
    token: str
    requests: int
    """How many are let in with the first name."""
    names: list[str] = field(default_factory=lambda: ["first"])
    refused: int = 0

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Stand between the client and the server, which knows the account's token only."""
        given = request.headers.get(hdrs.AUTHORIZATION)
        known = self._known(given)
        if known == given:
            return await handler(request)
        headers = request.headers.copy()
        headers[hdrs.AUTHORIZATION] = known
        return await handler(request.clone(headers=headers))

    def _known(self, authorization: str | None) -> str | None:
        """Return what the API server would get to see of a valid token; raise 401 for another."""
        name = (authorization or "").removeprefix("Bearer ")
        if name not in ("first", "second"):
            return authorization
        self.requests -= name == "first"
        if self.requests < 0 and self.names == ["first"]:
            self.names = ["second"]
            self.path.write_text("second")
        if name not in self.names:
            self.refused += 1
            raise ApiError(401, "Unauthorized", "Unauthorized")
        return f"Bearer {self.token}"


@pytest.fixture(scope="module")
def admin_kubeconfig(lab: Lab) -> str:
    return lab.kubeconfig


@pytest.fixture(scope="module")
def admin(lab: Lab) -> KubernetesCluster:
    return lab.admin


@pytest.fixture
def token_file(lab: Lab, kubeconfig: str, requests: int) -> Iterator[TokenFile]:
    """The token of a kubeconfig, moved into a file."""
    path, content = Path(kubeconfig), yaml.safe_load(Path(kubeconfig).read_text())
    user: Any = content["users"][0]["user"]
    file = TokenFile(path.parent / "token", user.pop("token"), requests)
    file.path.write_text("first")
    user["tokenFile"] = "token"
    path.write_text(yaml.safe_dump(content))
    lab.server.middlewares.append(file)
    yield file
    lab.server.middlewares.remove(file)


@pytest.mark.parametrize("requests", [0, 3, 6, 10, 14, 18])
def test_an_update_goes_on_with_another_token_from_any_request_on(
    cnf: Cnf, kubeconfig: str, token_file: TokenFile
) -> None:
    old = {"cm": OLD, **{name: workload("Deployment", name, container=ENV) for name in "abc"}}
    cnf.instantiate(**old)
    new = {name: workload("Deployment", name, container=ENV, image=IMAGES[1]) for name in "abc"}
    options = replace(cnf.options, watch_seconds=1, lease_seconds=3)
    with connect(kubeconfig, options=options) as cluster:
        outcome = replace(cnf, cluster=cluster, options=options).update({"cm": NEW, **new})
        assert {result.state for result in outcome.results} == {StepState.DONE}
        assert token_file.refused > 0
    assert cnf.plan({"cm": NEW, **new}).is_empty
