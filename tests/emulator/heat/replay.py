# SPDX-License-Identifier: Apache-2.0
"""Plays a scenario of recordings: the same requests, at the same states of the stacks."""

import functools
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import requests

from container_update.emulator.heat import EmbeddedOpenStack, ResourceFault
from container_update.emulator.heat.faults import NO_HOST
from container_update.emulator.heat.heat import HeatService
from container_update.emulator.heat.stacks import Stack
from tests.emulator.heat.sameness import differences

RECORDINGS = Path(__file__).parent / "recordings"
SECONDS, SLOWLY = 0.002, 2.0
"""How long an action takes; and how long where something is recorded while it goes on."""
DEADLINE = 8.0
"""How long an answer may take to be as recorded."""
MINUTE = 3.0
"""A minute of a stack's timeout, and of a test resource's wait, in seconds."""

STACK = re.compile(r"^/stacks/(?P<name>[^/?]+)/(?P<id>[0-9a-f-]{36})")
DURING = {
    "create-same-name": "",
    "update-while-deleting": "",
    "update-while-in-progress": "OS::Nova::Server UPDATE_IN_PROGRESS",
    "slow-update-while-creating": "OS::Heat::TestResource CREATE_IN_PROGRESS",
    "slow-cancel-update": "OS::Heat::TestResource UPDATE_IN_PROGRESS",
    "slow-cancel-without-rollback": "OS::Heat::TestResource UPDATE_IN_PROGRESS",
    "slow-update-before-suspend": "",
    "slow-suspend-while-in-progress": "OS::Heat::TestResource UPDATE_IN_PROGRESS",
    "slow-update-suspended": "",
}
"""The writes that came while an action went on, and the resource that there was then."""
SLOW_FROM = ("create", "update-existing", "delete", "create-no-host", "first-update")
FAST_FROM = (
    "template-in-progress", "update-in-progress-events", "update-while-deleting",
    "create-no-host-4s-later-events", "update-while-in-progress",
)  # fmt: skip


def entries_of(scenario: str) -> list[dict[str, Any]]:
    """Return the recordings of a scenario."""
    events, *entries = json.loads((RECORDINGS / f"{scenario}.json").read_text(encoding="utf-8"))
    for entry in entries:
        body = entry["body"]
        if isinstance(body, dict) and isinstance(body.get("events"), list):
            entry["body"] = {"events": _events_in(body, events)}
    return entries


