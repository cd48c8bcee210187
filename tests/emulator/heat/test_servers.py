# SPDX-License-Identifier: Apache-2.0
"""What becomes of a server: rebuilt, resized, refused, replaced; and of the request's answer."""

import pytest

from container_update.emulator.heat import ResourceFault
from tests.emulator.heat.lab import FILES, MEMBER, ONE_SERVER, TOP, Lab


def test_a_server_is_resized_before_it_is_rebuilt(lab: Lab) -> None:
    stack = lab.create()
    parameters = {"image": "new", "flavor": "large"}
    assert lab.patch(stack, parameters=parameters) == "UPDATE_COMPLETE"
    assert [server.facts["actions"] for server in lab.servers(stack)] == [["resize", "rebuild"]] * 2


def test_a_smaller_disk_is_refused_and_a_new_server_is_the_way_back(lab: Lab) -> None:
    lab.faults.disks = {"small": 1, "large": 2}
    stack = lab.create(parameters={"size": 1})
    assert lab.patch(stack, parameters={"flavor": "large"}) == "UPDATE_COMPLETE"
    (member,), (server,) = lab.members(stack), lab.servers(stack)
    before = {name: resource.physical_id for name, resource in member.resources.items()}
    assert lab.patch(stack, parameters={"flavor": "small"}) == "UPDATE_FAILED"
    assert "Flavor's disk is smaller" in stack.reason
    assert (server.facts["status"], server.facts["flavor"]) == ("ACTIVE", "large")
    lab.mark_unhealthy(server)
    assert lab.patch(stack) == "UPDATE_COMPLETE"
    after = {name: resource.physical_id for name, resource in member.resources.items()}
    assert after["port"] == before["port"]
    assert after["server"] != before["server"]
    assert [each.facts["flavor"] for each in lab.servers(stack)] == ["small"]


@pytest.mark.parametrize("ruins", [False, True])
def test_only_a_server_in_error_is_replaced(lab: Lab, ruins: bool) -> None:
    stack = lab.create(ONE_SERVER)
    (before,) = lab.servers(stack)
    lab.faults.resources.append(ResourceFault("no", "Conflict", times=1, ruins=ruins))
    assert lab.patch(stack, parameters={"image": "new"}) == "UPDATE_FAILED"
    assert lab.patch(stack, parameters={"image": "old"}) == "UPDATE_COMPLETE"
    (after,) = lab.servers(stack)
    assert (after.physical_id != before.physical_id) is ruins
    assert len(lab.cloud.call(lambda heat: list(heat.servers()))) == 1


def test_an_image_that_there_is_not_is_refused_where_the_server_stands(lab: Lab) -> None:
    lab.faults.images = {"old"}
    stack = lab.create()
    (member, _) = lab.members(stack)
    body = {"template": MEMBER, "parameters": {"image": "none", "flavor": "small"}}
    answer = lab.send("PUT", lab.path(member), body)
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "StackValidationFailed")
    assert member.state == "CREATE_COMPLETE"
    body = {"template": TOP, "files": FILES, "parameters": {"image": "none"}}
    assert lab.send("PUT", lab.path(stack), body).status_code == 202
    assert lab.settled(stack) == "UPDATE_FAILED"
    assert lab.actions(stack) == [0, 0]


@pytest.mark.parametrize(
    ("accept", "kind", "begins"),
    [
        ("application/json", "application/json", "{"),
        ("*/*", "text/plain", "202 Accepted"),
        ("text/html", "text/html", "<html>"),
    ],
)
def test_an_accepted_update_is_answered_in_json_only_if_asked(
    lab: Lab, accept: str, kind: str, begins: str
) -> None:
    stack = lab.create(ONE_SERVER)
    answer = lab.send("PATCH", lab.path(stack), {}, accept)
    assert (answer.status_code, answer.headers["Content-Type"].partition(";")[0]) == (202, kind)
    assert answer.text.startswith(begins)
    assert "stack" not in (answer.json() if kind.endswith("json") else {})


def test_a_change_that_nova_is_still_busy_with_is_refused(lab: Lab) -> None:
    lab.faults.minute = 0.05
    stack = lab.create(ONE_SERVER, timeout_mins=1)
    lab.faults.resources.append(ResourceFault(stuck=True, times=1, action="UPDATE"))
    assert lab.patch(stack, parameters={"image": "new"}) == "UPDATE_FAILED"
    assert lab.patch(stack, parameters={"image": "newer"}) == "UPDATE_FAILED"
    assert "HTTP 409" in stack.reason
