# SPDX-License-Identifier: Apache-2.0
"""A login that ends in the middle of an update is got again, and the update goes on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from container_update import connect
from container_update.emulator.kubernetes.api.access import Access
from container_update.emulator.kubernetes.api_errors import ApiError
from tests.functional.cnf import IMAGES, Cnf
from tests.functional.conftest import REAL
from tests.functional.manifests import ENV, config_map, workload
from tests.internals.core import StepState

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

    def of(self, authorization: str | None) -> str | None:
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


def token_file(kubeconfig: str, requests: int, patch: pytest.MonkeyPatch) -> TokenFile:
    """Move the token of a kubeconfig into a file; return the file."""
    path, content = Path(kubeconfig), yaml.safe_load(Path(kubeconfig).read_text())
    user: Any = content["users"][0]["user"]
    file = TokenFile(path.parent / "token", user.pop("token"), requests)
    file.path.write_text("first")
    user["tokenFile"] = "token"
    path.write_text(yaml.safe_dump(content))
    known = Access.user
    patch.setattr(Access, "user", lambda access, header: known(access, file.of(header)))
    return file


@pytest.mark.skipif(bool(REAL), reason="the embedded cluster refuses the token")
@pytest.mark.parametrize("requests", [0, 3, 6, 10, 14, 18, 22])
def test_an_update_goes_on_with_another_token_from_any_request_on(
    requests: int, cnf: Cnf, kubeconfig: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = {"cm": OLD, **{name: workload("Deployment", name, container=ENV) for name in "abc"}}
    cnf.instantiate(**old)
    new = {name: workload("Deployment", name, container=ENV, image=IMAGES[1]) for name in "abc"}
    options = replace(cnf.options, watch_seconds=1, lease_seconds=3)
    file = token_file(kubeconfig, requests, monkeypatch)
    with connect(kubeconfig, options=options) as cluster:
        outcome = replace(cnf, cluster=cluster, options=options).update({"cm": NEW, **new})
        assert {result.state for result in outcome.results} == {StepState.DONE}
        assert file.refused > 0
    assert cnf.plan({"cm": NEW, **new}).is_empty
