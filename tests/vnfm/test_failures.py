# SPDX-License-Identifier: Apache-2.0
"""How an operation occurrence describes a failure."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy.exc import OperationalError

from container_update import ClusterError, ContainerUpdateError, NextStep, PackageError, Plan
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.internals.service import ProblemError, Steps, problem_of, requests_of
from tests.vnfm import vnfs
from tests.vnfm.client import Client

REQUESTS = requests_of("v2", "7")


@pytest.mark.parametrize("undoing", [False, True])
@pytest.mark.parametrize("step", NextStep)
def test_the_next_step_is_a_request_of_the_api(step: NextStep, undoing: bool) -> None:
    error = ContainerUpdateError("the stack is gone", next_step=step)
    detail = problem_of(error, REQUESTS, undoing=undoing)["detail"]
    assert detail.startswith("the stack is gone. ")
    assert "POST /vnflcm/v2/vnf_lcm_op_occs/7/" in detail


@pytest.mark.parametrize(
    ("undoing", "undoable", "request_"),
    [(False, True, "rollback"), (False, False, "fail"), (True, True, "fail")],
)
def test_the_advice_after_a_wrong_request_is_to_end_the_operation(
    undoing: bool, undoable: bool, request_: str
) -> None:
    problem = problem_of(PackageError("no"), REQUESTS, undoing=undoing, undoable=undoable)
    assert f"(POST /vnflcm/v2/vnf_lcm_op_occs/7/{request_})" in problem["detail"]


@pytest.mark.parametrize(("undoing", "request_"), [(False, "retry"), (True, "rollback")])
def test_the_advice_after_a_failure_is_to_repeat_the_failed_request(
    undoing: bool, request_: str
) -> None:
    detail = problem_of(ContainerUpdateError("no"), REQUESTS, undoing=undoing)["detail"]
    assert detail.endswith(f"try again: POST /vnflcm/v2/vnf_lcm_op_occs/7/{request_}.")


def test_an_unexpected_error_is_not_quoted() -> None:
    detail = problem_of(ValueError("password=1234"), REQUESTS)["detail"]
    assert "ValueError" in detail
    assert "1234" not in detail


def test_an_expected_error_is_quoted() -> None:
    assert problem_of(ClusterError("no, because"), REQUESTS)["detail"].startswith(
        "no, because. Fix"
    )
    assert problem_of(ProblemError(409, "busy"), REQUESTS)["status"] == 409


def test_the_folders_of_the_service_are_not_shown_to_clients(
    client: Client, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    package, vnfd_id = vnfs.package(tmp_path, "1.0", vnfs.ours(client.api))
    client.onboard(package)
    path = client.create(vnfd_id)
    request = vnfs.instantiation(client.vims(cluster), def_files=["Files/none.yaml"])
    details = [client.call("POST", f"{path}/instantiate", request, 422)["detail"]]
    if client.api == "v2":
        client.do("POST", f"{path}/instantiate", vnfs.instantiation(client.vims(cluster)))
        params = {"upgrade_type": "RollingUpdate", "lcm-operation-coordinate-new-vnf": "none.py"}
        change = {"vnfdId": vnfd_id, "additionalParams": params}
        details.append(client.call("POST", f"{path}/change_vnfpkg", change, 422)["detail"])
    for detail in details:
        assert re.search(r"none\.(yaml|py) in packages/", detail)
        assert str(tmp_path) not in detail


class AwayDatabase:
    """A database that cannot be reached."""

    def lasting(self, function: Callable[[], None]) -> None:
        function()

    def writing(self) -> AbstractContextManager[None]:
        raise OperationalError("INSERT", {}, Exception("gone"))


def test_a_plan_that_the_database_cannot_store_is_refused() -> None:
    """A rollback needs it, and nothing was written to the VIM yet."""
    steps = Steps(cast(Any, AwayDatabase()), "7", remember=True)
    with pytest.raises(ContainerUpdateError, match="cannot store the progress: OperationalError"):
        steps(Plan("cnf", None, ()))
