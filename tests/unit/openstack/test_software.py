# SPDX-License-Identifier: Apache-2.0
"""Whether a server is what its stack's template says: a table."""

from __future__ import annotations

from typing import Any, cast

import pytest

from container_update.openstack.client import Heat
from container_update.openstack.execution.servers import Servers
from container_update.openstack.execution.writer import StepError, Writer
from container_update.openstack.software import Software, as_it_is, defined_software, deviation
from container_update.openstack.vnfcs import VnfcServer
from container_update.package.hot import StackBody

BODY = StackBody(
    {
        "parameters": {"image": {"type": "string"}, "flavor": {"type": "string", "default": "s"}},
        "resources": {
            "VDU1": {
                "type": "OS::Nova::Server",
                "properties": {
                    "image": {"get_param": "image"},
                    "flavor": {"get_param": "flavor"},
                    "name": "one",
                },
            },
            "VDU2": {"type": "OS::Nova::Server", "properties": {"flavor": "s"}},
        },
    },
    {"image": "jammy"},
)


class Names:
    """What the cloud's images and flavours are called."""

    def image_id(self, name: str) -> str | None:
        return {"jammy": "id-jammy", "noble": "id-noble"}.get(name)

    def flavour_names(self, flavour: str) -> set[str]:
        return {"7", "s"} if flavour in ("7", "s") else set()


def server(image: str | None, **flavour: Any) -> dict[str, Any]:
    return {"attributes": {"image": {"id": image} if image else "", "flavor": flavour}}


CASES: dict[str, tuple[Any, Software | None, str]] = {
    "the image of that name": (server("id-jammy", original_name="s"), None, ""),
    "an image by its id": (server("jammy", original_name="s"), None, ""),
    "another image": (
        server("id-noble", original_name="s"),
        None,
        "image id-noble instead of jammy",
    ),
    "a volume": (server(None, original_name="s"), None, "image (a volume) instead of jammy"),
    "the flavour's id, as an old Nova shows it": (server("id-jammy", id="7"), None, ""),
    "another flavour": (
        server("id-jammy", original_name="m"),
        None,
        "flavour m instead of s",
    ),
    "the image that it had, whose name is another one's now": (
        server("id-first", original_name="s"),
        Software("id-first", "s"),
        "",
    ),
    "the image of that name, which it did not have": (
        server("id-jammy", original_name="s"),
        Software("id-first", "s"),
        "image id-jammy instead of jammy",
    ),
    "both": (
        server("id-noble", original_name="m"),
        None,
        "image id-noble instead of jammy, flavour m instead of s",
    ),
    "no server": (None, None, ""),
}


@pytest.mark.parametrize("name", CASES)
def test_a_server_deviates_from_its_stack_by_image_or_flavour(name: str) -> None:
    live, known, expected = CASES[name]
    assert deviation(cast(Heat, Names()), live, BODY, "VDU1", known) == expected


def test_a_name_that_cannot_be_looked_up_is_not_judged() -> None:
    body = StackBody(BODY.template, {"image": "private"})
    live = server("id-noble", original_name="s")
    assert deviation(cast(Heat, Names()), live, body, "VDU1") == ""


def test_a_server_that_boots_from_a_volume_has_no_image_to_deviate_from() -> None:
    assert defined_software(BODY, "VDU2") == {"flavor": "s"}
    assert deviation(cast(Heat, Names()), server(None, original_name="s"), BODY, "VDU2") == ""


def test_a_stack_that_says_what_nova_has_differs_in_nothing_else() -> None:
    body = as_it_is(BODY, "VDU1", Software("id-noble", "m", 5))
    assert defined_software(body, "VDU1") == {"image": "id-noble", "flavor": "m"}
    assert body.template["resources"]["VDU1"]["properties"]["name"] == "one"
    assert body.template["resources"]["VDU2"] == BODY.template["resources"]["VDU2"]
    assert body.parameters == BODY.parameters
    assert defined_software(BODY, "VDU1") == {"image": "jammy", "flavor": "s"}, (
        "the first one is unchanged"
    )


class Stacks:
    """Records the updates that are sent to one server's stack."""

    def __init__(self, live: dict[str, Any]) -> None:
        self.live, self.sent = live, list[StackBody]()

    def active(self, _: VnfcServer, part: float = 1.0) -> dict[str, Any]:
        assert part
        return self.live

    def update(self, _: str, body: StackBody) -> None:
        self.sent.append(body)


@pytest.mark.parametrize(
    ("was", "wrong", "is_mended"),
    [
        ("id-jammy", "", False),
        ("id-noble", "image id-noble instead of jammy", False),
        ("id-noble", "", True),  # the name jammy was that of noble's image when it began
    ],
)
def test_an_undo_brings_a_server_to_what_it_was_unless_that_was_wrong(
    was: str, wrong: str, is_mended: bool
) -> None:
    stacks = Stacks(server("id-jammy", original_name="s"))
    member = VnfcServer(
        "VDU1", "stack/1", "VDU1", "s1", "VDU1", software=Software(was, "s"), deviation=wrong
    )
    servers = Servers(cast(Heat, Names()), cast(Writer, stacks))
    if is_mended:
        with pytest.raises(StepError, match="has image id-jammy instead of jammy"):
            servers.ensure_as_before(member, BODY)
    else:
        servers.ensure_as_before(member, BODY)
    assert [defined_software(body, "VDU1")["image"] for body in stacks.sent] == (
        ["id-jammy", "jammy"] if is_mended else []
    )


def test_what_nova_tells_of_a_flavour_is_kept() -> None:
    live = server("id-jammy", original_name="s", disk=20)
    assert Software.of(live) == Software("id-jammy", "s", 20)
    assert Software.of({"attributes": {}}) is None