def _events_in(body: dict[str, Any], events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the events of a trimmed answer as Heat wrote them."""
    written, root = [], body["root"]
    for number in body["events"]:
        event = dict(events[number])
        stack = event.pop("stack")
        resource = f"{stack}/resources/{event['resource_name']}"
        links = [("self", f"{resource}/events/{event['id']}"), ("resource", resource)]
        links += [("stack", stack)] + ([("root_stack", root)] if root else [])
        written.append({**event, "links": [{"href": href, "rel": rel} for rel, href in links]})
    return written


def short(name: str) -> str:
    """Return a recording's name without its number."""
    return re.sub(r"^\d+-", "", name)


TEMPLATE, FILES = (entries_of("life")[0]["request"][key] for key in ("template", "files"))
ONE_SERVER = entries_of("no-host")[0]["request"]["template"]
SLOW = """
heat_template_version: 2021-04-16
parameters: {value: {type: string, default: a}, wait: {type: number, default: 8}}
resources:
  slow:
    type: OS::Heat::TestResource
    properties: {value: {get_param: value}, wait_secs: {get_param: wait}}
"""
GROUP_OF_ONE = {"template": TEMPLATE, "files": FILES, "parameters": {"size": 1}}
WITH_A_SERVER = {"template": ONE_SERVER}


class Replay:
    """One scenario on a fresh cloud."""

    def __init__(self, cloud: EmbeddedOpenStack) -> None:
        self.cloud = cloud
        self._members: dict[str, str] = {}
        faults = cloud.faults
        faults.seconds, faults.minute = SECONDS, MINUTE
        faults.images = {"cirros-1", "cirros-2"}
        over_quota = "Quota exceeded for cores: Requested 29, but already used 2 of 20 (HTTP 403)"
        faults.resources += [
            ResourceFault(over_quota, "Forbidden", where=lambda given: given["flavor"] == "big"),
            ResourceFault(NO_HOST, where=lambda given: given["flavor"] == "huge"),
        ]
        self._session = requests.Session()
        token = cloud.call(lambda _: cloud.keystone.issue(_login(cloud))[0])
        self._session.headers.update({"X-Auth-Token": token, "Accept": "application/json"})
        self._url = f"{cloud.url}/heat-api/v1/{cloud.keystone.project_id}"

    def check(self, entry: dict[str, Any]) -> list[str]:
        """Send the request and return in what the answer differs from the recorded one."""
        name = short(entry["name"])
        if name in SLOW_FROM:
            self.settle()
            self.cloud.faults.seconds = SLOWLY
        if entry["method"] == "GET":
            return self._read(entry, name)
        if name in DURING:
            self._until_there_is(DURING[name])
        else:
            self.settle()
        problems = self._try(entry)
        self._speed_up(name)
        return problems

    def _read(self, entry: dict[str, Any], name: str) -> list[str]:
        deadline = time.monotonic() + DEADLINE
        while (problems := self._try(entry)) and time.monotonic() < deadline:
            if self.quiet() and (problems := self._try(entry)):
                break  # it will not change any more
            time.sleep(0.002)
        self._speed_up(name)
        return problems

    def _speed_up(self, name: str) -> None:
        if name in FAST_FROM:
            self.cloud.faults.seconds = SECONDS

    def _try(self, entry: dict[str, Any]) -> list[str]:
        headers = {"X-Auth-Token": None} if "no-token" in entry["name"] else {}
        answer = self._session.request(
            entry["method"],
            self._url + self._path(entry["path"]),
            json=entry["request"],
            headers=headers,  # type: ignore[arg-type]
            allow_redirects=False,
        )
        if answer.status_code != entry["status"]:
            return [f"status {entry['status']} recorded, {answer.status_code} here: {answer.text}"]
        body = answer.json() if answer.text else ""
        headers = {key: answer.headers[key] for key in entry["headers"] if key in answer.headers}
        headers = {key: value.partition(";")[0] for key, value in headers.items()}
        return differences([entry["headers"], entry["body"]], [headers, body])

    # --- the stacks -----------------------------------------------------------------------------

    def _path(self, recorded: str) -> str:
        """Return the path for the stack that stands here for the recorded one."""
        found = STACK.match(recorded)
        if found is None or found["name"] in ("nothing", "other") or found["id"].startswith("0000"):
            return self._with_own_id(recorded)
        name, *inner = found["name"].split("-")
        stack = self.cloud.call(lambda heat: next(s for s in heat.stacks if s.name == name))
        rest = recorded[found.end() :]
        if inner:  # name-group-XXXX or name-group-XXXX-member-YYYY
            stack = self._nested(stack, "group")
            member = inner[2] if len(inner) > 2 else rest.rpartition("/")[2]
            if len(inner) > 2:
                stack = self._nested(stack, self._member(stack, member))
            elif rest.startswith("/resources/"):
                rest = f"/resources/{self._member(stack, member)}"
        return f"/stacks/{stack.name}/{stack.id}{rest}"

    def _with_own_id(self, recorded: str) -> str:
        """Return a path with a wrong name and the id of a stack that there is."""
        found = STACK.match(recorded)
        if found is None or found["name"] != "other":
            return recorded
        return f"/stacks/other/{self.cloud.call(lambda heat: heat.stacks[0].id)}"

    def _nested(self, stack: Stack, name: str) -> Stack:
        nested = self.cloud.call(lambda _: stack.resources[name].nested)
        assert nested is not None
        return nested

    def _member(self, group: Stack, recorded: str) -> str:
        """Return the member that stands for a recorded one."""
        if recorded not in self._members:
            names = self.cloud.call(lambda _: list(group.resources))
            free = [name for name in names if name not in self._members.values()]
            self._members[recorded] = free[0]
        return self._members[recorded]

    def quiet(self) -> bool:
        """Return whether nothing goes on, in no stack and in no resource."""
        return self.cloud.call(
            lambda heat: all(
                "IN_PROGRESS" not in (stack.status, *(each.status for each in stack.walk(0)))
                for stack in heat.all_stacks()
            )
        )

    def _until_there_is(self, resource: str) -> None:
        def states(heat: HeatService) -> set[str]:
            every = (each for stack in heat.all_stacks() for each in stack.walk(0))
            return {"", *(f"{each.kind} {each.state}" for each in every)}

        deadline = time.monotonic() + 30
        while resource not in self.cloud.call(states):
            assert time.monotonic() < deadline, f"there is no {resource}"
            time.sleep(0.002)

    def settle(self) -> None:
        """Wait until no top-level stack is IN_PROGRESS."""
        deadline = time.monotonic() + 30
        while self.cloud.call(lambda heat: any(s.status == "IN_PROGRESS" for s in heat.stacks)):
            assert time.monotonic() < deadline, "a stack stays IN_PROGRESS"
            time.sleep(0.002)

    # --- what was done without a recording ------------------------------------------------------

    def create(self, name: str, body: dict[str, Any], *, wait: bool = True) -> None:
        """Create a stack."""
        body = {"stack_name": name, "disable_rollback": True, "timeout_mins": 10, **body}
        self._send("POST", "/stacks", body)
        if wait:
            self.settle()

    def patch(self, name: str, **parameters: Any) -> None:
        """Update a stack's parameters."""
        self._send("PATCH", self._address(name), {"parameters": parameters})
        self.settle()

    def delete(self, name: str) -> None:
        """Delete a stack."""
        self.settle()
        self._send("DELETE", self._address(name), None)
        self.settle()

    def _address(self, name: str) -> str:
        stack = self.cloud.call(lambda heat: heat.find(name))
        return f"/stacks/{stack.name}/{stack.id}"

    def _send(self, method: str, path: str, body: Any) -> None:
        answer = self._session.request(method, self._url + path, json=body)
        assert answer.status_code < 300, answer.text


def _login(cloud: EmbeddedOpenStack) -> dict[str, Any]:
    user = {"name": cloud.auth()["username"], "password": cloud.auth()["password"]}
    return {"auth": {"identity": {"password": {"user": user}}}}


def _hold_the_server(replay: Replay) -> None:
    """Let the creation of the top stack's server go on while the group fails."""
    fault = ResourceFault(stuck=True, times=1, where=lambda given: given["image"] == "cirros-1")
    replay.cloud.faults.resources.append(fault)


def _let_the_server_go(replay: Replay) -> None:
    replay.cloud.release()
    replay.delete("nope")


Step = Callable[[Replay], None]
BEFORE: dict[str, list[Step]] = {
    "update-fails": [lambda replay: replay.create("fail", GROUP_OF_ONE)],
    "first-update": [
        lambda replay: replay.delete("fail"),
        lambda replay: replay.create("twice", GROUP_OF_ONE),
    ],
    "create-nested-image-not-found": [_hold_the_server],
    "create-no-such-type": [_let_the_server_go],
    "create-over-quota": [
        lambda replay: replay.settle(),
        lambda replay: setattr(replay.cloud.faults, "servers_allowed", 1),
    ],
    "slow-update-while-creating": [
        lambda replay: replay.create("slow", {"template": SLOW}, wait=False)
    ],
    "quiet-update-fails": [lambda replay: replay.create("quiet", GROUP_OF_ONE)],
    "one-update-fails-with-rollback": [
        lambda replay: replay.delete("quiet"),
        lambda replay: replay.create("one", WITH_A_SERVER),
    ],
    "resize-no-host": [lambda replay: replay.create("resize", WITH_A_SERVER)],
    "stuck-update-invalid-image": [lambda replay: replay.create("stuck", GROUP_OF_ONE)],
    "member-marked-unhealthy-1-before": [
        lambda replay: replay.create("stuck", GROUP_OF_ONE),
        lambda replay: replay.patch("stuck", image="cirros-2"),
    ],
}
"""What was done before a recording, and is not recorded."""


@functools.cache
def results(scenario: str) -> dict[str, list[str]]:
    """Play a scenario and return for each recording in what the answer differs here."""
    found = {}
    with EmbeddedOpenStack() as cloud:
        replay = Replay(cloud)
        for entry in entries_of(scenario):
            for step in BEFORE.get(short(entry["name"]), ()):
                step(replay)
            found[entry["name"]] = replay.check(entry)
    return found
