# SPDX-License-Identifier: Apache-2.0
"""An update does not wait for the one before it, but for the resources that it still works on."""

import pytest

from container_update.emulator.heat import ResourceFault
from container_update.emulator.heat.stacks import Stack
from tests.emulator.heat.lab import ONE_SERVER, Lab


def is_new(properties: dict[str, str]) -> bool:
    """Return whether a server is to have the new image."""
    return properties["image"] == "new"


def stuck(lab: Lab, stack: Stack, **body: object) -> None:
    """Begin an update to the new image that does not end by itself."""
    lab.faults.resources.append(ResourceFault(stuck=True, times=1, where=is_new))
    state = lab.patch(stack, wait=False, parameters={"image": "new"}, **body)
    assert state == "UPDATE_IN_PROGRESS", "before the request is answered"
    lab.until(lambda: any(server.facts["status"] == "REBUILD" for server in lab.servers(stack)))


def test_a_cancelled_update_fails_the_stack_alone(lab: Lab) -> None:
    stack = lab.create()
    stuck(lab, stack)
    answer = lab.send("POST", f"{lab.path(stack)}/actions", {"cancel_without_rollback": None})
    assert (answer.status_code, answer.text) == (200, "null")
    assert lab.settled(stack) == "UPDATE_FAILED"
    assert stack.reason == "Stack UPDATE cancelled"
    states = [server.state for server in lab.servers(stack)]
    assert "UPDATE_IN_PROGRESS" in states
    lab.patch(stack, wait=False, parameters={"image": "old"})
    lab.until(lambda: lab.group(stack).state == "UPDATE_IN_PROGRESS")
    assert stack.state == "UPDATE_IN_PROGRESS", "it waits for the server"
    lab.cloud.release()
    assert lab.settled(stack) == "UPDATE_COMPLETE"


def test_the_timeout_frees_the_server_and_nova_goes_on_without_heat(lab: Lab) -> None:
    lab.faults.minute = 0.05
    stack = lab.create(ONE_SERVER, timeout_mins=1000)
    stuck(lab, stack, timeout_mins=1)
    assert lab.settled(stack) == "UPDATE_FAILED"
    assert (stack.reason, stack.timeout_mins) == ("Timed out", 1)
    (server,) = lab.servers(stack)
    assert server.state == "UPDATE_FAILED"
    lab.patch(stack, timeout_mins=1000, parameters={"image": "old"})
    assert (stack.state, server.state) == ("UPDATE_COMPLETE", "UPDATE_COMPLETE")
    assert "neither update nor replace" in server.reason
    lab.cloud.release()
    lab.until(lambda: server.facts["status"] == "ACTIVE")
    assert lab.patch(stack) == "UPDATE_COMPLETE"
    assert lab.images(stack) == ["new"], "nobody looked"


def test_the_server_of_a_cancelled_update_is_freed_at_that_updates_timeout(lab: Lab) -> None:
    lab.faults.minute = 0.3
    stack = lab.create(ONE_SERVER, timeout_mins=1000)
    stuck(lab, stack, timeout_mins=1)
    lab.send("POST", f"{lab.path(stack)}/actions", {"cancel_without_rollback": None})
    lab.settled(stack)
    state = lab.patch(stack, timeout_mins=1000, parameters={"image": "old"})
    assert state == "UPDATE_COMPLETE"
    reasons = [event.reason for server in lab.servers(stack) for event in server.stack.events]
    assert any("Timed out" in reason for reason in reasons)


@pytest.mark.parametrize("later", [{}, {"parameters": {}}])
def test_rollback_and_timeout_stay_until_another_update_changes_them(
    lab: Lab, later: dict[str, object]
) -> None:
    stack = lab.create(ONE_SERVER, disable_rollback=True, timeout_mins=10)
    lab.patch(stack, disable_rollback=False, timeout_mins=5)
    lab.patch(stack, **later)
    assert (stack.disable_rollback, stack.timeout_mins) == (False, 5)
    lab.faults.resources.append(ResourceFault("no", "Forbidden", where=is_new))
    assert lab.patch(stack, parameters={"image": "new"}) == "ROLLBACK_COMPLETE"
    assert stack.parameters == {}


def test_a_stack_is_deleted_while_a_server_is_stuck(lab: Lab) -> None:
    stack = lab.create()
    stuck(lab, stack)
    assert lab.send("DELETE", lab.path(stack)).status_code == 204
    assert lab.settled(stack) == "DELETE_COMPLETE"
    assert lab.cloud.call(lambda heat: list(heat.servers())) == []
    assert lab.send("DELETE", lab.path(stack)).status_code == 404
