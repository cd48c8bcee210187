# SPDX-License-Identifier: Apache-2.0
"""A stack with a group, changed by plain requests, and what the cloud then knows of it."""

import time
from collections.abc import Callable
from typing import Any

import requests

from container_update.emulator.heat import EmbeddedOpenStack
from container_update.emulator.heat.stacks import Stack, StackResource

MEMBER = """
heat_template_version: 2021-04-16
parameters: {image: {type: string}, flavor: {type: string}}
resources:
  port: {type: OS::Neutron::Port, properties: {network: net}}
  server:
    type: OS::Nova::Server
    properties:
      image: {get_param: image}
      flavor: {get_param: flavor}
      networks: [{port: {get_resource: port}}]
"""
FILES = {"member.yaml": MEMBER}
TOP: dict[str, Any] = {
    "heat_template_version": "2021-04-16",
    "parameters": {
        "image": {"type": "string", "default": "old"},
        "flavor": {"type": "string", "default": "small"},
        "size": {"type": "number", "default": 2},
    },
    "resources": {
        "group": {
            "type": "OS::Heat::AutoScalingGroup",
            "properties": {
                "min_size": 0,
                "max_size": 5,
                "desired_capacity": {"get_param": "size"},
                "resource": {
                    "type": "member.yaml",
                    "properties": {
                        "image": {"get_param": "image"},
                        "flavor": {"get_param": "flavor"},
                    },
                },
            },
        }
    },
}
ONE_SERVER = {
    **{key: TOP[key] for key in ("heat_template_version", "parameters")},
    "resources": {
        "server": {
            "type": "OS::Nova::Server",
            "properties": {"image": {"get_param": "image"}, "flavor": {"get_param": "flavor"}},
        }
    },
}


class Lab:
    """Sends requests to a cloud's Heat."""

    def __init__(self, cloud: EmbeddedOpenStack) -> None:
        self.cloud = cloud
        self.faults = cloud.faults
        user = {"name": cloud.auth()["username"], "password": cloud.auth()["password"]}
        login = {"auth": {"identity": {"password": {"user": user}}}}
        token = cloud.call(lambda _: cloud.keystone.issue(login)[0])
        self._headers = {"X-Auth-Token": token}
        self._url = f"{cloud.url}/heat-api/v1/{cloud.keystone.project_id}/stacks"

    def send(
        self, method: str, path: str, body: Any = None, accept: str = "application/json"
    ) -> requests.Response:
        """Send a request about the path below ``/stacks``."""
        headers = {**self._headers, "Accept": accept}
        return requests.request(method, self._url + path, json=body, headers=headers, timeout=30)

    def create(self, template: dict[str, Any] = TOP, **more: Any) -> Stack:
        """Create the stack ``vnf`` and wait for it."""
        body = {"stack_name": "vnf", "template": template, "files": FILES, **more}
        assert self.send("POST", "", body).status_code == 201
        stack = self.cloud.call(lambda heat: heat.find("vnf"))
        assert self.settled(stack) == "CREATE_COMPLETE"
        return stack

    def path(self, stack: Stack) -> str:
        """Return a stack's path below ``/stacks``."""
        return f"/{stack.name}/{stack.id}"

    def patch(self, stack: Stack, *, wait: bool = True, **body: Any) -> str:
        """Update a stack with PATCH, and return its state then."""
        answer = self.send("PATCH", self.path(stack), body)
        assert answer.status_code == 202, answer.text
        return self.settled(stack) if wait else stack.state

    def put_member(self, member: Stack, **parameters: str) -> str:
        """Update a member's own stack with PUT, and return its state then."""
        body = {"template": MEMBER, "parameters": {"flavor": "small", **parameters}}
        assert self.send("PUT", self.path(member), body).status_code == 202
        return self.settled(member)

    def put_group(self, group: Stack, **properties: str) -> str:
        """Store a definition of every member in the group's own stack."""
        template = self.send("GET", f"{self.path(group)}/template").json()
        for definition in template["resources"].values():
            definition["properties"] = {"flavor": "small", **properties}
        body = {"template": template, "files": FILES}
        assert self.send("PUT", self.path(group), body).status_code == 202
        return self.settled(group)

    def mark_unhealthy(self, resource: StackResource) -> None:
        """Mark a resource unhealthy."""
        path = f"{self.path(resource.stack)}/resources/{resource.name}"
        answer = self.send("PATCH", path, {"mark_unhealthy": True})
        assert (answer.status_code, answer.text) == (200, "null")

    # --- the state ------------------------------------------------------------------------------

    def settled(self, stack: Stack) -> str:
        """Wait until a stack is not IN_PROGRESS and return its state."""
        self.until(lambda: stack.status != "IN_PROGRESS")
        return stack.state

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition, which is looked at on the cloud's own thread."""
        deadline = time.monotonic() + 20
        while not self.cloud.call(lambda _: condition()):
            assert time.monotonic() < deadline, "the condition did not come true"
            time.sleep(0.002)

    def group(self, stack: Stack) -> Stack:
        """Return the group's own stack."""
        nested = stack.resources["group"].nested
        assert nested is not None
        return nested

    def members(self, stack: Stack) -> list[Stack]:
        """Return the members' stacks."""
        found = [member.nested for member in self.group(stack).resources.values()]
        return [member for member in found if member is not None]

    def servers(self, stack: Stack) -> list[StackResource]:
        """Return the servers of a stack and of those nested in it."""
        return [each for each in stack.walk(9) if each.kind == "OS::Nova::Server"]

    def images(self, stack: Stack) -> list[str]:
        """Return the images that the servers really have."""
        return [server.facts["image"] for server in self.servers(stack)]

    def actions(self, stack: Stack) -> list[int]:
        """Return how many actions each server had, fewest first."""
        return sorted(len(server.facts["actions"]) for server in self.servers(stack))
